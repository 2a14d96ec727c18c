"""The interface of a kind of server: how it is found, started, and asked about its state."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from lockcheck.cache import cache_root, filled_with
from lockcheck.distribution import pip_install
from lockcheck.errors import ClusterError, UserError

Command = tuple[str, ...]
NOT_INSTALLED = "not installed"


class Clock(StrEnum):
    """The clock by which a server lets leases and sessions expire."""

    WALL = "wall"
    MONOTONIC = "monotonic"


@dataclass(frozen=True, slots=True)
class Here:
    """A member of a cluster, as it is started: its name, its data folder and the other members."""

    name: str
    members: tuple[str, ...]  # of its kind and role, itself included: names that resolve
    data: str  # its data folder, empty at its first start
    program: Command  # what `find` found, or `image_program`
    servers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by kind: their names


@dataclass(frozen=True, slots=True)
class Question:
    """Bytes that are sent to a server's port, and a pattern that its answer must contain."""

    ask: bytes
    answer: bytes


@dataclass(frozen=True, slots=True)
class TellsTime:
    """How one of a server's own clocks is read by asking the server."""

    called: str
    question: Question
    read_ns: Callable[[re.Match[bytes]], int]  # of the answer
    step_ms: int = 0  # its resolution
    clock: Clock = Clock.WALL


def nothing(_here: Here) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One kind of server. Members know each other by name, so commands need no addresses."""

    name: str
    title: str
    port: int
    find: Callable[[], Command | None]  # on this host: a variable, then PATH, then a wheel
    cure: str  # how to get it on a host that lacks it
    image: str  # the folder in compose/images
    suite: str = ""  # of Debian, for its image and for `debs`; empty: the usual one, or this host's
    image_program: Command  # the program in that image
    command: Callable[[Here], Command]
    ready: Question
    version_command: Callable[[Command], Command] = lambda program: (*program, "--version")
    version_pattern: str = ".+"  # finds it in the output of that command
    files: Callable[[Here], Mapping[str, str]] = nothing  # in its data folder, by name
    environment: Callable[[Here], Mapping[str, str]] = nothing
    data_mb: int = 0  # the size of its data folder, a tmpfs; 0: it has none
    refuses_root: bool = False
    refused_without_data: bool = False  # the other members refuse one that has lost its data
    # Removes from its data folder what a full disk left there and prevents a start.
    tidied: Callable[[Path], None] = lambda _data: None
    gap_ms: int = 0  # between the starts of two members
    leader: Question | None = None  # only the leader answers it
    clock: Clock
    tells_time: TellsTime | None = None
    # It waits until absolute times of the monotonic clock, which only libfaketime can move then.
    waits_by_kernel: bool = False
    drivers: tuple[tuple[str, str], ...] = ()  # its client libraries: name, and name on PyPI
    # What lockcheck relies on in them beside their public interface, and does not find; or empty.
    missing_in_drivers: Callable[[], str] = lambda: ""
    # Debian packages that can be fetched and unpacked, and whether they are all that is missing.
    debs: tuple[str, ...] = ()
    debs_suite: str = ""  # where they come from if any host can run them; empty: from `suite`
    debs_suffice: Callable[[], bool] = lambda: True
    # Its other versions, as --version names them. `version` is the name of this one, empty for the
    # usual one, and `says` a pattern of what a program of that version prints.
    versions: Mapping[str, Server] = field(default_factory=dict)
    version: str = ""
    says: str = ""
    beside: str = ""  # the kind without which it does not run: a Sentinel watches a Redis
    same_as: str = ""  # the kind whose program it is, and whose versions: a Sentinel is a Redis

    @property
    def software(self) -> str:
        return self.same_as or self.name

    @property
    def unpacked_as(self) -> str:
        return f"{self.software}-{self.version}" if self.version else self.software

    @property
    def image_name(self) -> str:
        return f"{self.image}:{self.suite}" if self.suite else self.image

    def __post_init__(self) -> None:
        if self.files is not nothing and not self.data_mb:
            raise ValueError(f"{self.name} has files, and no data folder to put them in")


def offering(server: Server, *others: Server) -> Server:
    """The usual server, with the versions in which it can be asked for."""
    return replace(server, versions={other.version: other for other in others})


def the_same_as(server: Server, become: Callable[[Server], Server]) -> Server:
    """Another kind of server with the same program, in the same versions."""

    def another(version: Server) -> Server:
        return replace(become(version), same_as=server.software)

    versions = {
        name: replace(another(version), title=version.title)
        for name, version in server.versions.items()
    }
    return replace(another(server), versions=versions)


# --- finding programs ----------------------------------------------------------------------------


def named_by(variable: str, what: str) -> Path | None:
    """The program that an environment variable names; an error if it cannot be executed."""
    path = os.environ.get(variable)
    if not path:
        return None
    if not _executable(Path(path)):
        raise ClusterError(
            f"{variable}={path} cannot be executed", cure=f"name {what}, or unset it"
        )
    return Path(path).resolve()


def on_path(*names: str) -> Path | None:
    """The first of these programs that is on PATH."""
    found = (shutil.which(name) for name in names)
    return next((Path(path) for path in found if path), None)


def as_command(found: Path | None) -> Command | None:
    return (str(found),) if found else None


def found_by(
    variable: str, *names: str, otherwise: Callable[[], Path | None]
) -> Callable[[], Command | None]:
    """Finds the program that the variable names, or one of that name on PATH, or some other."""

    def find() -> Command | None:
        named = named_by(variable, f"the {' or '.join(names)} program")
        return as_command(named or on_path(*names) or otherwise())

    return find


def in_wheel(package: str, pattern: str) -> Path | None:
    """A program in an installed wheel, found without importing it, which could take long."""
    wheel = find_spec(package)
    if wheel is None or wheel.origin is None:
        return None
    inside = Path(wheel.origin).parent.glob(pattern)
    return next((path for path in inside if _executable(path)), None)


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def unpacked(name: str) -> Path:
    """The folder into which Debian packages are unpacked under that name."""
    return cache_root() / "debian" / name


def fetched(name: str, path: str = "") -> Path | None:
    """What is at that path of packages unpacked under that name, if it is as it was fetched."""
    return unpacked(name) / path if filled_with(unpacked(name)) is not None else None


def in_debs(name: str, path: str) -> Path | None:
    """A program from packages unpacked under that name."""
    program = fetched(name, path)
    return program if program and _executable(program) else None


def with_libraries_of(name: str) -> Callable[[Here], Mapping[str, str]]:
    """The environment in which a program finds the libraries that were unpacked with it."""

    def environment(here: Here) -> Mapping[str, str]:
        root = unpacked(name)
        if not Path(here.program[0]).is_relative_to(root):
            return {}
        folders = ":".join(sorted(str(path) for path in root.glob("usr/lib/*-linux-gnu*")))
        return {"LD_LIBRARY_PATH": folders} if folders else {}

    return environment


def driver_versions(server: Server) -> dict[str, str]:
    """The versions of its client libraries, by their names."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for called, distribution in server.drivers:
        try:
            found[called] = version(distribution)
        except PackageNotFoundError:
            found[called] = NOT_INSTALLED
    return found


def check_drivers(server: Server) -> None:
    """Raises UserError if a client library is not installed."""
    missing = [
        called for called, found in driver_versions(server).items() if found is NOT_INSTALLED
    ]
    if missing:
        raise UserError(
            f"clients of {server.title} need {' and '.join(missing)}, which is not installed",
            cure=driver_cure(server),
        )


def driver_cure(server: Server) -> str:
    return pip_install(server.software)
