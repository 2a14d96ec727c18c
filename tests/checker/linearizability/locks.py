"""Histories of locks: long ones that are right, and small ones with every corner."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from lockcheck.history.table import NEVER, NO_TOKEN, NOTHING, Ints, Op, Outcome, Symbols, Table

CLIENTS = 3


class Row(NamedTuple):
    process: int
    f: Op
    outcome: Outcome
    start: int
    end: int
    token: int = NO_TOKEN
    until: int = NEVER
    owner: int = -1  # of a keeper's renewal


def table_of(rows: list[Row]) -> tuple[Table, Ints]:
    rows = sorted(rows, key=lambda row: row.start)
    columns = np.array([list(map(int, row)) for row in rows], dtype=np.int64).reshape(-1, 8).T
    process, f, outcome, start, end, token, until, owner = columns
    nothing = np.full(len(rows), NOTHING, np.int32)
    symbols = Symbols()
    for client in range(64):
        symbols.number(client)
    table = Table(
        f.astype(np.int8),
        outcome.astype(np.int8),
        start,
        np.where(outcome == Outcome.INFO, NEVER, end),
        process.astype(np.int32),
        *(nothing,) * 4,
        token,
        nothing,
        np.where(owner < 0, process, owner).astype(np.int32),
        *(np.zeros(len(rows), np.bool_),) * 3,
        nothing,
        symbols,
    )
    return table, until


def many_turns(seed: int, unconfirmed: float = 0.05, turns: int = 300, clients: int = 6) -> Table:
    """A correct lock for which clients wait in turn; each goes on after unconfirmed operations."""
    random = Random(seed)
    rows, now = [], 10_000
    over = [0] * clients
    for turn in range(turns):
        client = turn % clients
        asked = max(over[client] + 1, now - random.randrange(1, 1500))
        granted = now + random.randrange(1, 50)
        leaving = granted + random.randrange(1, 400)
        now = leaving + random.randrange(1, 50)
        left = now + random.randrange(1, 50)
        outcomes = [Outcome.INFO if random.random() < unconfirmed else Outcome.OK for _ in range(2)]
        token = turn + 1 if outcomes[0] is Outcome.OK else NO_TOKEN
        rows.append(Row(client, Op.ACQUIRE, outcomes[0], asked, granted, token))
        rows.append(Row(client, Op.RELEASE, outcomes[1], leaving, left))
        over[client] = left
        now = left + random.randrange(1, 50)
    return table_of(rows)[0]


Draw = Callable[[st.SearchStrategy[Any]], Any]
STEPS = {Op.ACQUIRE: (Op.RELEASE, Op.RELEASE, Op.RELEASE, Op.RENEW, Op.ACQUIRE)}
OTHER_STEPS = (Op.ACQUIRE, Op.ACQUIRE, Op.ACQUIRE, Op.ACQUIRE, Op.RELEASE, Op.RENEW)
OUTCOMES = (Outcome.OK,) * 6 + (Outcome.INFO,) * 2 + (Outcome.FAIL,)


@st.composite
def small(draw: Draw, *, most: int = 8, leases: bool = False) -> tuple[Table, Ints]:
    """Clients that do one thing after the other, mostly in a sensible order, and go on whatever
    the answers are; there are few moments, so that many operations happen at the same time."""
    moments = draw(st.sampled_from((12, 40, 400)))
    sizes = draw(st.lists(st.integers(0, most // 2), min_size=1, max_size=CLIENTS))
    rows: list[Row] = []
    for client, size in enumerate(sizes):
        count = min(size, most - len(rows))
        times = draw(st.lists(st.integers(0, moments), min_size=2 * count, max_size=2 * count))
        rows += _client(draw, client, sorted(times), leases=leases)
    return table_of(_with_tokens(draw, rows))


@st.composite
def kept(draw: Draw, *, most: int = 6, leases: bool = False) -> tuple[Table, Ints]:
    """The same with keepers, each of which renews for one of the clients, whenever it likes."""
    table, until = draw(small(most=most, leases=leases))
    rows = rows_of(table, until)
    moments = max([12, *(row.end for row in rows if row.end < NEVER)])
    for keeper in range(draw(st.integers(1, 2))):
        owner = draw(st.integers(0, CLIENTS - 1))
        count = draw(st.integers(1, 2))
        times = draw(st.lists(st.integers(0, moments), min_size=2 * count, max_size=2 * count))
        for start, end in zip(*[iter(sorted(times))] * 2, strict=True):
            outcome = draw(st.sampled_from(OUTCOMES))
            promised = start + draw(st.integers(1, 12)) if leases else NEVER
            row = Row(CLIENTS + keeper, Op.RENEW, outcome, start, end, NO_TOKEN, promised, owner)
            rows.append(row)
    return table_of(rows)


def rows_of(table: Table, until: Ints) -> list[Row]:
    columns = (table.process, table.f, table.outcome, table.start, table.end, table.token, until)
    lists = [column.tolist() for column in (*columns, table.owner)]
    return [
        Row(process, Op(f), Outcome(outcome), start, end, token, promised, owner)
        for process, f, outcome, start, end, token, promised, owner in zip(*lists, strict=True)
    ]


def _client(draw: Draw, client: int, times: list[int], *, leases: bool) -> list[Row]:
    rows, last = [], Op.RELEASE
    for start, end in zip(times[::2], times[1::2], strict=True):
        f = draw(st.sampled_from(STEPS.get(last, OTHER_STEPS)))
        outcome = draw(st.sampled_from(OUTCOMES))
        until = start + draw(st.integers(1, 12)) if leases else NEVER
        rows.append(Row(client, f, outcome, start, end, NO_TOKEN, until))
        last = last if f is Op.RENEW or outcome is Outcome.FAIL else f
    return rows


def _with_tokens(draw: Draw, rows: list[Row]) -> list[Row]:
    """Mostly in the order of the answers."""
    numbered, token = [], 0
    for row in sorted(rows, key=lambda row: row.end):
        if row.f is Op.ACQUIRE and row.outcome is Outcome.OK:
            token += draw(st.sampled_from((1, 1, 1, 2, 0, -1)))
            silent = draw(st.integers(0, 6)) == 0
            numbered.append(row._replace(token=NO_TOKEN if silent else token))
        else:
            numbered.append(row)
    return numbered
