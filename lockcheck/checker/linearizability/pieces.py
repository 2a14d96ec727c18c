"""Values that cas joined: a piece is what one write began and each cas went on with.

Between a value and what a cas made of it there is nothing else, so a piece comes in one go: the
write, the reads of its value, the cas, the reads of what that wrote, the next cas. Only the reads
of one value may change places. All pieces of all keys are followed at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from lockcheck.checker.linearizability.written import NOBODY, Mask, Rows, Written


class MistakeKind(Enum):
    """What is wrong with a key."""

    UNWRITTEN = "a value was seen that nobody wrote"
    TWICE = "a value that was seen was written more than once"
    ORDER = "an operation ended before what has to come before it began"
    RIVALS = "a value that was there only once was replaced twice"
    CIRCLE = "cas could only follow each other in a circle"
    ZONES = "two values were each there both before and after the other"


@dataclass(frozen=True, slots=True)
class Mistakes:
    """Of one kind, on many keys: the two that are at odds, or twice the same. A piece is given by
    the row that began it.
    """

    kind: MistakeKind
    rows: Rows
    others: Rows


@dataclass(frozen=True, slots=True)
class Pieces:
    taking: Rows  # those who take part in one, in the order of their invocations
    piece: Rows  # of every row: which row began its piece, NOBODY where it is in none
    depth: Rows  # of those who wrote: how many cas led to it
    mistakes: tuple[Mistakes, ...]


def pieces(story: Written) -> Pieces:
    columns, source = story.columns, story.source
    linked = np.flatnonzero(story.happened & columns.wrote & (source != NOBODY))
    rivals, goes_on = _rivals(linked, source)
    root, depth = _followed(linked, source)
    joined = np.zeros(len(columns), dtype=np.bool_)
    joined[linked] = True
    round_and_round = linked[joined[root[linked]]]
    torn = np.zeros(len(columns.keys), dtype=np.bool_)
    for rows in (rivals.rows, round_and_round):
        torn[columns.key[rows]] = True
    members = np.flatnonzero((joined | goes_on) & ~torn[columns.key])
    reads = np.flatnonzero(story.happened & ~columns.wrote & (source != NOBODY))
    taking = np.flatnonzero(story.happened & (columns.wrote | (source != NOBODY)))
    piece = np.full(len(columns), NOBODY, dtype=np.intp)
    piece[taking] = root[np.where(columns.wrote, np.arange(len(columns)), source)[taking]]
    circles = Mistakes(MistakeKind.CIRCLE, round_and_round, round_and_round)
    order = _out_of_order(story, reads, _line(members, root, depth), depth)
    return Pieces(taking, piece, depth, (order, rivals, circles))


def _rivals(linked: Rows, source: Rows) -> tuple[Mistakes, Mask]:
    """Who replaced a value that another one replaced; and which rows wrote what was replaced."""
    successor = np.full(len(source), NOBODY, dtype=np.intp)
    successor[source[linked]] = linked
    late = linked[successor[source[linked]] != linked]
    return Mistakes(MistakeKind.RIVALS, late, successor[source[late]]), successor != NOBODY


def _followed(linked: Rows, source: Rows) -> tuple[Rows, Rows]:
    """From each cas back to the write that began its piece, by pointers that jump twice as far
    each time. In a circle they end anywhere on it.
    """
    root, depth = np.arange(len(source)), np.zeros(len(source), dtype=np.intp)
    root[linked], depth[linked] = source[linked], 1
    for _ in range(len(linked).bit_length() + 1):
        via = root[linked]
        beyond = root[via]
        depth[linked] += depth[via]
        root[linked] = beyond
        linked = linked[beyond != via]
        if not len(linked):
            break
    return root, depth


def _line(members: Rows, root: Rows, depth: Rows) -> Rows:
    """The rows that wrote, piece by piece, each in the order of its cas. Never a sort."""
    length = np.bincount(root[members], minlength=len(root))
    place = np.cumsum(length) - length
    line = np.empty_like(members)
    line[place[root[members]] + depth[members]] = members
    return line


def _out_of_order(story: Written, reads: Rows, line: Rows, depth: Rows) -> Mistakes:
    """What ended before something began that comes earlier in its piece.

    Of all that comes earlier only that which began last matters, and rows are in the order in which
    they began: so times need no ranks, and the largest row so far is what is looked for.
    """
    columns, source = story.columns, story.source
    before_reads = np.arange(len(columns))  # of a row that wrote: of it and all before it
    before = line
    if len(line):
        last = np.full(len(columns), NOBODY, dtype=np.intp)
        np.maximum.at(last, source[reads], reads)
        so_far = _largest_so_far(np.stack((line, last[line]), axis=1), depth[line] == 0)
        before_reads[line] = so_far[:, 0]
        before = np.where(depth[line] == 0, line, np.roll(so_far[:, 1], 1))
    rows = np.concatenate((reads, line))
    others = np.concatenate((before_reads[source[reads]], before))
    wrong = columns.end[rows] < columns.start[others]
    return Mistakes(MistakeKind.ORDER, rows[wrong], others[wrong])


def _largest_so_far(rows: Rows, begins: Mask) -> Rows:
    """By pairs, through each piece from where it begins."""
    bits = int(rows.max()).bit_length() + 1
    number = np.cumsum(begins) << bits
    packed = number[:, np.newaxis] | (rows + 1)
    return (np.maximum.accumulate(packed.ravel()).reshape(rows.shape) & ((1 << bits) - 1)) - 1
