"""What this host can do, what is missing, and the command that adds it."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass

from lockcheck.cli.packages import broken_packages
from lockcheck.compose.choose import RUNTIMES
from lockcheck.compose.docker.compose_binary import find_compose, why_no_compose
from lockcheck.compose.docker.engine import why_no_engine
from lockcheck.compose.images.build import missing_images
from lockcheck.compose.local.fetching import can_be_fetched
from lockcheck.compose.runtime import Runtime
from lockcheck.distribution import DISTRIBUTION, NAMESAKE, is_namesake_installed
from lockcheck.errors import ClusterError, LockcheckError
from lockcheck.servers import SERVERS, Server
from lockcheck.servers.base import NOT_INSTALLED, driver_cure, driver_versions
from lockcheck.servers.kind import Kind
from lockcheck.servers.versions import reported_version


@dataclass(frozen=True, slots=True)
class Diagnosis:
    what: str
    ok: bool
    found: str
    cure: str = ""
    needed: bool = False  # without it lockcheck cannot run at all
    optional: bool = False  # it could be added, but nothing is broken without it

    @property
    def mark(self) -> str:
        return "ok" if self.ok else "add" if self.optional else "no"


def examine_host() -> Iterator[Diagnosis]:
    yield _python()
    if is_namesake_installed():
        yield Diagnosis(
            NAMESAKE,
            ok=False,
            found=f"another tool of this name is installed here, in the place of {DISTRIBUTION}",
            cure=f"pip uninstall {NAMESAKE}; pip install --force-reinstall {DISTRIBUTION}",
        )
    yield from (
        Diagnosis("packages", ok=False, found=broken.message, cure=broken.cure)
        for broken in broken_packages()
    )
    yield from _local()
    yield from _docker()
    able = [name for name, kind in RUNTIMES.items() if _runs_anything(kind())]
    yield Diagnosis(
        "runs",
        bool(able),
        f"lockcheck run works here: {' and '.join(able)}" if able else "neither runtime works",
        "" if able else "either of the two is enough: see above",
        needed=True,
    )


def _python() -> Diagnosis:
    found = f"{platform.python_version()} on {platform.system()} {platform.release()}"
    return Diagnosis("Python", ok=True, found=found)


def _runs_anything(runtime: Runtime) -> bool:
    return _runs(runtime) and any(_runs(runtime, Kind(name)) for name in SERVERS)


def _runs(runtime: Runtime, *kinds: Kind) -> bool:
    try:
        return not runtime.why_not(kinds)
    except LockcheckError:  # it is shown with the server, or with Compose
        return False


def _local() -> Iterator[Diagnosis]:
    reason = RUNTIMES["local"]().why_not()
    yield Diagnosis("runtime local", not reason, reason or "network namespaces")
    for server in SERVERS.values():
        yield _server(server)
        yield from _drivers(server)


def _drivers(server: Server) -> Iterator[Diagnosis]:
    found, cure = driver_versions(server), driver_cure(server)
    installed = NOT_INSTALLED not in found.values()
    missing = server.missing_in_drivers() if installed else ""
    for driver, version in found.items():
        what = f"    {driver}"
        if version == NOT_INSTALLED:
            yield Diagnosis(what, ok=False, found=version, cure=cure, optional=True)
        elif missing:
            yield Diagnosis(what, ok=False, found=f"{version}, and {missing}", cure=cure)
        else:
            yield Diagnosis(what, ok=True, found=version)


def _server(server: Server) -> Diagnosis:
    what = f"  {server.name}"
    try:
        program = server.find()
    except LockcheckError as error:  # a variable that names nothing is a mistake, not a choice
        return Diagnosis(what, ok=False, found=error.message, cure=error.cure)
    if program is not None:
        return Diagnosis(what, ok=True, found=f"{reported_version(server, program)} ({program[0]})")
    if can_be_fetched(server):
        return Diagnosis(what, ok=True, found="fetched from Debian's packages when a run needs it")
    return Diagnosis(what, ok=False, found="not on this host", cure=server.cure, optional=True)


def _docker() -> Iterator[Diagnosis]:
    if reason := why_no_engine():
        yield Diagnosis("runtime docker", ok=False, found=reason)
        return
    yield Diagnosis("runtime docker", ok=True, found="an engine answers")
    yield _compose()
    yield _images()


def _compose() -> Diagnosis:
    try:
        compose = find_compose()
    except LockcheckError as error:
        return Diagnosis("  Compose v2", ok=False, found=error.message, cure=error.cure)
    return Diagnosis(
        "  Compose v2",
        compose is not None,
        f"{' '.join(compose.command)} ({compose.version})" if compose else why_no_compose(),
        "" if compose else "lockcheck images build",
    )


def _images() -> Diagnosis:
    try:
        missing = missing_images(map(Kind, SERVERS))
    except ClusterError as error:
        return Diagnosis("  images", ok=False, found=error.message, cure=error.cure)
    return Diagnosis(
        "  images",
        not missing,
        f"to be built: {', '.join(missing)}" if missing else "built, and those of this version",
        "lockcheck images build (the first run does it, too)" if missing else "",
        optional=True,
    )
