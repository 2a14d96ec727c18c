"""What a run is to be: one value, checked once, saved with the run, and told as a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import msgspec

from lockcheck.backends import BACKENDS, Backend
from lockcheck.errors import UserError
from lockcheck.nemesis import parse_nemesis
from lockcheck.storage import Guard
from lockcheck.workloads import WORKLOADS, Workload

MAX_CLIENTS = 100
# A client notices its own stalls from a tenth of the lease on; shorter leases drown in noise.
SHORTEST_TTL_MS = 200
RUNTIMES = ("auto", "local", "docker")

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "": 1000}


def parse_duration_ms(text: str) -> int:
    """`500ms`, `1.5s`, `2m`, `1h`; a bare number is seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|)", text.strip())
    if match is None:
        raise UserError(f"{text!r} is no duration", cure="write it like 500ms, 1.5s or 2m")
    duration_ms = round(float(match[1]) * _UNITS_MS[match[2]])
    if duration_ms <= 0:
        raise UserError(f"{text!r} is no time at all", cure="give a duration above zero, like 1s")
    return duration_ms


def duration_words(duration_ms: int) -> str:
    """The shortest way to write it that `parse_duration_ms` takes."""
    if duration_ms % 1000 == 0:
        return f"{duration_ms // 1000}s"
    return f"{duration_ms / 1000:.1f}s" if duration_ms % 100 == 0 else f"{duration_ms}ms"


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    backend: str
    workload: str = "register"
    nemesis: tuple[str, ...] = ("pause",)
    runtime: str = "auto"
    clients: int = 5
    keys: int = 1
    ttl_ms: int = 1000
    time_limit_ms: int = 15_000
    think_ms: int = 10
    guard: Guard = Guard.NONE
    check_validity: bool = False
    stop_on_violation: bool = True
    keep: bool = False
    seed: int
    out: str = "results"

    def backend_under_test(self) -> Backend:
        return BACKENDS[self.backend]

    def workload_to_run(self) -> Workload:
        return WORKLOADS[self.workload]

    def key_names(self) -> tuple[str, ...]:
        return tuple(f"k{number}" for number in range(1, self.keys + 1))

    def checked(self) -> RunConfig:
        """Itself; raises UserError with the cure where it makes no sense."""
        _check_choice("backend", self.backend, BACKENDS)
        _check_choice("workload", self.workload, WORKLOADS)
        _check_choice("runtime", self.runtime, RUNTIMES)
        for text in self.nemesis:
            parse_nemesis(text)
        _check_range("--clients", self.clients, 1, MAX_CLIENTS)
        _check_range("--keys", self.keys, 1, 1000)
        _check_range("--ttl", self.ttl_ms, SHORTEST_TTL_MS, 3_600_000, "ms")
        _check_range("--time-limit", self.time_limit_ms, 1000, 86_400_000, "ms")
        _check_range("--think", self.think_ms, 1, self.time_limit_ms, "ms")
        if not self.out.isprintable():
            raise UserError("--out has characters that cannot be written", cure="choose another")
        self.backend_under_test().check_ttl(self.ttl_ms)
        self._check_guard()
        if self.check_validity and not self.workload_to_run().needs_storage:
            raise UserError(
                f"--check-validity is done before reads and writes; workload {self.workload} "
                "has none",
                cure="use --workload register",
            )
        return self

    def _check_guard(self) -> None:
        if self.guard is Guard.NONE:
            return
        if not self.workload_to_run().needs_storage:
            raise UserError(
                f"--guard {self.guard} needs a storage, and workload {self.workload} has none",
                cure="use --workload register",
            )
        if self.guard is Guard.FENCE and not self.backend_under_test().promises.fencing:
            able = [name for name, backend in BACKENDS.items() if backend.promises.fencing]
            raise UserError(
                f"{self.backend} gives no fencing tokens, so the storage has none to check",
                cure=f"--guard cas works with every lock; tokens come with: {', '.join(able)}",
            )

    def command(self) -> str:
        """What runs this again: every choice is spelled out, since defaults can be configured."""
        words = ["lockcheck", "run", "--backend", self.backend]
        for text in self.nemesis:
            words += ["--nemesis", text]
        for option, value in self._plain_options().items():
            words += [option, value]
        words.append("--check-validity" if self.check_validity else "--no-check-validity")
        stop = self.stop_on_violation
        words.append("--stop-on-violation" if stop else "--no-stop-on-violation")
        return shlex.join([*words, "--seed", str(self.seed)])

    def _plain_options(self) -> dict[str, str]:
        return {
            "--workload": self.workload,
            "--runtime": self.runtime,
            "--clients": str(self.clients),
            "--keys": str(self.keys),
            "--ttl": duration_words(self.ttl_ms),
            "--time-limit": duration_words(self.time_limit_ms),
            "--think": duration_words(self.think_ms),
            "--guard": str(self.guard),
            "--out": self.out,
        }

    def save(self, path: Path) -> None:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n")


def _check_choice(what: str, value: str, choices: Iterable[str]) -> None:
    names = list(choices)
    if value not in names:
        raise UserError(f"there is no {what} {value!r}", cure=f"choose from: {', '.join(names)}")


def _check_range(option: str, value: int, low: int, high: int, unit: str = "") -> None:
    if not low <= value <= high:
        raise UserError(
            f"{option} {value}{unit} is out of range",
            cure=f"between {low}{unit} and {high}{unit}",
        )
