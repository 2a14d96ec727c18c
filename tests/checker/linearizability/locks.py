"""Histories of locks: long ones that are right, and small ones with every corner."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from lockcheck.checker.linearizability.models import Call, Held, Illegal, Model, State
from lockcheck.history.table import NEVER, NO_TOKEN, NOTHING, Ints, Op, Outcome, Symbols, Table

CLIENTS = 3
NO_OWNER: tuple[State, ...] = (None, 0)


class Row(NamedTuple):
    process: int
    f: Op
    outcome: Outcome
    start: int
    end: int
    token: int = NO_TOKEN
    until: int = NEVER


def table_of(rows: list[Row]) -> tuple[Table, Ints]:
    rows = sorted(rows, key=lambda row: row.start)
    columns = np.array([list(map(int, row)) for row in rows], dtype=np.int64).reshape(-1, 7).T
    process, f, outcome, start, end, token, until = columns
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
        symbols,
    )
    return table, until


def many_turns(seed: int, unconfirmed: float = 0.05, turns: int = 300, clients: int = 6) -> Table:
    """A correct lock for which clients wait in turn; each goes on after what nobody confirmed."""
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
    they are told; there are few moments, so that many things happen at the same time."""
    moments = draw(st.sampled_from((12, 40, 400)))
    sizes = draw(st.lists(st.integers(0, most // 2), min_size=1, max_size=CLIENTS))
    rows: list[Row] = []
    for client, size in enumerate(sizes):
        count = min(size, most - len(rows))
        times = draw(st.lists(st.integers(0, moments), min_size=2 * count, max_size=2 * count))
        rows += _client(draw, client, sorted(times), leases=leases)
    return table_of(_with_tokens(draw, rows))


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
    told, token = [], 0
    for row in sorted(rows, key=lambda row: row.end):
        if row.f is Op.ACQUIRE and row.outcome is Outcome.OK:
            token += draw(st.sampled_from((1, 1, 1, 2, 0, -1)))
            silent = draw(st.integers(0, 6)) == 0
            told.append(row._replace(token=NO_TOKEN if silent else token))
        else:
            told.append(row)
    return told


class Leased(NamedTuple):
    lock: State
    promised: int | None  # up to when; None while it is free


def with_leases(model: Model, until: Ints) -> tuple[Model, list[int]]:
    """A lock whose hold may end by itself: by a call of f OTHER, from the moment that was promised
    last in this hold on. Returns also the moments at which such calls have to be offered."""

    def step(state: State, call: Call) -> State | Illegal:
        assert isinstance(state, Leased)
        if call.f is Op.OTHER:
            fits = state.promised is not None and state.promised == call.argument
            return Leased(_freed(state.lock), None) if fits else Illegal("not now")
        after = model.step(state.lock, call._replace(argument=None))
        if isinstance(after, Illegal):
            return after
        if _free(after):
            return Leased(after, None)
        promises = [state.promised, call.argument if call.f is not Op.RELEASE else None]
        return Leased(after, max(p for p in promises if isinstance(p, int)))

    moments = sorted(int(moment) for moment in until if moment < NEVER)
    initial = Leased(model.initial, None)
    return Model(model.name, "", initial, step, model.operations, owners=True), moments


def _free(lock: State) -> bool:
    return lock is None or (isinstance(lock, Held) and not lock.times)


def _freed(lock: State) -> State:
    return Held(None, 0, lock.token, told=False) if isinstance(lock, Held) else None
