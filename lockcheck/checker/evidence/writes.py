"""The writes that the storage served, each with the client's operation and its hold.

The storage's ledger comes first: it has writes whose answer never arrived. An acknowledged write
that it lacks is added from the client's answer; else the gap in the versions would look like a lost
update.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lockcheck.checker.evidence.order import HoldIndex
from lockcheck.history import F, History, Hold, LedgerEntry, Operation

GUARDS_WORDS = ("fenced", "cas")  # how the reason of a guard's refusal begins

# By key, the first and the last number of each stretch of writes that a part of a history has in
# full: writes before or after a stretch change no finding in it.
Stretches = Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class StoredWrite:
    seq: int
    key: str
    accepted: bool
    value: object
    base: object
    reason: str
    operation: Operation | None  # None: no client recorded it
    hold: Hold | None  # in which, or after which, it was sent

    @property
    def acknowledged(self) -> bool:
        return self.operation is not None and self.operation.ok


@dataclass(frozen=True, slots=True)
class Ledger:
    writes: tuple[StoredWrite, ...]  # in the order in which the storage served them
    kept: bool  # whether the storage kept a ledger; else these are the clients' answers
    missing: tuple[Operation, ...]  # acknowledged, but the ledger lacks them
    unclaimed: tuple[LedgerEntry, ...]  # in the ledger, but recorded by no client
    stretches: Stretches | None = None  # None: all writes are known

    def accepted(self) -> Iterable[list[StoredWrite]]:
        """The accepted writes of each key, or of each stretch of a key, in order."""
        groups: dict[tuple[str, int], list[StoredWrite]] = {}
        for write in self.writes:
            stretch = self._stretch(write)
            if write.accepted and stretch is not None:
                groups.setdefault((write.key, stretch), []).append(write)
        return groups.values()

    def _stretch(self, write: StoredWrite) -> int | None:
        """The write's stretch; None: it lies outside of all that are known in full."""
        if self.stretches is None:
            return 0
        known = self.stretches.get(write.key, ())
        place = bisect_right(known, write.seq, key=lambda stretch: stretch[0]) - 1
        return place if place >= 0 and write.seq <= known[place][1] else None

    @property
    def refused(self) -> list[StoredWrite]:
        return [write for write in self.writes if not write.accepted]


def canonical(value: object) -> Hashable:
    """A hashable form of a value: equal for the same JSON only (`1` is not `true`)."""
    if value is None or type(value) in (str, int):
        return value
    return (json.dumps(value, sort_keys=True, default=repr),)


def read_ledger(history: History, index: HoldIndex, stretches: Stretches | None = None) -> Ledger:
    sent = [operation for operation in history.operations if operation.f == F.WRITE]
    entries = [entry for entry in history.ledger if entry.f == F.WRITE]
    matcher = _Matcher(sent)
    pairs = [(entry, matcher.operation_of(entry)) for entry in entries]
    matched = {id(operation) for _, operation in pairs}
    numbered = [o for o in sent if number_of(o) is not None and id(o) not in matched]
    writes = [_in_ledger(entry, operation, index) for entry, operation in pairs]
    writes += [_answered(o, index) for o in numbered if o.ok or (o.failed and not entries)]
    return Ledger(
        writes=tuple(sorted(writes, key=lambda write: write.seq)),
        kept=bool(history.ledger),
        missing=tuple(o for o in numbered if o.ok) if history.ledger else (),
        unclaimed=tuple(entry for entry, operation in pairs if operation is None),
        stretches=stretches,
    )


def number_of(operation: Operation) -> int | None:
    return operation.answer.seq if operation.answer else None


class _Matcher:
    """Finds the operation of a ledger entry: by its number, or by its mark, a value of its own."""

    def __init__(self, sent: Iterable[Operation]) -> None:
        self._by_number: dict[tuple[int | str, str, int], Operation] = {}
        self._by_mark: defaultdict[Hashable, deque[Operation]] = defaultdict(deque)
        for operation in sent:
            number = number_of(operation)
            if number is not None:
                self._by_number[operation.owner, operation.key, number] = operation
            else:
                mark = _mark(operation.owner, operation.key, operation.invoke.value)
                self._by_mark[mark].append(operation)

    def operation_of(self, entry: LedgerEntry) -> Operation | None:
        numbered = self._by_number.pop((entry.process, entry.key, entry.seq), None)
        if numbered is not None:
            return numbered
        marked = self._by_mark.get(_mark(entry.process, entry.key, entry.value))
        return marked.popleft() if marked else None


def _mark(process: int | str, key: str, value: object) -> Hashable:
    return process, key, canonical(value)


def _in_ledger(entry: LedgerEntry, operation: Operation | None, index: HoldIndex) -> StoredWrite:
    base = entry.base
    if base is None and operation is not None:
        base = operation.invoke.base
    hold = index.of(operation) if operation else None
    return StoredWrite(
        entry.seq, entry.key, entry.accepted, entry.value, base, entry.reason, operation, hold
    )


def _answered(operation: Operation, index: HoldIndex) -> StoredWrite:
    invoke, answer = operation.invoke, operation.answer
    return StoredWrite(
        seq=number_of(operation) or 0,
        key=operation.key,
        accepted=operation.ok,
        value=invoke.value,
        base=invoke.base,
        reason=(answer.error or "") if answer else "",
        operation=operation,
        hold=index.of(operation),
    )
