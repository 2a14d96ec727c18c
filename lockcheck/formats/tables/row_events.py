"""The events of rows, in the order of their times, and the same as columns.

Of a client's events at the same time, a notice comes after operations that end and before those
that begin; operations that took no time stay in the given order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import numpy as np
from msgspec.structs import replace

from lockcheck.formats.tables.cell_columns import ABSENT, RepeatedTexts
from lockcheck.formats.tables.cells import Released
from lockcheck.formats.tables.intervals import ANSWERED_TOKEN
from lockcheck.formats.tables.rows import Rows
from lockcheck.history.columns import LEDGER, Columns, LedgerColumns
from lockcheck.history.event import Event, EventType, Refusal
from lockcheck.history.table import (
    NEVER,
    NO_TOKEN,
    NOTHING,
    OP_OF,
    Bytes,
    Codes,
    Ints,
    Op,
    Outcome,
    Symbols,
    Table,
    blind_by_value,
)

EMPTY_LEDGER = LedgerColumns(**{name: np.zeros(0, kind) for name, kind in LEDGER.items()})
OUTCOME_OF = {EventType.OK: Outcome.OK, EventType.FAIL: Outcome.FAIL, EventType.INFO: Outcome.INFO}
LONG_AGO = -(1 << 60)


class RowEvents:
    """Creates the events of rows when they are needed. An event has a number: that of its row, for
    an answer plus the number of rows. Its place is its index in the order of times."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        words, column = rows.given, rows.given.column
        self._value, self._result = column("value"), column("result")
        self._base, self._node = column("base"), column("node")
        self._token, self._ttl_ms = column("token"), column("ttl_ms")
        self._shared = words.flags.are(column("shared"), meant=True)
        self._refused = column("refused")
        released = column("released")
        self._in_vain = words.releases.are(released, Released.FALSE)
        self._unsaid = words.releases.are(released, Released.UNSAID)
        self._gains = np.logical_or(*(words.fs.are(rows.op, f) for f in ANSWERED_TOKEN))
        self._numbers = self._in_order()

    def _in_order(self) -> Ints:
        """Event numbers by time; the stable sort keeps the order within each client."""
        order, rows = self._rows.order, self._rows
        times = np.stack((rows.start[order], rows.answered[order]), axis=1).reshape(-1)
        numbers = np.stack((order, order + len(order)), axis=1).reshape(-1)
        place = np.argsort(times, kind="stable")
        ordered: Ints = numbers[place[times[place] != NEVER]]
        return ordered

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._made(self._numbers))

    def at(self, places: Ints) -> dict[int, Event]:
        places = np.unique(places[places >= 0])
        return dict(zip(places.tolist(), self._made(self._numbers[places]), strict=True))

    def _made(self, numbers: Ints) -> list[Event]:
        begins = numbers < len(self._rows)
        begun, answered = numbers[begins], numbers[~begins] - len(self._rows)
        made = [*self._begun(begun), *self._answered(answered)]
        place = np.empty(len(numbers), np.int64)
        place[np.argsort(~begins, kind="stable")] = np.arange(len(numbers))
        return list(map(made.__getitem__, place.tolist()))

    def _begun(self, rows: Ints) -> Iterator[Event]:
        of, words = self._rows, self._rows.given
        nothing: repeat[None] = repeat(None)
        shown = np.where(self._gains[rows], ABSENT, self._token[rows])
        lost = of.lost[rows].tolist()
        return map(
            Event,
            of.start[rows].tolist(),
            self._processes(of.client[rows]),
            [EventType.INFO if each else EventType.INVOKE for each in lost],
            words.fs.meanings(of.op[rows]),
            words.keys.meanings(of.key[rows]),
            words.values.meanings(self._value[rows]),
            words.nodes.meanings(self._node[rows]),
            _or_none(shown),
            nothing,
            nothing,
            words.values.meanings(self._base[rows]),
            _or_none(self._ttl_ms[rows]),
            nothing,
            nothing,
            self._processes(of.owner[rows]),
            self._shared[rows].tolist(),
        )

    def _answered(self, rows: Ints) -> Iterator[Event]:
        of, words = self._rows, self._rows.given
        outcomes = words.outcomes.meanings(of.outcome[rows])
        known = self._outcome()[rows] != Outcome.INFO
        made = map(
            Event,
            of.answered[rows].tolist(),
            self._processes(of.client[rows]),
            [outcome or EventType.INFO for outcome in outcomes],
            words.fs.meanings(of.op[rows]),
            words.keys.meanings(of.key[rows]),
            words.values.meanings(self._result[rows]),
            words.nodes.meanings(self._node[rows]),
            _or_none(np.where(self._gains[rows], self._token[rows], ABSENT)),
            repeat(None),
            _or_none(np.where(known, of.seq[rows], ABSENT)),
        )
        more = self._unsaid[rows] | self._in_vain[rows] | (self._refused[rows] != NOTHING)
        return map(self._completed, made, rows.tolist()) if more.any() else made

    def _completed(self, answer: Event, row: int) -> Event:
        """The answer with what it says of the lock."""
        if self._refused[row] != NOTHING:
            return replace(answer, refused=self._rows.given.refusals.meaning(self._refused[row]))
        if answer.type is not EventType.OK:
            return answer
        if self._in_vain[row]:
            return replace(answer, type=EventType.FAIL, refused=Refusal.NOT_OWNER)
        return replace(answer, unsaid=True) if self._unsaid[row] else answer

    def _processes(self, clients: Codes) -> list[int | str | None]:
        processes = self._rows.processes
        return [None if n == NOTHING else processes[n] for n in clients.tolist()]

    def _outcome(self) -> Bytes:
        """The outcome of each row; a row without one is INFO."""
        meant = self._rows.given.outcomes.meant
        known = np.array([*(OUTCOME_OF[each] for each in meant), Outcome.INFO], np.int8)
        outcome: Bytes = known[self._rows.outcome]
        outcome[self._in_vain & (outcome == Outcome.OK)] = Outcome.FAIL
        return outcome

    # --- as columns --------------------------------------------------------------------------

    def columns(self) -> Columns | None:
        """The rows as columns; None if only events can hold them: no model knows some operation, or
        a lock is shared."""
        rows, words, count = self._rows, self._rows.given, len(self._rows)
        f = np.array([OP_OF.get(f, Op.OTHER) for f in words.fs.meant], np.int8)[rows.op]
        if ((f == Op.OTHER) & ~rows.lost).any() or self._shared.any():
            return None
        place = np.full(2 * count, -1)
        place[self._numbers] = np.arange(len(self))
        begun = self._numbers[self._numbers < count]
        at = begun[~rows.lost[begun]]
        symbols = Symbols()
        process = np.array([symbols.number(each) for each in rows.processes], np.int32)
        key, node = _symbols(words.keys, symbols)[rows.key], _symbols(words.nodes, symbols)
        value = _symbols(words.values, symbols)
        argument, second = value[self._value], np.full(count, NOTHING, np.int32)
        for row in np.flatnonzero(f == Op.CAS).tolist():
            pair: Any = words.values.meaning(self._value[row])
            argument[row], second[row] = map(symbols.number, pair)
        outcome, result = self._outcome()[at], value[self._result[at]]
        base = value[self._base[at]]
        numbered = np.flatnonzero((outcome != Outcome.INFO) & (rows.seq[at] != ABSENT))
        granted = self._gains[at] & (outcome == Outcome.OK)
        table = Table(
            f=f[at],
            outcome=outcome,
            start=rows.start[at],
            end=np.where(outcome == Outcome.INFO, NEVER, rows.answered[at]),
            process=process[rows.client[at]],
            key=key[at],
            argument=argument[at],
            second=second[at],
            result=result,
            token=np.where(granted, self._token[at], NO_TOKEN),
            ttl_ms=np.maximum(self._ttl_ms[at], NOTHING).astype(np.int32),
            owner=process[np.where(rows.owner == NOTHING, rows.client, rows.owner)[at]],
            blind=blind_by_value(f[at], result, symbols),
            unsaid=self._unsaid[at] & (outcome == Outcome.OK),
            shared=self._shared[at],
            turn=np.broadcast_to(np.int32(NOTHING), len(at)),
            symbols=symbols,
        )
        times = np.concatenate((rows.start, rows.answered))[self._numbers]
        seen_last = np.full(len(symbols), LONG_AGO)
        seen_last[process[rows.client[self._numbers % count]]] = times  # the last assignment stays
        return Columns(
            table=table,
            node=node[self._node[at]],
            invoked_at=place[at],
            answered_at=place[at + count],
            special_at=place[begun[rows.lost[begun]]],
            seen_last=seen_last,
            numbered=numbered,
            number=rows.seq[at][numbered],
            based=np.flatnonzero(base != NOTHING),
            base=base[base != NOTHING],
            ledger=EMPTY_LEDGER,
            has_foreign_owners=False,
            began_ns=rows.began_ns,
            end_ns=int(times[-1]),
            events=len(self),
        )


def _symbols(words: RepeatedTexts[Any], symbols: Symbols) -> Codes:
    """The symbol of each word; NOTHING is the last."""
    return np.array([*map(symbols.number, words.meant), NOTHING], np.int32)


def _or_none(numbers: Ints) -> list[int | None]:
    return [None if number == ABSENT else number for number in numbers.tolist()]
