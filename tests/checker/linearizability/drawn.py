"""Small histories of locks from a seed, many and fast: what a lock did, with some answers
missing and few changed, and clients that do anything at any time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np

from lockcheck.history.table import NEVER, NO_TOKEN, Ints, Op, Outcome, Table
from tests.checker.linearizability.locks import Row, table_of

CLIENTS = 3
MOST = 7  # operations
AFTER_ACQUIRE = (Op.RELEASE, Op.RELEASE, Op.RELEASE, Op.RENEW, Op.ACQUIRE)
AFTER_RELEASE = (Op.ACQUIRE, Op.ACQUIRE, Op.ACQUIRE, Op.ACQUIRE, Op.RELEASE, Op.RENEW)


def drawn(random: Random, *, leases: bool) -> tuple[Table, Ints]:
    rows = random.choice((_anything, _turns, _turns))(random)
    tick = random.choice((1, 1, 2, 4))  # of a coarse clock
    rows = [row._replace(start=row.start // tick, end=row.end // tick) for row in rows]
    if leases:
        lease = random.choice((0, 4, 12, 30))
        rows = [row._replace(until=row.start + (lease or random.randint(1, 12))) for row in rows]
    return table_of(_with_tokens(random, rows))


def some_either(random: Random, table: Table) -> Table:
    """Mostly as it was; else some of its releases may have found nothing to do."""
    outcome = table.outcome.copy()
    for row in range(len(table)):
        released = table.f[row] == Op.RELEASE and outcome[row] == Outcome.OK
        if released and random.random() < 0.5:
            outcome[row] = Outcome.EITHER
    return table if random.random() < 0.8 else replace(table, outcome=outcome)


def some_shared(random: Random, table: Table) -> Table:
    """Clients that share the lock, mostly: often each of them always does."""
    share, always = random.choice((0.5, 0.8)), random.random() < 0.5
    readers = {client for client in range(CLIENTS) if random.random() < share}
    shared = [
        int(table.f[row]) == Op.ACQUIRE
        and (int(table.process[row]) in readers if always else random.random() < share)
        for row in range(len(table))
    ]
    return replace(table, shared=np.array(shared, np.bool_))


def _anything(random: Random) -> list[Row]:
    """Clients that do one thing after the other, mostly in a sensible order, and go on whatever
    the answers are; and sometimes keepers, or clients that do two things at once."""
    moments = random.choice((8, 14, 40, 400))
    rows: list[Row] = []
    for client in range(random.randint(1, CLIENTS)):
        count = random.randint(0, min(5, MOST - len(rows)))
        times = sorted(random.randint(0, moments) for _ in range(2 * count))
        last = Op.RELEASE
        for start, end in zip(times[::2], times[1::2], strict=True):
            f = random.choice(AFTER_ACQUIRE if last is Op.ACQUIRE else AFTER_RELEASE)
            rows.append(Row(client, f, _outcome(random), start, end))
            last = last if f is Op.RENEW else f
    if random.random() < 0.2:
        owner, (start, end) = random.randrange(CLIENTS), sorted(random.sample(range(moments), 2))
        rows.append(Row(CLIENTS, Op.RENEW, _outcome(random), start, end, owner=owner))
    if random.random() < 0.1:
        client, (start, end) = random.randrange(CLIENTS), sorted(random.sample(range(moments), 2))
        rows.append(Row(client, random.choice(AFTER_RELEASE), _outcome(random), start, end))
    return rows


def _turns(random: Random) -> list[Row]:
    """Holds one after the other, or nearly so, whose ends are too early, too late or missing."""
    rows: list[Row] = []
    free = dict.fromkeys(range(CLIENTS), 0)
    now, loose = 0, random.choice((1, 3, 6))
    while len(rows) < MOST - 1 and random.random() < 0.9:
        client = random.randrange(CLIENTS)
        for f in (Op.ACQUIRE, *random.choice(((), (Op.RENEW,), ())), Op.RELEASE):
            if len(rows) == MOST or (f is Op.RELEASE and random.random() < 0.15):
                continue
            now += random.randint(0, 3)
            start = max(free[client], now - random.randrange(loose))
            end = max(start, now + random.randrange(loose))
            rows.append(Row(client, f, _outcome(random, sure=8), start, end))
            free[client] = end + random.choice((0, 1))
        now += random.choice((-1, 0, 1, 2, 8))
        now = max(now, 0)
    return rows


def _outcome(random: Random, sure: int = 5) -> Outcome:
    return random.choice((Outcome.OK,) * sure + (Outcome.INFO, Outcome.INFO, Outcome.FAIL))


def _with_tokens(random: Random, rows: list[Row]) -> list[Row]:
    """The rows in the order of their answers, mostly with growing tokens."""
    numbered, token, strict = [], 0, random.random() < 0.7
    for row in sorted(rows, key=lambda row: row.end):
        number = NO_TOKEN
        if row.f is Op.ACQUIRE and row.outcome is Outcome.OK:
            token += random.choice((1, 1, 1, 2) if strict else (1, 1, 2, 0, -1))
            number = token if random.random() < 0.9 else NO_TOKEN
        until = NEVER if row.f is Op.RELEASE else row.until
        numbered.append(row._replace(token=number, until=until))
    return numbered
