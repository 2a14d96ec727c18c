"""Pieces: a value that was written, with the chain of cas that went on from it.

Nothing comes between a value and the cas that replaces it, so a piece is contiguous: the write, the
reads of its value, the cas, the reads of what that wrote, the next cas. Only reads of the same
value may change places. The pieces of all keys are found at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from lockcheck.checker.linearizability.written import UNWRITTEN, Rows, Written
from lockcheck.history.table import Mask


class MistakeKind(Enum):
    """What is wrong with a key."""

    UNWRITTEN = "a value was seen that nobody wrote"
    TWICE = "a value that was seen was written more than once"
    ORDER = "an operation ended before what has to come before it began"
    RIVALS = "a value that was there only once was replaced twice"
    CYCLE = "cas could only follow each other in a cycle"
    TURNS = "values could only follow each other in a circle"
    ZONES = "two values were each there both before and after the other"


@dataclass(frozen=True, slots=True)
class Mistakes:
    """All mistakes of one kind: on each key two rows that contradict each other, or one row twice.
    A piece is given by the row that began it."""

    kind: MistakeKind
    rows: Rows
    others: Rows


@dataclass(frozen=True, slots=True)
class Pieces:
    members: Rows  # the rows that are in a piece, in the order of their invocations
    piece: Rows  # by row: the row that began its piece, or UNWRITTEN if it is in none
    depth: Rows  # of rows that wrote: the number of cas before them
    mistakes: tuple[Mistakes, ...]


def pieces(story: Written) -> Pieces:
    columns, source = story.columns, story.source
    linked = np.flatnonzero(story.happened & columns.wrote & (source != UNWRITTEN))
    rivals, goes_on = _rivals(linked, source)
    root, depth = _followed(linked, source)
    joined = np.zeros(len(columns), dtype=np.bool_)
    joined[linked] = True
    cyclic = linked[joined[root[linked]]]
    torn = np.zeros(len(columns.keys), dtype=np.bool_)
    for rows in (rivals.rows, cyclic):
        torn[columns.key[rows]] = True
    writers = np.flatnonzero((joined | goes_on) & ~torn[columns.key])
    reads = np.flatnonzero(story.happened & ~columns.wrote & (source != UNWRITTEN))
    members = np.flatnonzero(story.happened & (columns.wrote | (source != UNWRITTEN)))
    piece = np.full(len(columns), UNWRITTEN, dtype=np.intp)
    piece[members] = root[np.where(columns.wrote, np.arange(len(columns)), source)[members]]
    cycles = Mistakes(MistakeKind.CYCLE, cyclic, cyclic)
    order = _out_of_order(story, reads, _line(writers, root, depth), depth)
    return Pieces(members, piece, depth, (order, rivals, cycles))


def _rivals(linked: Rows, source: Rows) -> tuple[Mistakes, Mask]:
    """Rows that replaced a value that another row replaced; and which rows were replaced."""
    successor = np.full(len(source), UNWRITTEN, dtype=np.intp)
    successor[source[linked]] = linked
    late = linked[successor[source[linked]] != linked]
    return Mistakes(MistakeKind.RIVALS, late, successor[source[late]]), successor != UNWRITTEN


def _followed(linked: Rows, source: Rows) -> tuple[Rows, Rows]:
    """For each cas the write that began its piece, by pointer jumping, and its depth."""
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


def _line(writers: Rows, root: Rows, depth: Rows) -> Rows:
    """The rows that wrote, piece by piece, each in the order of its cas; without a sort."""
    length = np.bincount(root[writers], minlength=len(root))
    place = np.cumsum(length) - length
    line = np.empty_like(writers)
    line[place[root[writers]] + depth[writers]] = writers
    return line


def _out_of_order(story: Written, reads: Rows, line: Rows, depth: Rows) -> Mistakes:
    """The operations that ended before one that comes earlier in their piece began. Of all earlier
    ones only the one that began last matters: the largest row so far."""
    columns, source = story.columns, story.source
    before_reads = np.arange(len(columns))  # of a row that wrote: of it and all before it
    before = line
    if len(line):
        last = np.full(len(columns), UNWRITTEN, dtype=np.intp)
        np.maximum.at(last, source[reads], reads)
        so_far = _largest_so_far(np.stack((line, last[line]), axis=1), depth[line] == 0)
        before_reads[line] = so_far[:, 0]
        before = np.where(depth[line] == 0, line, np.roll(so_far[:, 1], 1))
    rows = np.concatenate((reads, line))
    others = np.concatenate((before_reads[source[reads]], before))
    wrong = columns.end[rows] < columns.start[others]
    return Mistakes(MistakeKind.ORDER, rows[wrong], others[wrong])


def _largest_so_far(rows: Rows, begins: Mask) -> Rows:
    """The running maximum within each piece, over pairs of columns."""
    bits = int(rows.max()).bit_length() + 1
    number = np.cumsum(begins) << bits
    packed = number[:, np.newaxis] | (rows + 1)
    return (np.maximum.accumulate(packed.ravel()).reshape(rows.shape) & ((1 << bits) - 1)) - 1
