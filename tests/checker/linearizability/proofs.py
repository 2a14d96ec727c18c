"""Checks that an explanation is a proof: every constraint again, from the rows alone."""

from __future__ import annotations

from itertools import product

from lockcheck.checker.linearizability.answer import Answer, Because
from lockcheck.history.table import NOTHING, Op, Outcome, Table


class Proof:
    """Facts about the operations on one key, by the simplest means."""

    def __init__(self, table: Table, key: int, initial: int = NOTHING) -> None:
        self.table = table
        self.initial = initial
        self.rows = [
            row
            for row in range(len(table))
            if key == table.key[row]
            and table.outcome[row] != Outcome.FAIL
            and not (table.outcome[row] == Outcome.INFO and table.f[row] == Op.READ)
        ]
        self._writers: dict[int, list[int]] = {}
        for row in self.rows:
            new = self.wrote(row)
            if new is not None:
                self._writers.setdefault(new, []).append(row)

    def seen(self, row: int) -> int | None:
        column = {Op.READ: self.table.result, Op.CAS: self.table.argument}.get(self.table.f[row])
        return None if column is None else int(column[row])

    def wrote(self, row: int) -> int | None:
        column = {Op.WRITE: self.table.argument, Op.CAS: self.table.second}.get(self.table.f[row])
        new = None if column is None else int(column[row])
        return None if new == self.seen(row) else new

    def writers(self, value: int | None) -> list[int]:
        return [] if value is None else self._writers.get(value, [])

    def piece(self, row: int) -> tuple[int | None, int]:
        """The row that began its piece (None: the initial value), and the distance from there."""
        stage = 0 if self.wrote(row) is not None else 1
        at = row if stage == 0 else self.source(row)
        passed = set()
        while at is not None and self.seen(at) is not None:
            assert at not in passed, "a piece that goes in a cycle has no beginning"
            passed.add(at)
            at, stage = self.source(at), stage + 2
        return at, stage

    def source(self, row: int) -> int | None:
        """The row that wrote what this row saw; None: the initial value. Values must be unique."""
        sources = self.writers(self.seen(row))
        if self.seen(row) == self.initial:
            assert not sources
            return None
        assert len(sources) == 1
        return sources[0]

    def ended(self, before: int, after: int) -> bool:
        table = self.table
        one, other = table.turn[before], table.turn[after]
        own = table.process[before] == table.process[after] and NOTHING < one < other
        end, start = table.end[before], table.start[after]
        return bool(end < start or (end == start and own))

    def holds(self, because: Because) -> bool:
        """Whether the constraint holds, by the rule that its reason names."""
        before, after, reason = because.before, because.after, because.reason
        if " came before all on " in reason:
            return self._in_one_go(before, after)
        if " ended before " in reason:
            return self.ended(before, after)
        if " saw what " in reason:
            return self.source(after) == before
        if " replaced what " in reason:
            both_saw = self.seen(before) == self.seen(after) and self.seen(before) is not None
            return before != after and both_saw and self.wrote(after) is not None
        if " initial value" in reason:
            return self.piece(before)[0] is None and self.piece(after)[0] is not None
        assert " cas led from " in reason, reason
        (one, stage), (other, later) = self.piece(before), self.piece(after)
        return one == other and stage < later

    def _in_one_go(self, before: int, after: int) -> bool:
        one, other = self.piece(before)[0], self.piece(after)[0]
        happened = self.happened()
        ends = [row for row in happened if self.piece(row)[0] == one]
        begins = [row for row in happened if self.piece(row)[0] == other]
        return one != other and any(self.ended(a, b) for a, b in product(ends, begins))

    def happened(self) -> list[int]:
        """The confirmed rows, and the unconfirmed ones whose value was seen."""
        known = [row for row in self.rows if self.table.outcome[row] == Outcome.OK]
        found = set(known)
        for row in known:
            more = set(self.writers(self.seen(row))) - found
            found |= more
            known += sorted(more)
        return known

    def check(self, answer: Answer) -> None:
        assert answer.linearizable is False
        assert answer.reason
        assert list(answer.rows) == sorted(set(answer.rows))
        assert set(answer.rows) <= set(self.happened())
        if answer.cycle:
            self._check_circle(answer)
        else:
            self._check_unwritten(answer)

    def _check_circle(self, answer: Answer) -> None:
        cycle = answer.cycle
        for one, following in zip(cycle, (*cycle[1:], cycle[0]), strict=True):
            assert one.after == following.before
        assert len({each.before for each in cycle}) == len(cycle) > 1
        for each in cycle:
            assert {each.before, each.after} <= set(answer.rows)
            assert self.holds(each), each

    def _check_unwritten(self, answer: Answer) -> None:
        strange = [
            row
            for row in answer.rows
            if self.seen(row) not in (None, self.initial) and not self.writers(self.seen(row))
        ]
        assert len(strange) == 1
        if self.table.outcome[strange[0]] == Outcome.INFO:
            (witness,) = set(answer.rows) - set(strange)
            assert self.source(witness) == strange[0]
