"""Decides registers whose written values are unique, by whether their pieces can be put in an
order.

A piece (a value, and what cas made of it) is contiguous, so one piece comes before another as a
whole: it has to, as soon as one of its operations ended before one of the other began. Only its
earliest end and its latest start matter, and there is a cycle of pieces if and only if there are
two that each have to come first. Where the earliest end is before the latest start, the piece is
certainly there between them, its zone (Gibbons and Korach 1997; cas is handled by pieces instead of
single values). So no two zones may overlap, and no piece without a zone may have to lie inside one.
Equal times are concurrent, so zones may touch.

All keys are decided at once, at the cost of one sort. Where a client's own order (`own_order`) may
contradict that, a key's pieces are put in an order one by one (`turns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from lockcheck.checker.linearizability.answer import Answer
from lockcheck.checker.linearizability.constraints import ALL_PAIRS, explain, unwritten
from lockcheck.checker.linearizability.own_order import touching
from lockcheck.checker.linearizability.pieces import MistakeKind, Mistakes, Pieces, pieces
from lockcheck.checker.linearizability.sentences import INITIAL, OperationPart
from lockcheck.checker.linearizability.turns import circle_of
from lockcheck.checker.linearizability.written import UNWRITTEN, Rows, Written, written
from lockcheck.history.table import Ints, Table

EXPLAINED = 200  # keys; if more fail, the others get no details
LONGEST_CYCLE = 100  # of cas that is explained

BRIEFLY = {
    kind: Answer(None if kind is MistakeKind.TWICE else False, "zones", reason=kind.value)
    for kind in MistakeKind
}


def zones(table: Table, initial: Mapping[int, int] | None = None) -> dict[int, Answer]:
    """The answers of keys that are not linearizable, or that this engine cannot decide. `initial`:
    by key, the values at the beginning that are not null."""
    story = _Story(table, written(table, initial or {}))
    key, names = story.written.columns.key, story.written.columns.keys
    answered = np.zeros(len(names), dtype=np.bool_)
    answers: dict[int, Answer] = {}
    explainer, explained = _Explainer(story), 0
    for mistakes in _all_mistakes(story):
        if not len(mistakes.rows):
            continue
        keys, first = np.unique(key[mistakes.rows], return_index=True)
        for place in first[~answered[keys]].tolist():
            row, other = int(mistakes.rows[place]), int(mistakes.others[place])
            answer = explainer.briefly(mistakes.kind, row, other)
            if explained < EXPLAINED and mistakes.kind is not MistakeKind.TWICE:
                explained += 1
                answer = explainer.explained(mistakes.kind, row, other)
            answers[int(names[key[row]])] = answer
        answered[keys] = True
        if answered.all():
            break
    return answers


def _all_mistakes(story: _Story) -> Iterator[Mistakes]:
    """All mistakes; the first of each key counts. A value that was never written is wrong however
    often the others were written; all other rules need unique values."""
    sure, source = story.written.columns.sure, story.written.source
    strange = story.written.columns.looked & story.written.happened & (source == UNWRITTEN)
    direct, indirect = np.flatnonzero(strange & sure), np.flatnonzero(strange & ~sure)
    twice = story.written.twice
    yield Mistakes(MistakeKind.UNWRITTEN, direct, direct)
    yield Mistakes(MistakeKind.TWICE, twice, twice)
    yield Mistakes(MistakeKind.UNWRITTEN, indirect, indirect)
    yield from story.pieces.mistakes
    yield _conflicts(story, story.first_end)
    yield from _out_of_turn(story)


@dataclass(frozen=True)
class _Story:
    """The columns of a table; pieces are computed only if values are unique."""

    table: Table
    written: Written
    circles: dict[int, list[int]] = field(default_factory=dict)  # by key: rows, see `_out_of_turn`

    @cached_property
    def pieces(self) -> Pieces:
        return pieces(self.written)

    @cached_property
    def first_end(self) -> Ints:
        """By the row that began a piece: the earliest end of its operations."""
        return self.first_of(self.written.columns.end)

    def first_of(self, end: Ints) -> Ints:
        members = self.pieces.members
        first = np.full(len(end), np.iinfo(np.int64).max)
        np.minimum.at(first, self.pieces.piece[members], end[members])
        return first

    def stage(self, rows: Rows) -> Rows:
        """Within a piece: even for a write, one more for reads of its value."""
        wrote, depth = self.written.columns.wrote[rows], self.pieces.depth
        stage: Rows = 2 * depth[np.where(wrote, rows, self.written.source[rows])] + ~wrote
        return stage

    @cached_property
    def own(self) -> tuple[Rows, Rows]:
        """Operations that happened, and those that their clients began when these ended."""
        columns = self.written.columns
        place = np.full(len(self.table), UNWRITTEN)
        place[columns.rows] = np.arange(len(columns.keys), len(columns))
        before, after = (place[rows] for rows in touching(self.table))
        in_pieces = self.pieces.piece != UNWRITTEN
        both = (after != UNWRITTEN) & in_pieces[before] & in_pieces[after]
        return before[both], after[both]

    @cached_property
    def last(self) -> Rows:
        """By the row that began a piece: the operation of it that began last."""
        members, piece = self.pieces.members, self.pieces.piece
        last = np.full(len(piece), UNWRITTEN, dtype=np.intp)
        np.maximum.at(last, piece[members], members)
        return last

    @cached_property
    def ended_first(self) -> Rows:
        """By the row that began a piece: an operation of it that ended first."""
        members, piece = self.pieces.members, self.pieces.piece
        rows = members[self.written.columns.end[members] == self.first_end[piece[members]]]
        found = np.full(len(piece), UNWRITTEN, dtype=np.intp)
        found[piece[rows]] = rows
        return found


class _Explainer:
    """Explains mistakes; slow, so only for a few keys."""

    def __init__(self, story: _Story) -> None:
        self.story, self.table, self.written = story, story.table, story.written

    def briefly(self, kind: MistakeKind, row: int, other: int) -> Answer:
        rows = {self._in_table(each) for each in (row, other)} - {INITIAL}
        return replace(BRIEFLY[kind], rows=tuple(sorted(rows)))

    def explained(self, kind: MistakeKind, row: int, other: int) -> Answer:
        if kind is MistakeKind.UNWRITTEN:
            return self._unwritten(row)
        if kind is MistakeKind.CYCLE:
            cycle = self._cycle(row)
            brief = len(cycle) > LONGEST_CYCLE
            if brief:
                return self.briefly(kind, row, other)
            return explain(self.table, [*map(self._loose, cycle)])
        if kind is MistakeKind.RIVALS or self.written.source[row] == other:
            return explain(self.table, [self._loose(row), self._loose(other)])
        rows = {row, other}
        if kind is MistakeKind.ZONES:
            rows = {
                int(of[piece]) for of in (self.story.ended_first, self.story.last) for piece in rows
            }
        if kind is MistakeKind.TURNS:
            rows = set(self.story.circles[int(self.written.columns.key[row])])
        if len(rows) > ALL_PAIRS:
            return self.briefly(kind, row, other)
        real = [each for each in sorted(rows) if each >= len(self.written.columns.keys)]
        return explain(self.table, [self._part(each) for each in real])

    def _unwritten(self, row: int) -> Answer:
        story = self.written
        if story.columns.sure[row]:
            return unwritten(self.table, self._in_table(row))
        witness = int(np.flatnonzero((story.source == row) & story.happened)[0])
        return unwritten(self.table, self._in_table(row), self._in_table(witness))

    def _cycle(self, row: int) -> list[int]:
        """The cycle that following sources from this row ends in, in constraint order."""
        place: dict[int, int] = {}
        while row not in place:
            place[row] = len(place)
            row = int(self.written.source[row])
        return list(place)[place[row] :][::-1]

    def _part(self, row: int) -> OperationPart:
        piece = self._in_table(int(self.story.pieces.piece[row]))
        return replace(
            self._loose(row), piece=piece, stage=int(self.story.stage(np.array([row]))[0])
        )

    def _loose(self, row: int) -> OperationPart:
        source = int(self.written.source[row])
        return OperationPart(
            self._in_table(row), None if source == UNWRITTEN else self._in_table(source)
        )

    def _in_table(self, row: int) -> int:
        place = row - len(self.written.columns.keys)
        return INITIAL if place < 0 else int(self.written.columns.rows[place])


def _conflicts(story: _Story, first_end: Ints) -> Mistakes:
    """Pieces that conflict with a zone.

    Pieces are sorted by where their zones begin, or where they would have to fit in. Each has to
    fit behind the zone before it: as long as zones do not overlap, only the nearest one matters.
    """
    columns, members = story.written.columns, story.pieces.members
    heads = members[story.pieces.piece[members] == members]
    start = columns.start[story.last[heads]]
    end = first_end[heads]
    is_zone = end < start
    # Doubled, plus one for zones: a zone that begins at the same time comes after the others.
    begins = np.minimum(end, start) * 2 + is_zone
    keys = () if len(columns.keys) == 1 else (columns.key[heads],)
    order = np.lexsort((begins, *keys))
    heads, end, start, is_zone = heads[order], end[order], start[order], is_zone[order]
    place = np.maximum.accumulate(np.where(is_zone, np.arange(len(heads)), UNWRITTEN))
    place = np.roll(place, 1)
    place[:1] = UNWRITTEN
    same = (place != UNWRITTEN) & (columns.key[heads] == columns.key[heads[place]])
    wrong = same & (end < start[place])
    return Mistakes(MistakeKind.ZONES, heads[wrong], heads[place[wrong]])


def _out_of_turn(story: _Story) -> Iterator[Mistakes]:
    """What contradicts a client's own order."""
    columns, piece = story.written.columns, story.pieces.piece
    before, after = story.own
    same = piece[before] == piece[after]
    wrong = same & (story.stage(before) > story.stage(after))
    yield Mistakes(MistakeKind.ORDER, before[wrong], after[wrong])
    before, after = before[~same], after[~same]
    end = columns.end.copy()
    end[before] -= 1  # stricter: before all that began at that time
    rows = _conflicts(story, story.first_of(end)).rows
    suspected = np.unique(columns.key[rows])
    heads = story.pieces.members[piece[story.pieces.members] == story.pieces.members]
    for key in suspected[np.isin(suspected, columns.key[before])].tolist():
        of_key, pairs = heads[columns.key[heads] == key], columns.key[before] == key
        circle = _circle(story, of_key, before[pairs], after[pairs])
        if circle:
            story.circles[key] = circle
    found = np.array([rows[0] for rows in story.circles.values()], dtype=np.intp)
    yield Mistakes(MistakeKind.TURNS, found, found)


def _circle(story: _Story, heads: Rows, before: Rows, after: Rows) -> list[int]:
    """The operations by which some pieces have to come before each other in a circle; empty if all
    have an order."""
    number = np.full(len(story.written.columns), UNWRITTEN)
    number[heads] = np.arange(len(heads))
    of = number[story.pieces.piece]
    own = zip(of[before].tolist(), of[after].tolist(), before.tolist(), after.tolist(), strict=True)
    spans = story.first_end[heads].tolist(), story.written.columns.start[story.last[heads]].tolist()
    rows: list[int] = []
    for one, other, *because in circle_of(*spans, own):
        rows += because or [story.ended_first[heads[one]], story.last[heads[other]]]
    return list(dict.fromkeys(map(int, rows)))
