"""Operations as rows, each with its beginning and end: cells in, columns out.

A row without an end was never answered: it may take effect at any time. If its client goes on all
the same, it had stopped waiting by then. The storage's number comes from an answer, so a row
without an end has none. A row `lost` is a notice: it is allowed anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lockcheck.errors import HistoryError
from lockcheck.formats.names import our_row_f
from lockcheck.formats.tables.cell_columns import (
    ABSENT,
    CellError,
    RepeatedTexts,
    numbers_of,
    times_of,
)
from lockcheck.formats.tables.cells import (
    LARGEST_TTL_MS,
    NO_PAIR,
    NO_REFUSAL,
    NO_RELEASE,
    NO_RENEWAL,
    NOT_LOST,
    Released,
    flag,
    is_pair,
    json_or_text,
    refusal,
    released,
)
from lockcheck.history.event import EventType, F, Notice, Refusal
from lockcheck.history.table import NOTHING, Mask

NEEDED = ("client", "key", "op", "start_ns", "end_ns", "outcome")
OPTIONAL = (
    *("token", "value", "result", "ttl_ms", "node", "seq", "base", "of"),
    *("shared", "released", "refused"),
)
COLUMNS = (*NEEDED, *OPTIONAL)
TIMES = ("start_ns", "end_ns")
MIXING = np.uint64(0x9E3779B97F4A7C15)
ANSWERED_TOKEN = (F.ACQUIRE, F.RENEW)
OUTCOMES = {kind.value: kind for kind in (EventType.OK, EventType.FAIL, EventType.INFO)}

Column: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Cells:
    """Some rows, column by column. A column that is empty in all rows may be missing."""

    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    error: Callable[[int, str, str], HistoryError]  # takes row, column and reason
    paths: Sequence[str] = ()  # the list that each row is in, within its line
    numbers: Sequence[int] = ()  # and the index in that list


def _outcome(text: str) -> EventType:
    outcome = OUTCOMES.get(text.strip().lower())
    if outcome is None:
        raise ValueError(f"neither ok, fail nor info: {text[:40]!r}")
    return outcome


@dataclass(slots=True)
class Intervals:
    """All rows as columns: place `i` of each is about the same row; texts are numbers."""

    names: RepeatedTexts[str] = field(default_factory=lambda: RepeatedTexts(str))  # of clients
    keys: RepeatedTexts[str] = field(default_factory=lambda: RepeatedTexts(str))
    fs: RepeatedTexts[str] = field(default_factory=lambda: RepeatedTexts(our_row_f))
    outcomes: RepeatedTexts[EventType] = field(default_factory=lambda: RepeatedTexts(_outcome))
    values: RepeatedTexts[object] = field(default_factory=lambda: RepeatedTexts(json_or_text))
    flags: RepeatedTexts[bool] = field(default_factory=lambda: RepeatedTexts(flag))
    releases: RepeatedTexts[Released] = field(default_factory=lambda: RepeatedTexts(released))
    refusals: RepeatedTexts[Refusal] = field(default_factory=lambda: RepeatedTexts(refusal))
    nodes: RepeatedTexts[str] = field(default_factory=lambda: RepeatedTexts(str))
    paths: RepeatedTexts[str] = field(default_factory=lambda: RepeatedTexts(str))
    _lengths: list[int] = field(default_factory=list)  # of the parts
    _parts: list[dict[str, Column]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(self._lengths)

    def column(self, name: str) -> Column:
        """Removes and returns a column. One that is empty in all rows takes no memory."""
        nothing = self._nothing(name)
        parts = [part.pop(name, None) for part in self._parts]
        if all(part is None for part in parts):
            return np.broadcast_to(nothing, len(self))
        return np.concatenate(
            [
                np.broadcast_to(nothing, length) if part is None else part
                for length, part in zip(self._lengths, parts, strict=True)
            ]
        )

    def without_copies(self) -> int:
        """Removes rows that are equal to an earlier one, as log shippers deliver; how many there
        were. What took no time and adds up may have been done twice."""
        words = np.concatenate([np.zeros(0, np.uint64), *map(self._words, self._parts)])
        in_order = np.sort(words)
        if not (in_order[1:] == in_order[:-1]).any():
            return 0
        names = [name for name in COLUMNS if any(name in part for part in self._parts)]
        names += [name for name in ("line", "path", "number") if name in self._parts[0]]
        whole = {name: self.column(name) for name in names}
        order = np.argsort(words, kind="stable")
        one, other = order[:-1], order[1:]
        same = words[one] == words[other]
        same &= ~(self.fs.are(whole["op"], F.ADD) & (whole["start_ns"] == whole["end_ns"]))[other]
        for name in names:
            same &= (whole[name][one] == whole[name][other]) | (name not in COLUMNS)
        kept = np.ones(len(words), np.bool_)
        kept[other[same]] = False
        self._parts = [{name: column[kept] for name, column in whole.items()}]
        self._lengths = [int(np.count_nonzero(kept))]
        return len(words) - self._lengths[0]

    def _words(self, part: dict[str, Column]) -> NDArray[np.uint64]:
        """A number for each row, the same for equal ones."""
        words = np.zeros(len(part["op"]), np.uint64)
        for name in COLUMNS:
            column = part.get(name, self._nothing(name))
            words = (words ^ np.asarray(column).astype(np.uint64)) * MIXING
        return words

    def take(self, cells: Cells) -> None:
        """Adds some rows after checking each."""
        part = {name: self._read(cells, name) for name in COLUMNS if name in cells.columns}
        self._check(cells, part)
        part["line"] = np.array(cells.lines, np.int64)
        if cells.paths:
            part["path"] = self.paths.numbers(cells.paths)
            part["number"] = np.array(cells.numbers, np.int32)
        self._lengths.append(len(cells.lines))
        self._parts.append(part)

    def _read(self, cells: Cells, name: str) -> Column:
        words, column = self._words_of(name), cells.columns[name]
        try:
            if name in TIMES:
                return times_of(column)
            return numbers_of(column) if words is None else words.numbers(column)
        except CellError as error:
            raise cells.error(error.place, name, str(error)) from error

    def _words_of(self, name: str) -> RepeatedTexts[Any] | None:
        """The texts of a column; None for a column of numbers."""
        known: dict[str, RepeatedTexts[Any]] = {
            **dict.fromkeys(("client", "of"), self.names),
            **dict.fromkeys(("value", "result", "base"), self.values),
            "key": self.keys,
            "op": self.fs,
            "outcome": self.outcomes,
            "node": self.nodes,
            "shared": self.flags,
            "released": self.releases,
            "refused": self.refusals,
            "path": self.paths,
        }
        return known.get(name)

    def _nothing(self, name: str) -> np.integer[Any]:
        return np.int64(ABSENT) if self._words_of(name) is None else np.int32(NOTHING)

    def _check(self, cells: Cells, part: dict[str, Column]) -> None:
        def refuse(name: str, wrong: Mask, reason: str) -> None:
            if wrong.any():
                raise cells.error(int(np.argmax(wrong)), name, reason)

        def column(name: str) -> Column:
            return part.get(name, np.broadcast_to(self._nothing(name), len(cells.lines)))

        op, end, outcome, ttl_ms = part["op"], part["end_ns"], part["outcome"], column("ttl_ms")
        lost, unanswered = self.fs.are(op, Notice.LOST), end == ABSENT
        failed = self.outcomes.are(outcome, EventType.FAIL)
        unknown = (outcome == NOTHING) | self.outcomes.are(outcome, EventType.INFO)
        refuse("client", part["client"] == NOTHING, "an operation without a client")
        refuse("op", op == NOTHING, "no operation")
        refuse("start_ns", part["start_ns"] == ABSENT, "not a 64-bit number: ''")
        took = lost & ~unanswered & (end != part["start_ns"])
        refuse("end_ns", took, "a notice has one time only, when it came")
        refuse("outcome", lost & failed, NOT_LOST)
        no_outcome = ~lost & ~unanswered & (outcome == NOTHING)
        refuse("outcome", no_outcome, "an answer without an outcome")
        refuse("end_ns", ~lost & unanswered & ~unknown, "an answer without a time")
        no_lease = (ttl_ms != ABSENT) & ((ttl_ms < 0) | (ttl_ms > LARGEST_TTL_MS))
        if no_lease.any():
            refuse("ttl_ms", no_lease, f"not a lease: {ttl_ms[np.argmax(no_lease)]}")
        no_release = ~self.fs.are(op, F.RELEASE)
        refuse("released", (column("released") != NOTHING) & no_release, NO_RELEASE)
        refuse("refused", (column("refused") != NOTHING) & ~failed, NO_REFUSAL)
        refuse("of", (column("of") != NOTHING) & ~self.fs.are(op, F.RENEW), NO_RENEWAL)
        pairs = self.fs.are(op, F.CAS)
        pairs[pairs] = [
            not is_pair(self.values.meaning(n)) for n in column("value")[pairs].tolist()
        ]
        refuse("value", pairs, NO_PAIR)
        end[lost] = ABSENT
