"""Everything a run is given: one value, saved with the run, and written as a command.

Each field says how it is given. The options of `lockcheck run`, the variables LOCKCHECK_RUN_...,
the [run] table of lockcheck.toml, the command that runs it again and the stored config.json all
come from these fields, and the agent and the clients are given the same value. Whether it makes
sense is checked in `run/validation.py`.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

import msgspec

from lockcheck.backends import BACKENDS, Backend
from lockcheck.client.claims import PATIENCE_TTLS
from lockcheck.durations import duration_words
from lockcheck.errors import UserError
from lockcheck.nodes.node import NodeSpec
from lockcheck.servers.base import Clock
from lockcheck.servers.kind import in_versions
from lockcheck.storage import STORAGES
from lockcheck.storage.base import Guard
from lockcheck.workloads import WORKLOADS, Workload

if TYPE_CHECKING:  # clients have no use for faults, and start sooner without them
    from lockcheck.nemesis import Plan

# A client notices its own stalls from a tenth of the lease on; shorter leases drown in noise.
SHORTEST_TTL_MS = 200
RUNTIMES = ("auto", "local", "docker")
IN_MS = "_ms"  # how the name of a field ends that is a duration


@dataclass(frozen=True, slots=True)
class Setting:
    """How a field of `RunConfig` is given: an option of the command line, and what that takes."""

    help: str
    choices: str = ""  # the registry that it names an entry of
    low: int | None = None
    high: int | None = None
    metavar: str | None = None
    folder: bool = False
    repeated: bool = True  # by the command that runs it again


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    backend: Annotated[
        str, Setting("The lock under test: see lockcheck list.", choices="backend", metavar="LOCK")
    ]
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
            "What clients do under the lock. [default: what the lock is for]", choices="workload"
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
        Setting("Where nodes come from: network namespaces, or Docker Compose.", choices="runtime"),
    ] = "auto"
    clients: Annotated[int, Setting("The number of clients.", low=1, high=100)] = 5
    keys: Annotated[int, Setting("The number of locks.", low=1, high=1000)] = 1
    ttl_ms: Annotated[
        int, Setting("The lease, or the session's timeout.", low=SHORTEST_TTL_MS, high=3_600_000)
    ] = 1000
    time_limit_ms: Annotated[int, Setting("How long to run.", low=1000, high=86_400_000)] = 15_000
    think_ms: Annotated[
        int, Setting("How long a client works under the lock, give or take a half.", low=1)
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
            choices="guard",
        ),
    ] = Guard.NONE
    check_validity: Annotated[
        bool, Setting("Clients check what is left of their lease before each read and write.")
    ] = False
    lease_clock: Annotated[
        Clock,
        Setting(
            "The clock by which clients measure their lease; many published clients use wall.",
            choices="lease clock",
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
    # Names of fields that this machine configures otherwise (in lockcheck.toml, or by a variable):
    # the command that runs it again has to spell them out, even where they are the defaults.
    spelled_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.workload and self.backend in BACKENDS:
            msgspec.structs.force_setattr(self, "workload", self.backend_under_test().workload)

    def backend_under_test(self) -> Backend:
        return BACKENDS[self.backend]

    def servers_under_test(self) -> tuple[NodeSpec, ...]:
        """In the versions that were asked for: the storage's own server is not under test."""
        servers = self.backend_under_test().servers
        asked = in_versions((spec.kind for spec in servers if spec.kind), self.version)
        return tuple(replace(spec, kind=spec.kind and asked[spec.kind]) for spec in servers)

    def workload_to_run(self) -> Workload:
        return WORKLOADS[self.workload]

    def is_guarded(self) -> bool:
        """What the lock lets through by mistake may do no harm."""
        return self.guard is not Guard.NONE or not STORAGES[self.backend_under_test().storage].apart

    def stops_at_overlaps(self) -> bool:
        return self.stop_on_violation and not self.is_guarded()

    def key_names(self) -> tuple[str, ...]:
        return tuple(f"k{number}" for number in range(1, self.keys + 1))

    def plan_for_faults(self) -> Plan:
        from lockcheck.nemesis import Plan

        backend = self.backend_under_test()
        kinds = tuple(dict.fromkeys(s.kind for s in self.servers_under_test() if s.kind))
        return Plan(
            backend=self.backend,
            ttl_ms=self.ttl_ms,
            time_limit_ms=self.time_limit_ms,
            clients=self.clients,
            servers=len(backend.servers),
            stores=self.workload_to_run().stores and STORAGES[backend.storage].apart,
            writes=self.workload_to_run().stores,
            leads=any(kind.server.leader for kind in kinds),
            independent=backend.independent,
            seed=self.seed,
            lapses_after=backend.promises.lapses_after,
            kinds=kinds,
            patience_ttls=PATIENCE_TTLS if backend.promises.waits else 0,
            keys=self.key_names(),
        )

    def from_outside(self) -> tuple[str, ...]:
        """What of it packages have added that are installed here."""
        from lockcheck.nemesis import FAULTS, parse_nemesis

        kinds = [step.kind.name for text in self.nemesis for step in parse_nemesis(text)]
        added = [name for name in (self.backend,) if BACKENDS.is_from_outside(name)]
        added += [name for name in (self.workload,) if WORKLOADS.is_from_outside(name)]
        return (*added, *(name for name in kinds if FAULTS.is_from_outside(name)))

    def command(self) -> str:
        """What runs this again: what is not as it would be without a word."""
        return shlex.join(["lockcheck", "run", *self._words()])

    def _words(self) -> Iterator[str]:
        usual = {field.name: field.default for field in msgspec.structs.fields(RunConfig)}
        usual["workload"] = self.backend_under_test().workload
        for name, setting in settings().items():
            value = getattr(self, name)
            told = value != usual[name] or name in self.spelled_out
            if told and setting.repeated:
                yield from _as_options(name, value)


def read_config(path: Path) -> RunConfig:
    """What a run has left of its own."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunConfig)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
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


REGISTRIES: dict[str, Collection[str]] = {
    "backend": BACKENDS,
    "workload": WORKLOADS,
    "runtime": RUNTIMES,
    "guard": tuple(Guard),
    "lease clock": tuple(Clock),
}
