"""What proves that a clock runs as it was set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock.engines import Clocks
from lockcheck.nemesis.clock.motion import Motion
from lockcheck.nemesis.clock.proof import prove
from lockcheck.nemesis.clock.skew import Skew, true_ns
from lockcheck.servers.base import Clock
from tests.processes import OneProcess

QUIET_MOMENTS = 20  # that are waited for


class SlowToRead(Clocks):
    """Clocks of two processes that go at this rate. Each look at them takes so long."""

    engine = "a test"
    readable = (Clock.WALL,)
    tolerance_ns = 1

    def __init__(self, rate: float, delays_ms: list[int], errs_ns: int = 0) -> None:
        self._rate = rate
        self._delays_ms = delays_ms
        self._errs_ns = errs_ns  # each reading but the first
        self._read = 0
        self._since_ns = true_ns(Clock.WALL)

    async def take(self, skew: Skew, now_ns: Callable[[], int]) -> int:
        raise NotImplementedError

    def apply(self, skew: Skew) -> None:
        raise NotImplementedError

    def are_set_to(self, skew: Skew) -> bool:
        raise NotImplementedError

    async def offsets_ns(self, clock: Clock) -> list[int]:
        passed_ns = true_ns(clock) - self._since_ns
        await asyncio.sleep((self._delays_ms.pop(0) if self._delays_ms else 0) / 1000)
        self._read += 1
        return [round((self._rate - 1) * passed_ns) + self._errs_ns * (self._read > 1)] * 2

    async def give_back(self) -> None:
        raise NotImplementedError


def proven(rate: float, *delays_ms: int, errs_ns: int = 0) -> str:
    clocks = SlowToRead(rate, [*delays_ms], errs_ns)
    return asyncio.run(prove(Motion(rate=0.7), OneProcess("r1", 0), (Clock.WALL,), clocks))


def refused_at_last(rate: float) -> None:
    for _ in range(QUIET_MOMENTS):
        proven(rate)


@pytest.mark.parametrize("delays_ms", [(0, 0), (0, 40), (40, 0)])
def test_a_rate_is_proven_where_reading_it_takes_long(delays_ms: tuple[int, int]) -> None:
    assert "of its rate" in proven(0.7, *delays_ms)


def test_a_rate_is_proven_where_readings_err_by_half_a_millisecond() -> None:
    assert "of its rate" in proven(0.7, errs_ns=450_000)


def test_a_rate_that_is_hardly_another_is_refused() -> None:
    """Where the machine is busy, a reading takes so long that it proves nothing against it."""
    with pytest.raises(FaultError, match=r"runs at 0\.70[12]\d of its rate, not at 0\.7$"):
        refused_at_last(0.7018)


def test_another_rate_is_refused() -> None:
    with pytest.raises(FaultError, match=r"runs at 0\.6"):
        proven(0.68, 0, 0)
