"""Simulated clients write history as the real ones do, and by the same code, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from lockcheck.client.recorder import Recorder
from lockcheck.history import Event
from tests.simulation.world import World


@dataclass(frozen=True)
class _Tape:
    write: Callable[[Event], object]

    def close(self) -> None: ...


def recorder_of(
    world: World, record: Callable[[Event], object], node: str, index: int, clients: int
) -> Recorder:
    def now_ns() -> int:
        return world.now_ns

    return Recorder(_Tape(record), node, index, clients, origin_ns=0, stall_ms=inf, now_ns=now_ns)
