"""Where a client stays while a fault is aimed at it.

The nemesis puts marks into the client's folder `aims`, each named after a point: `write-7`. While
one is there, the client goes no further than that point. Work may take long. At the other points it
stands still, which real code does for a moment only: so it says in the mark that it stands there,
and goes on when the mark is gone, or soon, whatever becomes of the fault.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

AIMS = "aims"
POLL_S = 0.002
# It must not be us who make it late.
LONGEST_STAND = 0.25  # of a lease
LATEST_AT_WORK = 0.9


class Point(StrEnum):
    WORK = "work"  # at work under the lock, for as long as the mark is there
    LEASE = "lease"  # the same, while most of its lease has not run out
    WRITE = "write"  # a write is written down, and was allowed to be; it has not been sent
    RELEASE = "release"  # the work is done, the release is not written down


def mark(point: Point, number: int) -> str:
    return f"{point}-{number}"


def stands_there(path: Path) -> bool:
    """Whether the client says in this mark that it stands there."""
    with suppress(OSError):
        return path.stat().st_size > 0
    return False


class Aims:
    def __init__(self, folder: Path, ttl_ms: int) -> None:
        self._folder = folder
        self._longest_s = LONGEST_STAND * ttl_ms / 1000

    def at(self, point: Point) -> list[Path]:
        """The marks for this point."""
        return [path for path in self._folder.iterdir() if path.name.startswith(f"{point}-")]

    def stand(self, point: Point) -> None:
        """A client that was stopped meanwhile has waited long enough, and goes on."""
        until = time.monotonic() + self._longest_s
        while (marks := self.at(point)) and time.monotonic() < until:
            _say(marks, size=1)
            time.sleep(POLL_S)
        _say(marks, size=0)


def _say(marks: list[Path], *, size: int) -> None:
    for path in marks:
        with suppress(FileNotFoundError):  # the nemesis has let go meanwhile
            os.truncate(path, size)
