"""What a run reports while it lasts, as typed notes; they become words where they are shown."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import IO

import msgspec

from lockcheck.runs.record import Record


class Stop(StrEnum):
    """Why no further operations begin."""

    TIME_LIMIT = "time-limit"
    OVERLAP = "overlap"
    TOO_MANY_HOLDERS = "too-many-holders"  # of a lock that several clients may hold
    INTERRUPTED = "interrupted"


class _Note(msgspec.Struct, frozen=True, tag_field="note"):
    pass


class Planned(_Note, frozen=True, tag="planned"):
    rows: tuple[tuple[str, str], ...]  # label and value


class Preparing(_Note, frozen=True, tag="preparing"):
    """What the runtime does before the nodes start, in its own words."""

    text: str


class LeaseOutlived(_Note, frozen=True, tag="lease-outlived"):
    """The work under the lock takes longer than the lease, so some holders will outlive theirs."""


class Ready(_Note, frozen=True, tag="ready"):
    """All nodes are up; the clients begin."""

    nodes: int
    took_ms: float


class LiveState(_Note, frozen=True, tag="live"):
    elapsed_s: float
    operations: int
    acquisitions: int
    holders: tuple[str, ...]  # `k1: c3`
    faults: tuple[str, ...]  # `pause of c3`
    overlaps: int


class Stopping(_Note, frozen=True, tag="stopping"):
    why: Stop


class Kept(_Note, frozen=True, tag="kept"):
    """The servers keep running until the run is interrupted."""

    commands: dict[str, str]  # by the name of a node: how to enter it


class Judged(_Note, frozen=True, tag="judged"):
    """The history was judged, and everything is written to the run's folder."""

    record: Record


Note = Planned | Preparing | LeaseOutlived | Ready | LiveState | Stopping | Kept | Judged
Watcher = Callable[[Note], None]  # called on the thread that executes the run


def silent(_note: Note) -> None:
    """Shows nothing."""


def json_lines(out: IO[bytes]) -> Watcher:
    """Writes each note as a line of JSON; its kind is in the field `note`."""

    def write(note: Note) -> None:
        out.write(msgspec.json.encode(note) + b"\n")
        out.flush()

    return write
