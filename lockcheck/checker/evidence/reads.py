"""Reads that were served an older value than the storage had accepted, by the storage's numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from lockcheck.checker.evidence.writes import Ledger, StoredWrite, canonical, number_of
from lockcheck.history import F, History, Operation


@dataclass(frozen=True, slots=True)
class StaleRead:
    read: Operation
    missed: StoredWrite  # the last one that the storage had accepted by then


def numbered_reads(history: History) -> defaultdict[str, list[tuple[int, Operation]]]:
    """By key: those that were answered, with the numbers that the storage gave them."""
    reads: defaultdict[str, list[tuple[int, Operation]]] = defaultdict(list)
    for operation in history.operations:
        number = number_of(operation)
        if operation.f == F.READ and operation.ok and number is not None:
            reads[operation.key].append((number, operation))
    return reads


def stale_reads(history: History, ledger: Ledger) -> Iterator[StaleRead]:
    """Of each key in the order of their numbers. Where a read has the number of a write, numbers
    name the versions that were found, and not when they were served."""
    if ledger.stretches is not None:
        return  # of a part of a history: columns have cleared it
    reads = numbered_reads(history)
    changed = {o.key for o in history.operations if o.f in (F.CAS, F.ADD)}
    known = _KnownNumbers(history) if reads and not ledger.kept else None
    for writes in ledger.accepted():
        key, seqs = writes[0].key, [write.seq for write in writes]
        if key in changed or not {number for number, _ in reads[key]}.isdisjoint(seqs):
            continue
        for place, number, read in _outdated(writes, seqs, reads[key]):
            if known is None or known.all_between(key, seqs[place], number):
                yield StaleRead(read, writes[place])


def _outdated(
    writes: list[StoredWrite], seqs: list[int], reads: list[tuple[int, Operation]]
) -> Iterator[tuple[int, int, Operation]]:
    """Reads of a value that was there before the last write, with the place of that write."""
    values: list[Hashable] = [canonical(write.value) for write in writes]
    older, added = {canonical(writes[0].base)}, 0
    for number, read in sorted(reads, key=lambda each: each[0]):
        place = bisect_left(seqs, number) - 1
        if place < 0:
            continue
        older.update(values[added:place])
        added = max(added, place)
        value = canonical(read.answer.value if read.answer else None)
        if value is not None and value != values[place] and value in older:
            yield place, number, read


class _KnownNumbers:
    """Without a ledger, a write may lie between two numbers if no client was answered that one. A
    storage counts all that it serves, or each key apart."""

    def __init__(self, history: History) -> None:
        numbered = ((o.key, number_of(o)) for o in history.operations)
        found = [(key, number) for key, number in numbered if number is not None]
        self._together = len({number for _, number in found}) == len(found)
        numbers: defaultdict[str, set[int]] = defaultdict(set)
        for key, number in found:
            numbers["" if self._together else key].add(number)
        self._numbers = {key: sorted(of_key) for key, of_key in numbers.items()}

    def all_between(self, key: str, first: int, last: int) -> bool:
        numbers = self._numbers["" if self._together else key]
        return bisect_left(numbers, last) - bisect_right(numbers, first) == last - first - 1
