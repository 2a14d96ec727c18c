from __future__ import annotations

from pathlib import Path

import pytest

from lockcheck.config import RunConfig
from lockcheck.run.room import available_bytes, too_long

GIGABYTE = 1_000_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("hours", "available", "said"),
    [
        (1, 8 * GIGABYTE, ""),
        (24, 64 * GIGABYTE, ""),
        (24, 8 * GIGABYTE, "26.0 GB to judge, and 8.0 GB are available; --time-limit 25200s fits"),
        (24, GIGABYTE // 100, "0.0 GB are available"),
        (24, None, ""),
    ],
)
def test_what_cannot_be_judged_is_said_before(hours: int, available: int | None, said: str) -> None:
    config = RunConfig(backend="redis", seed=1, clients=5, time_limit_ms=hours * HOUR_MS)
    told = too_long(config, available)
    assert said in told
    assert bool(said) == bool(told)


def test_what_is_available(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    assert available_bytes(meminfo) is None
    meminfo.write_text("MemTotal:       100 kB\nMemAvailable:    40 kB\n")
    assert available_bytes(meminfo) == 40 * 1024
    assert available_bytes()
