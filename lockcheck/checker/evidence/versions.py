"""Which accepted write was computed from which: the versions of one register as a tree."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

from lockcheck.checker.evidence.order import HoldIndex
from lockcheck.checker.evidence.writes import Ledger, StoredWrite, canonical
from lockcheck.history import F, History, Operation

INITIAL = -1  # in place of a write: the value before the first one
ANY = ("any",)  # in place of a value: whatever was there, of a write without a base


class Knowledge:
    """What each process last knew of a register, from its own reads and writes."""

    def __init__(self, history: History, index: HoldIndex) -> None:
        self._index = index
        self._seen: defaultdict[tuple[int | str, str], list[Operation]] = defaultdict(list)
        self._seen_before: dict[int, int] = {}  # their number when a write was sent
        self._unknown: dict[tuple[str, Hashable], Operation] = {}
        for operation in history.operations:  # of one process in the order in which it sent them
            seen = self._seen[operation.owner, operation.key]
            self._seen_before[id(operation)] = len(seen)
            if operation.f in (F.READ, F.WRITE) and operation.ok:
                seen.append(operation)
            elif operation.f == F.WRITE and operation.unknown:
                self._unknown[operation.key, canonical(operation.invoke.value)] = operation

    def last_seen(self, write: StoredWrite) -> Operation | None:
        """The last read or write of its process before this write, in the same hold."""
        sent, hold = write.operation, write.hold
        seen = self._last_before(sent) if sent and hold else None
        return seen if seen and hold and seen.start_ns >= hold.start_ns else None

    def read_of_base(self, write: StoredWrite) -> Operation | None:
        """The read that returned the base of this write."""
        if write.operation is None:
            return None
        owner, key = write.operation.owner, write.key
        places = self._reads.get((owner, key, self.base_of(write)), [])
        position = bisect_left(places, self._seen_before[id(write.operation)])
        return self._seen[owner, key][places[position - 1]] if position else None

    @cached_property
    def _reads(self) -> dict[tuple[int | str, str, Hashable], list[int]]:
        """By owner, key and value: the places in `_seen` of the reads that returned the value."""
        places: defaultdict[tuple[int | str, str, Hashable], list[int]] = defaultdict(list)
        for (owner, key), seen in self._seen.items():
            for place, operation in enumerate(seen):
                if operation.f == F.READ:
                    places[owner, key, canonical(seen_value(operation))].append(place)
        return dict(places)

    def base_of(self, write: StoredWrite) -> Hashable:
        """The base that the write names, or else the value that its process saw last."""
        if write.base is not None:
            return canonical(write.base)
        seen = self.last_seen(write)
        return None if seen is None else canonical(seen_value(seen))

    def is_blind(self, write: StoredWrite) -> bool:
        """Whether it has no base: it replaces any value."""
        return write.base is None and self.last_seen(write) is None

    def behind(self, key: str, value: Hashable) -> Hashable:
        """The base of the unacknowledged write of this value; the value itself if none is known."""
        unanswered = self._unknown.get((key, value))
        if unanswered is None:
            return value
        if unanswered.invoke.base is not None:
            return canonical(unanswered.invoke.base)
        seen, hold = self._last_before(unanswered), self._index.of(unanswered)
        if hold is not None and (seen is None or seen.start_ns < hold.start_ns):
            return ANY  # as `is_blind`
        return value if seen is None else canonical(seen_value(seen))

    def _last_before(self, write: Operation) -> Operation | None:
        before = self._seen_before[id(write)]
        return self._seen[write.owner, write.key][before - 1] if before else None


def seen_value(operation: Operation) -> object:
    """The register's value after this operation, as its process knows it."""
    if operation.f == F.WRITE:
        return operation.invoke.value
    return operation.answer.value if operation.answer else None


@dataclass(slots=True)
class Versions:
    writes: list[StoredWrite]
    overwriters: dict[int, int]  # by write
    final_ancestors: frozenset[int]  # from which the last one was computed, and itself
    rivals: frozenset[int]  # writes that share their base with another one


def read_versions(ledger: Ledger, knowledge: Knowledge, writes: list[StoredWrite]) -> Versions:
    blind = [knowledge.is_blind(write) for write in writes]
    bases = [knowledge.base_of(write) for write in writes]
    parents = list(_parents(ledger.kept, knowledge, writes, bases, blind))
    updates = [i for i in range(len(writes)) if not blind[i]]
    shared = Counter((parents[i], bases[i]) for i in updates)
    return Versions(
        writes=writes,
        overwriters=_overwriters(parents),
        final_ancestors=_ancestors(parents, len(writes) - 1),
        rivals=frozenset(i for i in updates if shared[parents[i], bases[i]] > 1),
    )


def _parents(
    in_ledger: bool,
    knowledge: Knowledge,
    writes: list[StoredWrite],
    bases: list[Hashable],
    blind: list[bool],
) -> Iterable[int]:
    """The write that each was computed from; INITIAL: from the first value. A value that was
    written twice means its latest write before."""
    latest: dict[Hashable, int] = {}
    initial: set[Hashable] = {None, *bases[:1]}
    for i, write in enumerate(writes):
        before = i - 1 if i else INITIAL
        base = _known_base(knowledge, write.key, bases[i], latest)
        if blind[i] or base is ANY:
            yield before
        elif base in latest:
            yield latest[base]
        elif base in initial or in_ledger:
            yield INITIAL  # the ledger has all accepted writes, and none of them wrote this base
        else:
            yield before  # without a ledger an unknown base proves nothing
        latest[canonical(write.value)] = i


def _known_base(
    knowledge: Knowledge, key: str, base: Hashable, latest: dict[Hashable, int]
) -> Hashable:
    """The latest known value on the chain of bases: an unacknowledged write may have happened."""
    tried: set[Hashable] = set()
    while base is not None and base not in latest and base not in tried:
        tried.add(base)
        base = knowledge.behind(key, base)
    return base


def _overwriters(parents: list[int]) -> dict[int, int]:
    """By write: the first later write that does not descend from it. All between the two do, so
    write j overwrites exactly the waiting ones behind j's parent. Each waits once: n steps in all.
    """
    overwriters: dict[int, int] = {}
    waiting: list[int] = []
    for j, parent in enumerate(parents):
        while waiting and waiting[-1] > parent:
            overwriters[waiting.pop()] = j
        waiting.append(j)
    return overwriters


def _ancestors(parents: list[int], last: int) -> frozenset[int]:
    found: set[int] = set()
    while last != INITIAL:
        found.add(last)
        last = parents[last]
    return frozenset(found)
