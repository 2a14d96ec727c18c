"""Holds that faults struck, in a history that is judged from its columns."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from lockcheck.checker.whole_run.exercised import RUNS
from lockcheck.checker.whole_run.freed import FREEING
from lockcheck.checker.whole_run.soundness import was_asked
from lockcheck.history import FaultSpan, Notice
from lockcheck.history.scan import Scan
from lockcheck.history.table import NOTHING, Codes, Ints, Op, Outcome

LATELY = 1_000  # grants: a hold from before them that still lasts is passed over
AIMED_AT = 8  # faults of one kind of which one will have struck a holder


def doubtful(scan: Scan) -> list[FaultSpan]:
    """Proven faults that may not have struck a client at work: see `exercised`."""
    proven = [fault for fault in scan.context.faults if fault.proven_ns is not None]
    return [fault for fault in proven if not _is_felt(scan, fault)]


def is_tellable(scan: Scan, fault: FaultSpan) -> bool:
    """Whether columns show if it had an effect: of one key, where all struck clients released."""
    healed_ns = fault.healed_ns
    if healed_ns is None or len(np.unique(scan.table.key)) > 1:
        return False
    kept = _kept(scan)[0]
    kept = kept[scan.holds.start[kept] <= healed_ns]
    nodes = [scan.table.symbols.number(name) for name in fault.nodes]
    return not np.isin(scan.columns.node[scan.holds.granted[kept]], nodes).any()


def meanwhile(scan: Scan, faults: list[FaultSpan]) -> Iterator[Ints]:
    """All that was under way during each of them, and what may have been."""
    table = scan.table
    if faults:
        yield from np.flatnonzero(table.outcome == Outcome.INFO)[:, None]
    for fault in faults:
        healed_ns = fault.start_ns if fault.healed_ns is None else fault.healed_ns
        ends = (fault.worked_from_ns, healed_ns)
        first, past = np.searchsorted(table.start, ends, "right").tolist()
        yield np.arange(max(0, first - 1), min(len(table), past + 1))
        yield from _freed_by(scan, fault, healed_ns)


def _is_felt(scan: Scan, fault: FaultSpan) -> bool:
    """By what was begun meanwhile."""
    since_ns, healed_ns = fault.worked_from_ns, fault.healed_ns
    if healed_ns is None:
        return False
    table, node = scan.table, scan.columns.node
    first, past = np.searchsorted(table.start, (since_ns, healed_ns), "right")
    begun = np.arange(first, max(first, past))
    begun = begun[table.start[begun] < healed_ns]
    asks = begun[np.isin(table.f[begun], (Op.ACQUIRE, Op.RELEASE, Op.RENEW))]
    if not scan.clients.issuperset(fault.nodes) or not fault.nodes:
        return len(asks) > 0
    nodes = [table.symbols.number(name) for name in fault.nodes]
    if fault.effect in RUNS and np.isin(node[begun], nodes).any():
        return True
    others = asks[(table.f[asks] == Op.ACQUIRE) & ~np.isin(node[asks], [*nodes, NOTHING])]
    held = _held_at(scan, nodes, since_ns)
    return bool(np.isin(table.key[others], held).any())


def _held_at(scan: Scan, nodes: list[int], at_ns: int) -> Codes:
    """Locks that one of them certainly held then. Where clients watch their lease, or got notice of
    a loss, the columns do not show when their belief ended."""
    holds, table = scan.holds, scan.table
    refused = (table.f == Op.RENEW) & (table.outcome == Outcome.FAIL)
    lost = any(event.f == Notice.LOST for event in scan.context.events)
    if scan.terms.check_validity or lost or refused.any():
        return np.zeros(0, np.int32)
    past = int(np.searchsorted(holds.start, at_ns, "right"))
    then = np.arange(max(0, past - LATELY), past)
    theirs = np.isin(scan.columns.node[holds.granted[then]], nodes)
    theirs &= (holds.start[then] <= at_ns) & (holds.end[then] > at_ns)
    return table.key[holds.granted[then[theirs]]]


def all_granted_in_the_quiet(scan: Scan) -> bool:
    """Each lock was granted once more when all faults had been healed: see `progress`."""
    quiet_ns, table = scan.context.quiet_ns, scan.table
    if quiet_ns is None:
        return True
    acquires = table.f == Op.ACQUIRE
    granted = acquires & (table.outcome == Outcome.OK) & (table.end >= quiet_ns)
    return len(np.setdiff1d(table.key[acquires], table.key[granted])) == 0


def struck(scan: Scan) -> Iterator[Ints]:
    """Holds of clients that a fault ended, or cut off, each with the first that was granted after
    it; and some of those that a fault was aimed at."""
    for fault in scan.context.faults:
        if fault.effect in FREEING and fault.worked_by_ns is not None:
            yield from _freed_by(scan, fault, fault.worked_by_ns)
    for asked in scan.terms.at_holders:
        aimed = (fault for fault in scan.context.faults if was_asked(fault, asked))
        for fault in islice(aimed, AIMED_AT):
            yield from _freed_by(scan, fault, fault.worked_by_ns or fault.start_ns)


def _freed_by(scan: Scan, fault: FaultSpan, struck_ns: int) -> Iterator[Ints]:
    """Of one lock, so that its holds are in the order of their starts."""
    table, holds = scan.table, scan.holds
    kept, latest_end = _kept(scan)
    past = int(np.searchsorted(holds.start, struck_ns, "right"))
    first = int(np.searchsorted(latest_end, fault.start_ns, "left"))
    then = np.union1d(np.arange(first, max(first, past)), kept[kept < past])
    nodes = [table.symbols.number(name) for name in fault.nodes]
    theirs = then[np.isin(scan.columns.node[holds.granted[then]], nodes)]
    for place in theirs.tolist():
        yield holds.granted[[place, *range(past, min(past + 2, len(holds.granted)))]]


def _kept(scan: Scan) -> tuple[Ints, Ints]:
    """The holds that were never given back, and how long the others up to each one lasted."""
    holds = scan.holds
    kept = (holds.ended < 0) | (scan.table.f[holds.ended] == Op.ACQUIRE)
    lasted = np.where(kept, holds.start, holds.end)
    return np.flatnonzero(kept), np.maximum.accumulate(lasted)
