"""Where a client stays while a fault is aimed at it.

The nemesis puts marks into the client's folder `aims`, each named after a point: `write-7`. While
one is there, the client goes no further than that point. Work may take long. At the other points
the client waits, as real code does only briefly: it notes in the mark that it waits there, and goes
on when the mark is gone, or soon after, whatever becomes of the fault.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

AIMS = "aims"
POLL_S = 0.002
# Parts of a lease: the wait for a fault must not make the client late.
LONGEST_WAIT = 0.25
LATEST_AT_WORK = 0.9


class Point(StrEnum):
    WORK = "work"  # at work under the lock, for as long as the mark is there
    LEASE = "lease"  # the same, while most of its lease has not run out
    WRITE = "write"  # a write is allowed and recorded, but not sent yet
    RELEASE = "release"  # the work is done, the release is not recorded yet


def mark(point: Point, number: int) -> str:
    return f"{point}-{number}"


def waits_there(path: Path) -> bool:
    """Whether the client has noted in this mark that it waits there."""
    with suppress(OSError):
        return path.stat().st_size > 0
    return False


class Aims:
    """The marks that the nemesis has put for this client."""

    def __init__(self, folder: Path, ttl_ms: int) -> None:
        self._folder = folder
        self._longest_s = LONGEST_WAIT * ttl_ms / 1000

    def at(self, point: Point) -> list[Path]:
        """The marks for this point."""
        return [path for path in self._folder.iterdir() if path.name.startswith(f"{point}-")]

    def wait_at(self, point: Point) -> None:
        """Waits while there is a mark, but not for long; goes on at once if it was stopped."""
        until = time.monotonic() + self._longest_s
        while (marks := self.at(point)) and time.monotonic() < until:
            _note(marks, size=1)
            time.sleep(POLL_S)
        _note(marks, size=0)


def _note(marks: list[Path], *, size: int) -> None:
    for path in marks:
        with suppress(FileNotFoundError):  # the nemesis has removed it meanwhile
            os.truncate(path, size)
