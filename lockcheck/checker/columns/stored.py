"""The writes as a storage numbered and remembered them, as columns.

Only what fits together without a gap is taken: each entry of the ledger is of one write that some
client sent, and each number that a client got is in the ledger. The rest needs the events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from lockcheck.checker.evidence.writes import GUARDS_WORDS
from lockcheck.history.ordering import order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import NOTHING, Codes, Ints, Mask, Op, Outcome


@dataclass(frozen=True, slots=True)
class Stored:
    """A place for each write, by keys, and in the order of the numbers."""

    entry: Ints  # which entry of the ledger it is; -1 where there is none
    row: Ints  # which operation
    key: Codes
    seq: Ints
    accepted: Mask
    by_guard: Mask  # refused in the guard's own words
    value: Codes
    base: Codes
    hold: Ints  # in which, or after which, it was sent: a place in the scan's holds, or -1

    def __len__(self) -> int:
        return len(self.entry)

    def take(self, places: Mask | Ints) -> Stored:
        return Stored(*(getattr(self, column.name)[places] for column in fields(self)))


def stored(scan: Scan) -> Stored | None:
    """None: something does not fit together, or is of a kind that only events show."""
    return _by_the_ledger(scan) if len(scan.columns.ledger.at) else _by_the_answers(scan)


def _by_the_ledger(scan: Scan) -> Stored | None:
    ledger = scan.columns.ledger
    written = np.flatnonzero(ledger.f == Op.WRITE)
    seq = ledger.seq[written]
    if scan.columns.has_foreign_owners or (np.diff(seq) <= 0).any():
        return None
    row = _rows(scan, written)
    if row is None:
        return None
    accepted = ledger.outcome[written] == Outcome.OK
    outcome = scan.table.outcome[row]
    contradicted = np.where(accepted, outcome == Outcome.FAIL, outcome == Outcome.OK)
    base = np.where(ledger.base[written] == NOTHING, bases(scan, row), ledger.base[written])
    hold = _holds(scan, row)
    if contradicted.any() or (hold < 0).any():
        return None
    order = order_by(ledger.key[written], np.arange(len(written)))
    every = Stored(
        entry=written,
        row=row,
        key=ledger.key[written],
        seq=seq,
        accepted=accepted,
        by_guard=_by_guard(scan, written),
        value=ledger.value[written],
        base=base.astype(np.int32),
        hold=hold,
    )
    return every.take(order)


def _by_the_answers(scan: Scan) -> Stored | None:
    """Of a storage without a ledger: by the answers that its clients got."""
    table, columns = scan.table, scan.columns
    is_write = table.f[columns.numbered] == Op.WRITE
    row, seq = columns.numbered[is_write], columns.number[is_write]
    order = order_by(table.key[row], seq)
    row, seq = row[order], seq[order]
    twice = (np.diff(table.key[row]) == 0) & (np.diff(seq) == 0)
    if twice.any() or (table.outcome[row] != Outcome.OK).any():
        return None
    return Stored(
        entry=np.full(len(row), -1),
        row=row,
        key=table.key[row],
        seq=seq,
        accepted=np.full(len(row), fill_value=True),
        by_guard=np.full(len(row), fill_value=False),
        value=table.argument[row],
        base=bases(scan, row),
        hold=_holds(scan, row),
    )


def _rows(scan: Scan, written: Ints) -> Ints | None:
    """The operation of each entry: by the number that both have, or by the value."""
    table, ledger, columns = scan.table, scan.columns.ledger, scan.columns
    is_write = table.f[columns.numbered] == Op.WRITE
    numbered, number = columns.numbered[is_write], columns.number[is_write]
    place = np.searchsorted(ledger.seq[written], number)
    if (place >= len(written)).any() or (ledger.seq[written][place] != number).any():
        return None
    row = np.full(len(written), -1, np.int64)
    row[place] = numbered
    if len(np.unique(place)) != len(place) or not _by_marks(scan, written, row, numbered):
        return None
    same = (
        (table.process[row] == ledger.of[written])
        & (table.key[row] == ledger.key[written])
        & (table.argument[row] == ledger.value[written])
    )
    return row if same.all() else None


def _by_marks(scan: Scan, written: Ints, row: Ints, numbered: Ints) -> bool:
    """Finds those whose number no client got; there are few. False: one is missing."""
    table, ledger = scan.table, scan.columns.ledger
    sent = np.setdiff1d(np.flatnonzero(table.f == Op.WRITE), numbered)
    marks = tuples(table.process[sent], table.key[sent], table.argument[sent])
    known = dict(zip(marks, sent.tolist(), strict=True))
    if len(known) != len(sent):
        return False
    missing = np.flatnonzero(row < 0)
    at = written[missing]
    asked = tuples(ledger.of[at], ledger.key[at], ledger.value[at])
    row[missing] = [known.pop(mark, -1) for mark in asked]
    return bool((row >= 0).all())


def tuples(*columns: Ints | Codes) -> Iterator[tuple[int, ...]]:
    """Row by row, as Python's numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


def bases(scan: Scan, row: Ints) -> Codes:
    """The values from which the clients computed them, as they recorded it."""
    base = np.full(len(scan.table), NOTHING, np.int32)
    base[scan.columns.based] = scan.columns.base
    return base[row]


def _by_guard(scan: Scan, written: Ints) -> Mask:
    why, symbols = scan.columns.ledger.why[written], scan.table.symbols
    reasons = [n for n in np.unique(why).tolist() if n != NOTHING]
    words = [n for n in reasons if str(symbols.value(n)).startswith(GUARDS_WORDS)]
    return np.isin(why, words)


def _holds(scan: Scan, row: Ints) -> Ints:
    """The last hold of its client and key that had begun, or -1."""
    table, holds = scan.table, scan.holds
    both = np.concatenate((holds.granted, row))
    time = np.concatenate((holds.start, table.start[row]))
    place = np.arange(len(both))
    is_write = place >= len(holds.granted)
    order = order_by(table.process[both], table.key[both], time, is_write.astype(np.int8))
    last = np.maximum.accumulate(np.where(is_write[order], -1, place))
    found = np.where(last >= 0, order[last], -1)
    theirs = (
        (found >= 0)
        & (table.process[both[found]] == table.process[both[order]])
        & (table.key[both[found]] == table.key[both[order]])
    )
    hold = np.full(len(both), -1, np.int64)
    hold[order] = np.where(theirs, found, -1)
    return hold[len(holds.granted) :]
