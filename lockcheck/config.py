"""Everything a run is given: one value, saved with the run, and written as a command.

Each field says how it is given. The options of `lockcheck run`, the variables LOCKCHECK_RUN_...,
the [run] table of lockcheck.toml, the command that repeats the run and the stored config.json all
come from these fields. What it names is looked up, and whether it makes sense is checked, once:
`run/resolve.py` makes a `RunPlan` of it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, get_type_hints

import msgspec

from lockcheck.backends import BACKENDS, Backend
from lockcheck.backends.program import FOLDER_THERE, ClientProgram
from lockcheck.durations import Duration, DurationRange, duration_words
from lockcheck.errors import UserError
from lockcheck.files import read_document
from lockcheck.servers.base import Clock
from lockcheck.storage.base import Guard
from lockcheck.workloads import WORKLOADS

# A client notices its own stalls from a tenth of the lease on; shorter leases drown in noise.
SHORTEST_TTL_MS = 200
RUNTIMES = ("auto", "local", "docker")
LONGEST_THINK = 1.5  # the longest work under the lock, in usual ones
IN_MS = "_ms"  # how the name of a field ends that is a duration


@dataclass(frozen=True, slots=True)
class Setting:
    """How a field of `RunConfig` is given: an option of the command line, and what that takes."""

    help: str
    choices: Collection[str] | None = None  # it names one of them
    low: int | None = None
    high: int | None = None
    metavar: str | None = None
    folder: bool = False
    range: bool = False  # a range of durations is possible, too
    repeated: bool = True  # by the command that runs it again


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    backend: Annotated[
        str, Setting("The lock under test: see lockcheck list.", choices=BACKENDS, metavar="LOCK")
    ]
    client: Annotated[
        str,
        Setting(
            "A client of your own lock, to test that: a program, or MODULE:NAME in Python; see "
            "docs/your-lock.md.",
            metavar="COMMAND",
        ),
    ] = ""
    image: Annotated[
        str,
        Setting(
            "The image that the client is in, in docker: it runs in a container beside "
            "lockcheck's. [default of --client: the image's own command]",
            metavar="IMAGE",
        ),
    ] = ""
    servers: Annotated[
        str,
        Setting(
            "The servers that it needs, as in redis*3 or etcd=3.4; or, as in redis=HOST:PORT, ones "
            "that are there already: then faults strike clients only. [default: what it says, or "
            "redis]",
            metavar="SERVERS",
        ),
    ] = ""
    promises: Annotated[
        tuple[str, ...],
        Setting(
            "What it promises, as in session,token,waits; repeatable. [default: what it says, or a "
            "lease]",
            metavar="WORD,...",
        ),
    ] = ()
    python: Annotated[str, Setting("The Python for a client in Python.", metavar="PROGRAM")] = ""
    requirements: Annotated[
        tuple[str, ...],
        Setting(
            "What a client in Python requires, as in sherlock==0.4.1; repeatable. pip installs it, "
            "once, into an environment of its own.",
            metavar="REQUIREMENT",
        ),
    ] = ()
    version: Annotated[
        tuple[str, ...],
        Setting(
            "The version of a server, as in etcd=3.4; repeatable; see lockcheck list.",
            metavar="KIND=VERSION",
        ),
    ] = ()
    workload: Annotated[
        str,
        Setting(
            "What clients do under the lock. [default: what the lock is for]", choices=WORKLOADS
        ),
    ] = ""  # never stays empty: the backend's usual one
    nemesis: Annotated[
        tuple[str, ...],
        Setting(
            "The fault to inject, and where; repeatable: they run at the same time. `none` for a "
            "control run, `all` for faults drawn by the seed; see lockcheck list.",
            metavar="FAULT[:WORD,...]",
        ),
    ] = ("pause",)
    runtime: Annotated[
        str,
        Setting("Where nodes come from: network namespaces, or Docker Compose.", choices=RUNTIMES),
    ] = "auto"
    clients: Annotated[int, Setting("The number of clients.", low=1, high=100)] = 5
    keys: Annotated[int, Setting("The number of locks.", low=1, high=1000)] = 1
    ttl_ms: Annotated[
        int, Setting("The lease, or the session's timeout.", low=SHORTEST_TTL_MS, high=3_600_000)
    ] = 1000
    time_limit_ms: Annotated[int, Setting("How long to run.", low=1000, high=86_400_000)] = 15_000
    think_ms: Annotated[
        Duration,
        Setting(
            "How long a client works under the lock, give or take a half; or, as in 50ms..300ms, "
            "from how long to how long.",
            low=1,
            range=True,
        ),
    ] = 10
    seed: Annotated[
        int,
        Setting(
            "Fixes the faults and the clients' choices. [default: random]",
            low=0,
            high=(1 << 63) - 1,
        ),
    ]
    guard: Annotated[
        Guard,
        Setting(
            "What the storage checks of a write: nothing, its fencing token, or that nobody wrote "
            "in between.",
            choices=tuple(Guard),
        ),
    ] = Guard.NONE
    check_validity: Annotated[
        bool, Setting("Clients check what is left of their lease before each read and write.")
    ] = False
    lease_clock: Annotated[
        Clock,
        Setting(
            "The clock by which clients measure their lease; many published clients use wall.",
            choices=tuple(Clock),
        ),
    ] = Clock.MONOTONIC
    stop_on_violation: Annotated[
        bool, Setting("Stop early once two clients hold the lock at once.")
    ] = True
    keep: Annotated[
        bool,
        Setting(
            "Keep the servers running after the time limit, until Ctrl-C; then judge.",
            repeated=False,
        ),
    ] = False
    out: Annotated[str, Setting("Where to create the run's folder.", folder=True)] = "results"
    client_folder: str = ""  # where `client` was named
    client_version: str = ""  # as it says of itself
    # Names of fields that this machine configures otherwise (in lockcheck.toml, or by a variable):
    # the command that runs it again has to spell them out, even where they are the defaults.
    spelled_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.client, os.PathLike):
            msgspec.structs.force_setattr(self, "client", shlex.quote(os.fspath(self.client)))
        for name in ("out", "python"):
            msgspec.structs.force_setattr(self, name, os.fspath(getattr(self, name)))
        if not self.workload and (self.client or self.backend in BACKENDS):
            msgspec.structs.force_setattr(self, "workload", self.lock.workload)

    @property
    def lock(self) -> Backend:
        """Raises KeyError if there is no such lock."""
        program = self.program()
        if program is None:
            return BACKENDS[self.backend]
        from lockcheck.backends.program.words import YOURS, backend_of, name_of

        accused = YOURS if self.backend == name_of(self.client) else self.backend
        return backend_of(self.backend, program, self.servers, self.promises, accused)

    def program(self, runtime: str = "local") -> ClientProgram | None:
        """The client of a user's own lock; None: it is one of the known locks."""
        if not self.client:
            return None
        from lockcheck.backends.program.words import command_of, command_there

        folder = self.folder_of_client
        if runtime == "docker" or self.image:
            there = command_there(self.client, folder, self.python)
            return ClientProgram(command=there, folder=FOLDER_THERE)
        return ClientProgram(
            command=command_of(self.client, self.python, self.requirements), folder=folder
        )

    @property
    def work_ms(self) -> tuple[float, float]:
        """The shortest and the longest that a client means to work under the lock."""
        if isinstance(self.think_ms, DurationRange):
            return self.think_ms.low_ms, self.think_ms.high_ms
        return self.think_ms * (2 - LONGEST_THINK), self.think_ms * LONGEST_THINK

    @property
    def folder_of_client(self) -> str:
        """Where a client of the user's own is looked for; empty if there is none, or an image."""
        return "" if self.image or not self.client else self.client_folder or str(Path.cwd())

    def key_names(self) -> tuple[str, ...]:
        return tuple(f"k{number}" for number in range(1, self.keys + 1))

    def command(self) -> str:
        """The command that repeats this run: only options that differ from the defaults."""
        return shlex.join(["lockcheck", "run", *self._words()])

    def _words(self) -> Iterator[str]:
        usual = {field.name: field.default for field in msgspec.structs.fields(RunConfig)}
        usual["workload"] = self.lock.workload
        for name, setting in settings().items():
            value = getattr(self, name)
            if setting.repeated and (value != usual[name] or name in self.spelled_out):
                yield from _as_options(name, value)


def read_config(path: Path) -> RunConfig:
    """What a run has left of its own."""
    try:
        return msgspec.json.decode(read_document(path), type=RunConfig)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(f"{path} is not the configuration of a run: {error}") from error


@cache
def settings() -> dict[str, Setting]:
    """By the names of the fields."""
    hints = get_type_hints(RunConfig, include_extras=True)
    return {
        name: given
        for name in RunConfig.__struct_fields__
        for given in getattr(hints[name], "__metadata__", ())
    }


def option_of(name: str) -> str:
    """As it stands on the command line: `ttl_ms` is `--ttl`."""
    return "--" + name.removesuffix(IN_MS).replace("_", "-")


def _as_options(name: str, value: object) -> Iterator[str]:
    option = option_of(name)
    if isinstance(value, bool):
        yield option if value else option.replace("--", "--no-", 1)
        return
    for each in value if isinstance(value, tuple) else (value,):
        yield option
        yield duration_words(each) if name.endswith(IN_MS) else str(each)
