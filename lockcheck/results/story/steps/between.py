"""The one step that sums up all holds that came and went while the story was about others."""

from __future__ import annotations

from collections.abc import Iterable

from lockcheck.checker.evidence.order import HoldIndex
from lockcheck.history import F, Hold, Operation
from lockcheck.results.story.incidents import identity
from lockcheck.results.story.steps.cast import Cast
from lockcheck.results.story.steps.step import Kind, Step
from lockcheck.words import amount, lock_name, moment, names_with_counts, plain

WEIGHT = 96


def between(cast: Cast, operations: Iterable[Operation], overlap: Kind) -> list[Step]:
    """`operations`: all that there were while these holds lasted."""
    holds = cast.others
    if not holds:
        return []
    nodes = [hold.node for hold in holds]
    who = plain(nodes[0]) if len(set(nodes)) == 1 else "others"
    until = moment(max(hold.end_ns for hold in holds))
    by = "" if who != "others" else f" by {names_with_counts(nodes)}"
    start = f"{amount(len(holds), 'more hold')} of {lock_name(holds[0].key)}{by} came and went"
    writes = _writes_of(holds, operations)
    released = [identity(h.release) for h in holds if h.release is not None]
    taken = sum(release in cast.foreign_releases for release in released)
    stale = sum(identity(write) in cast.stale for write in writes)
    parts = [f"{start} until {until}", *_accepted(cast, writes, stale)]
    if refused := sum(write.failed for write in writes):
        parts.append(f"{amount(refused, 'write')} refused")
    if taken:
        parts.append(f"{amount(taken, 'release')} of a lock that was no longer their own")
    kind = Kind.HARM if stale else overlap if taken else Kind.LOCK
    return [Step(holds[0].start_ns, who, "; ".join(parts), kind, WEIGHT)]


def _accepted(cast: Cast, writes: list[Operation], stale: int) -> list[str]:
    accepted = [write for write in writes if write.ok]
    if not accepted:
        return []
    which = cast.numbers.range(accepted) or amount(len(accepted), "write")
    worse = f", {stale:,} of them stale" if stale else ""
    return [f"{which} accepted{worse}"]


def _writes_of(holds: tuple[Hold, ...], operations: Iterable[Operation]) -> list[Operation]:
    index = HoldIndex(holds)
    sent = ((o, index.of(o)) for o in operations if o.f == F.WRITE)
    return [o for o, hold in sent if hold is not None and o.start_ns <= hold.end_ns]
