"""Registers whose written values are unique: which pieces can be put in a row.

A piece (a value, and what cas made of it) comes in one go, so one piece is before another as a
whole: it has to be, as soon as one of its operations ended before one of the other began. Its
earliest end and its latest start are all that matters, and there is a circle of pieces if and only
if there are two that both have to come first. Where the earliest end is before the latest start,
the piece is there for certain all the time between them, its zone (Gibbons and Korach 1997; that
pieces may stand for single values is what lets cas in). So no two zones may overlap, and no piece
without one may have to squeeze into one. Equal times are concurrent, so zones may touch.

All keys at once, and one sort is the most that it costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lockcheck.checker.linearizability.answer import Answer
from lockcheck.checker.linearizability.constraints import explain, unwritten
from lockcheck.checker.linearizability.pieces import MistakeKind, Mistakes, Pieces, pieces
from lockcheck.checker.linearizability.sentences import INITIAL, OperationPart
from lockcheck.checker.linearizability.written import NOBODY, Rows, Written, written
from lockcheck.history.table import NOTHING, Ints, Table

EXPLAINED = 200  # keys; where more of them fail, the others are told no more than what is wrong
LONGEST_CIRCLE = 100  # of cas; nobody reads a longer one

BRIEFLY = {
    kind: Answer(None if kind is MistakeKind.TWICE else False, "zones", reason=kind.value)
    for kind in MistakeKind
}


def zones(table: Table, initial: int = NOTHING) -> dict[int, Answer]:
    """Answers for the keys that are not linearizable, or that this engine cannot tell.

    `table` has reads, writes and cas only. Keys that are not in the answer are linearizable.
    """
    story = _Story(table, written(table, initial))
    key, names = story.written.columns.key, story.written.columns.keys
    told = np.zeros(len(names), dtype=np.bool_)
    answers: dict[int, Answer] = {}
    explainer, explained = _Explainer(story), 0
    for mistakes in _all_mistakes(story):
        if not len(mistakes.rows):
            continue
        keys, first = np.unique(key[mistakes.rows], return_index=True)
        for place in first[~told[keys]].tolist():
            row, other = int(mistakes.rows[place]), int(mistakes.others[place])
            answer = BRIEFLY[mistakes.kind]
            if explained < EXPLAINED and mistakes.kind is not MistakeKind.TWICE:
                explained += 1
                answer = explainer.explained(mistakes.kind, row, other)
            answers[int(names[key[row]])] = answer
        told[keys] = True
        if told.all():
            break
    return answers


def _all_mistakes(story: _Story) -> Iterator[Mistakes]:
    """Of each key the first one counts. A value that nobody at all wrote is wrong however often
    the others were written; all else is meant for values that are unique.
    """
    sure, source = story.written.columns.sure, story.written.source
    strange = story.written.columns.looked & story.written.happened & (source == NOBODY)
    direct, indirect = np.flatnonzero(strange & sure), np.flatnonzero(strange & ~sure)
    twice = story.written.twice
    yield Mistakes(MistakeKind.UNWRITTEN, direct, direct)
    yield Mistakes(MistakeKind.TWICE, twice, twice)
    yield Mistakes(MistakeKind.UNWRITTEN, indirect, indirect)
    yield from story.pieces.mistakes
    yield _conflicts(story)


@dataclass(frozen=True)
class _Story:
    """Pieces are only asked for where values are unique."""

    table: Table
    written: Written

    @cached_property
    def pieces(self) -> Pieces:
        return pieces(self.written)

    @cached_property
    def first(self) -> Ints:
        """By the row that began a piece: when the first of its operations ended."""
        taking, end = self.pieces.taking, self.written.columns.end
        first = np.full(len(end), np.iinfo(np.int64).max)
        np.minimum.at(first, self.pieces.piece[taking], end[taking])
        return first

    @cached_property
    def last(self) -> Rows:
        """... and which of them began last."""
        taking, piece = self.pieces.taking, self.pieces.piece
        last = np.full(len(piece), NOBODY, dtype=np.intp)
        np.maximum.at(last, piece[taking], taking)
        return last

    @cached_property
    def ended_first(self) -> Rows:
        """By the row that began a piece: one of its operations that ended first."""
        taking, piece = self.pieces.taking, self.pieces.piece
        rows = taking[self.written.columns.end[taking] == self.first[piece[taking]]]
        found = np.full(len(piece), NOBODY, dtype=np.intp)
        found[piece[rows]] = rows
        return found


class _Explainer:
    """Asked about few keys only: what it looks up takes a look at all rows."""

    def __init__(self, story: _Story) -> None:
        self.story, self.table, self.written = story, story.table, story.written

    def explained(self, kind: MistakeKind, row: int, other: int) -> Answer:
        if kind is MistakeKind.UNWRITTEN:
            return self._unwritten(row)
        if kind is MistakeKind.CIRCLE:
            circle = self._circle(row)
            brief = len(circle) > LONGEST_CIRCLE
            return BRIEFLY[kind] if brief else explain(self.table, [*map(self._loose, circle)])
        if kind is MistakeKind.RIVALS or self.written.source[row] == other:
            return explain(self.table, [self._loose(row), self._loose(other)])
        rows = {row, other}
        if kind is MistakeKind.ZONES:
            rows = {
                int(of[piece]) for of in (self.story.ended_first, self.story.last) for piece in rows
            }
        real = [each for each in sorted(rows) if each >= len(self.written.columns.keys)]
        return explain(self.table, [self._part(each) for each in real])

    def _unwritten(self, row: int) -> Answer:
        story = self.written
        if story.columns.sure[row]:
            return unwritten(self.table, self._in_table(row))
        witness = int(np.flatnonzero((story.source == row) & story.happened)[0])
        return unwritten(self.table, self._in_table(row), self._in_table(witness))

    def _circle(self, row: int) -> list[int]:
        """Where following who wrote what was replaced ends: in the order of the constraints."""
        place: dict[int, int] = {}
        while row not in place:
            place[row] = len(place)
            row = int(self.written.source[row])
        return list(place)[place[row] :][::-1]

    def _part(self, row: int) -> OperationPart:
        wrote, source = self.written.columns.wrote[row], int(self.written.source[row])
        depth = self.story.pieces.depth[row if wrote else source]
        piece = self._in_table(int(self.story.pieces.piece[row]))
        return replace(self._loose(row), piece=piece, stage=2 * int(depth) + (not wrote))

    def _loose(self, row: int) -> OperationPart:
        source = int(self.written.source[row])
        return OperationPart(
            self._in_table(row), None if source == NOBODY else self._in_table(source)
        )

    def _in_table(self, row: int) -> int:
        place = row - len(self.written.columns.keys)
        return INITIAL if place < 0 else int(self.written.columns.rows[place])


def _conflicts(story: _Story) -> Mistakes:
    """Pieces in the order in which their zones begin; those without a zone where they would have to
    squeeze in. Then each has to fit behind the zone before it: zones that did not overlap so far
    leave only the nearest to look at.
    """
    columns, taking = story.written.columns, story.pieces.taking
    heads = taking[story.pieces.piece[taking] == taking]
    start = columns.start[story.last[heads]]
    end = story.first[heads]
    is_zone = end < start
    # Twice, and one more for zones: one that begins at the same time is not before the others.
    begins = np.minimum(end, start) * 2 + is_zone
    keys = () if len(columns.keys) == 1 else (columns.key[heads],)
    order = np.lexsort((begins, *keys))
    heads, end, start, is_zone = heads[order], end[order], start[order], is_zone[order]
    place = np.maximum.accumulate(np.where(is_zone, np.arange(len(heads)), NOBODY))
    place = np.roll(place, 1)
    place[:1] = NOBODY
    same = (place != NOBODY) & (columns.key[heads] == columns.key[heads[place]])
    wrong = same & (end < start[place])
    return Mistakes(MistakeKind.ZONES, heads[wrong], heads[place[wrong]])
