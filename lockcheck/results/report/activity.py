"""When a lock was granted, after how long a wait, and how long it was held: of the whole history,
also where only a part of it was read event by event."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lockcheck.checker.finding import Judgement
from lockcheck.checker.whole_run.ungranted import Ungrants
from lockcheck.history import Ending, History, Hold, Notice
from lockcheck.history.ordering import order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import NEVER, Ints, Op, Outcome, Table
from lockcheck.results.story.seen import last_moment_ns


@dataclass(frozen=True, slots=True)
class Activity:
    """All times are in ns. Rows are grants, in the order of their answers."""

    granted: Ints
    waited: Ints  # since the first request; those that were refused before the grant included
    held: Ints | None  # NEVER: its end is not known; None: that of no hold is known for certain
    ungranted: Ungrants
    end_ns: int


def activity_of(judgement: Judgement) -> Activity | None:
    """None: no lock was granted, or its times are no measurement or not known."""
    history, scan = judgement.case.history, judgement.scan
    if scan is not None and len(scan.holds.granted):
        found = _of_columns(scan)
    elif history.holds and history.end_ns < NEVER and _is_whole(judgement):
        found = _of_events(history)
    else:
        return None
    return replace(found, end_ns=max(found.end_ns, last_moment_ns(history)))


def _is_whole(judgement: Judgement) -> bool:
    return len(judgement.case.history.operations) == judgement.counts.operations


def _of_events(history: History) -> Activity:
    row_of = {id(operation): row for row, operation in enumerate(history.operations)}
    rows = np.array([row_of[id(hold.acquire)] for hold in history.holds], np.int64)
    held = np.array([_held_ns(hold) for hold in history.holds], np.int64)
    return _activity(history.table, rows, held)


def _held_ns(hold: Hold) -> int:
    known = hold.ending in (Ending.LOST, Ending.EXPIRED) or hold.release is not None
    return hold.end_ns - hold.start_ns if known else NEVER


def _of_columns(scan: Scan) -> Activity:
    holds, table = scan.holds, scan.table
    released = (holds.ended >= 0) & (table.f[holds.ended] == Op.RELEASE)
    held = np.where(released, holds.end - holds.start, NEVER)
    return _activity(table, holds.granted, held if _ended_by_release(scan) else None)


def _ended_by_release(scan: Scan) -> bool:
    """Whether holds ended when they were released, and not before: see `Holds`."""
    terms, table = scan.terms, scan.table
    lost = any(event.f == Notice.LOST for event in scan.context.events)
    refused = ((table.f == Op.RENEW) & (table.outcome == Outcome.FAIL)).any()
    return not (lost or refused or terms.check_validity or terms.released_by_anyone)


def _activity(table: Table, rows: Ints, held: Ints | None) -> Activity:
    granted = table.end[rows]
    order = order_by(granted)
    waited = granted - _asked_since(table)[rows]
    last = np.where(table.end == NEVER, table.start, table.end)
    return Activity(
        granted[order],
        waited[order],
        None if held is None else held[order],
        Ungrants.of(table),
        int(last.max()),
    )


def _asked_since(table: Table) -> Ints:
    """For each request when its client began to ask: with it, or with the first that was refused
    since its last grant."""
    asked = np.flatnonzero(table.f == Op.ACQUIRE)
    rows = asked[order_by(table.key[asked], table.process[asked])]
    granted = table.outcome[rows] == Outcome.OK
    first = np.append(True, granted[:-1] | ~table.same_client(rows[:-1], rows[1:]))
    since = np.zeros(len(table), np.int64)
    since[rows] = table.start[rows][np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))]
    return since
