"""Writes by a number that readers can count: the first that the storage accepted is write 1."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from lockcheck.checker.case import Case
from lockcheck.history import Operation
from lockcheck.words import amount, names, plain


class Numbers:
    """The storage numbers reads, too, and what it refuses."""

    def __init__(self, case: Case) -> None:
        self._case = case

    @cached_property
    def _by_seq(self) -> dict[int, int]:
        """None of a part of a history: there it is not known how many came before."""
        ledger = self._case.ledger
        accepted = (w.seq for w in ledger.writes if w.accepted and ledger.stretches is None)
        return {seq: number for number, seq in enumerate(accepted, 1)}

    def of(self, write: Operation) -> int | None:
        seq = write.answer.seq if write.answer else None
        return None if seq is None else self._by_seq.get(seq)

    def write(self, write: Operation) -> str:
        """Which, and whose: `write 12 of c3`."""
        number = self.of(write)
        return f"{'a write' if number is None else f'write {number:,}'} of {plain(write.node)}"

    def writes(self, writes: Iterable[Operation]) -> str:
        every = list(writes)
        if len(every) == 1:
            return self.write(every[0])
        whose = names(sorted(write.node for write in every))
        return f"{self.range(every) or amount(len(every), 'write')} of {whose}"

    def range(self, writes: Iterable[Operation]) -> str:
        """Of many the first and the last: `writes 5 to 17`; empty: not known."""
        known = sorted(number for write in writes if (number := self.of(write)) is not None)
        if len(known) < 2:
            return f"write {known[0]:,}" if known else ""
        return f"writes {known[0]:,} {'and' if len(known) == 2 else 'to'} {known[-1]:,}"
