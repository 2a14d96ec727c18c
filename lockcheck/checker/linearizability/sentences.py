"""Sentences about operations on a register, and about why one of them comes before another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from lockcheck.history.table import Op, Outcome, Table
from lockcheck.words import plain, shown

INITIAL = -1  # stands for the row that would have written the initial value
MANY = 4  # operations in a sentence


@dataclass(frozen=True, slots=True)
class OperationPart:
    """What an operation did to its register."""

    row: int  # of the table
    source: int | None  # the row that wrote the value it saw, or INITIAL; None: it saw none
    piece: int | None = None  # the row that began its piece, or INITIAL; None: unknown
    stage: int = 0  # within its piece: even for a write, one more for reads of its value


class Rule(IntEnum):
    """Why one operation comes before another; rules that are easier to understand cost less."""

    ENDED = 2  # the one ended before the other began
    SAW = 3  # the other saw what the one wrote
    REPLACED = 4  # the other replaced what the one saw
    FIRST = 5  # the one is in the piece of the initial value
    LED = 6  # both are in the same piece
    OVER = 7  # one of the same piece as the one ended before the other began
    APART = 8  # the one ended before one of the same piece as the other began
    BOTH = 9  # one of the same piece as the one ended before one of the same piece as the other


@dataclass(frozen=True, slots=True)
class Edge:
    before: OperationPart
    after: OperationPart
    rule: Rule
    witness: tuple[OperationPart, OperationPart]  # the two whose times prove it


def replaces(table: Table, row: int) -> bool:
    return bool(table.f[row] == Op.CAS and table.argument[row] != table.second[row])


@dataclass(frozen=True, slots=True)
class Sentences:
    table: Table

    def unwritten(self, row: int, witness: int | None) -> str:
        text = f"{self._did(row)}, but nobody wrote {self._seen(row)}"
        return text if witness is None else f"{text}; that it did shows as {self._did(witness)}"

    def why_not(self, cycle: Sequence[Edge]) -> str:
        rules = sorted(edge.rule for edge in cycle)
        if rules[-1] is Rule.SAW and rules[0] is Rule.SAW:
            return (
                f"{self._list(cycle)}: each needs the one before it, the first one needs the last"
            )
        if rules == [Rule.REPLACED] * 2:
            return f"{self._list(cycle)}, but {self._once(cycle[0].before)}"
        if len(rules) == 2 and rules[0] is Rule.ENDED:
            ended, other = sorted(cycle, key=lambda edge: edge.rule)
            return self._too_late(ended, other)
        return "; ".join(self.because(edge) for edge in cycle)

    def _too_late(self, ended: Edge, other: Edge) -> str:
        """The later operation should have come first by the other rule."""
        early, late = ended.before, ended.after
        text = self._in_turn(early, late)
        if other.rule is Rule.SAW:
            return text
        but = {
            Rule.REPLACED: self._once(late),
            Rule.FIRST: self._first(late),
            Rule.LED: self._led(other),
        }.get(other.rule)
        return f"{text}, but {but}" if but else self._between(early, late, other)

    def _between(self, early: OperationPart, late: OperationPart, other: Edge) -> str:
        """A value, then another one, then the first one again."""
        one, another = other.witness
        if other.rule is Rule.OVER:
            text = self._in_turn(one, early, late)
        elif other.rule is Rule.APART:
            text = self._in_turn(early, late, another)
        else:
            text = f"{self._in_turn(early, late)}; but also: {self._in_turn(one, another)}"
        pairs = (other.before, one), (other.after, another)
        joined = [
            self._piece(*pair) for pair in pairs if self._left(pair[0]) != self._left(pair[1])
        ]
        return "; ".join((text, *joined))

    def because(self, edge: Edge) -> str:
        before, after = self._the(edge.before), self._the(edge.after)
        one, other = (self._the(part) for part in edge.witness)
        ended = f"{one} ended before {other} began"
        text = {
            Rule.ENDED: ended,
            Rule.SAW: f"{after} saw what {before} wrote",
            Rule.REPLACED: f"{after} replaced what {before} saw",
            Rule.FIRST: f"{self._first(edge.before)}, which comes before all others",
            Rule.LED: self._led(edge),
        }
        first, then = self._left(edge.before), self._left(edge.after)
        return text.get(edge.rule) or f"all on {first} came before all on {then}, since {ended}"

    def _led(self, edge: Edge) -> str:
        steps = edge.after.stage // 2 - edge.before.stage // 2
        return f"{steps} cas led from {self._left(edge.before)} to {self._left(edge.after)}"

    def _first(self, part: OperationPart) -> str:
        if part.source == INITIAL:
            return f"{self._seen(part.row)} was the initial value"
        return f"cas had made {self._left(part)} of the initial value"

    def _piece(self, part: OperationPart, witness: OperationPart) -> str:
        return f"cas joins {self._left(part)} to {self._left(witness)}"

    def _once(self, part: OperationPart) -> str:
        return f"{self._seen(part.row)} was there only once"

    def _in_turn(self, *parts: OperationPart) -> str:
        return ", and only then ".join(self._did(part.row) for part in parts)

    def _list(self, cycle: Sequence[Edge]) -> str:
        did = [self._did(edge.before.row) for edge in cycle]
        more = [f"{len(did) - MANY} more like them"] if len(did) > MANY else []
        *first, last = did[:MANY] + more
        return f"{', '.join(first)} and {last}"

    def _did(self, row: int) -> str:
        who, seen, left = self._who(row), self._seen(row), self._text(self._left_symbol(row))
        text = {
            Op.READ: f"{who} read {seen}",
            Op.WRITE: f"{who} wrote {left}",
            Op.CAS: f"{who} replaced {seen} by {left}",
        }[Op(self.table.f[row])]
        return f"{text} (unconfirmed)" if self.table.outcome[row] == Outcome.INFO else text

    def _the(self, part: OperationPart) -> str:
        f = Op(self.table.f[part.row])
        old = f"from {self._seen(part.row)} to" if f is Op.CAS else "of"
        return f"{self._who(part.row)}'s {f.name.lower()} {old} {self._left(part)}"

    def _left(self, part: OperationPart) -> str:
        """The value after the operation."""
        return self._text(self._left_symbol(part.row))

    def _left_symbol(self, row: int) -> int:
        table = self.table
        column = {Op.READ: table.result, Op.WRITE: table.argument, Op.CAS: table.second}
        return int(column[Op(table.f[row])][row])

    def _seen(self, row: int) -> str:
        read = self.table.f[row] == Op.READ
        return self._text(int(self.table.result[row] if read else self.table.argument[row]))

    def _who(self, row: int) -> str:
        return f"process {plain(self.table.symbols.value(int(self.table.process[row])))}"

    def _text(self, symbol: int) -> str:
        return shown(self.table.symbols.value(symbol))
