"""The storage served an older value than it had accepted, by its own numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.columns.stored import Stored
from lockcheck.checker.finding import Blame, Code, Culprit, Finding
from lockcheck.checker.wording import Words
from lockcheck.history import Operation
from lockcheck.history.ordering import order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import Op, Outcome
from lockcheck.words import plain


def find(case: Case) -> Iterator[Finding]:
    for stale in case.stale_reads.values():
        blame, missed = Blame(Culprit.STORAGE), stale.missed.operation
        yield Finding(
            code=Code.STALE_READ,
            key=stale.read.key,
            time_ns=stale.read.last_ns,
            effect=CHECK.effect(case.terms, blame),
            holds=(),
            operations=(stale.read,) if missed is None else (missed, stale.read),
            length_ns=0,
            blame=blame,
        )


def _reads_something_else(scan: Scan, written: Stored) -> bool:
    """A read that was served after a write has not the value of that write."""
    table, columns = scan.table, scan.columns
    is_read = table.f[columns.numbered] == Op.READ
    is_read &= table.outcome[columns.numbered] == Outcome.OK
    read, number = columns.numbered[is_read], columns.number[is_read]
    if not len(read):
        return False
    written = written.take(written.accepted)
    key = np.concatenate((written.key, table.key[read]))
    value = np.concatenate((written.value, table.result[read]))
    order = order_by(key, np.concatenate((written.seq, number)))
    is_write = order < len(written)
    last = np.maximum.accumulate(np.where(is_write, np.arange(len(order)), -1))
    known = (last >= 0) & (key[order[last]] == key[order])
    return bool((known & (value[order[last]] != value[order])).any())


def _pair(finding: Finding) -> tuple[Operation | None, Operation]:
    """The write that was missed, and the read."""
    *missed, read = finding.operations
    return (missed[0] if missed else None), read


def _title(finding: Finding) -> str:
    _, read = _pair(finding)
    served = plain(read.answer.value if read.answer else "")
    return f"The storage served {plain(read.node)} the old value {served} of {plain(finding.key)}"


def _did(finding: Finding) -> str:
    missed, read = _pair(finding)
    served = plain(read.answer.value if read.answer else "")
    newer = plain(missed.invoke.value) if missed else "a newer value"
    return f"it served {served} to {plain(read.node)} although it had accepted {newer}"


CURE = (
    "Reads under the lock have to go to where writes are accepted, not to a replica or a cache "
    "that may lag; or each write has to say what it was based on, and the storage to compare it."
)
WORDS = Words(
    one="stale read",
    many="stale reads",
    kept="no old value read",
    precedence=11,
    title=_title,
    last=lambda _: ("storage", "served a value that it had replaced before"),
    did=_did,
    cure=CURE,
    object_cure=CURE,
)
CHECK = Check(
    code=Code.STALE_READ,
    meaning="the storage served an older value than it had accepted, by its own numbers",
    explanation="""\
A storage that numbers what it serves (`seq`) shows the order in which it did. A read with a higher
number than a write has to return what that wrote, or what was written after it. One that returns an
older value came from a replica or a cache that lagged: a client that reads under the lock, and
writes what it computed from that, overwrites an update, and neither it nor the lock is to blame.

It is reported where the value was there before the last write that was accepted. Without a ledger a
write may be unknown: so all numbers between the two have to be those of known operations. Numbers
that a read shares with a write are versions, and prove nothing.""",
    find=find,
    words=WORDS,
    screen=Screen("a read has not the last value written", stored=_reads_something_else),
    endangers_data=True,
    by_storage=True,
)
