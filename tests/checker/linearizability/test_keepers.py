"""Renewals by a keeper: the engines answer as the brute force over all orders does, to which a
keeper's renewal is one of its client whenever it comes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker.linearizability.decide import decide
from lockcheck.checker.linearizability.keepers import as_clients, has_keepers, merged_renewals
from lockcheck.checker.linearizability.models import MODELS, Model, semaphore
from lockcheck.checker.linearizability.sweep.sweep import sweep
from lockcheck.history.ordering import BEFORE_ALL, latest_before
from lockcheck.history.table import NEVER, NOTHING, Ints, Op, Outcome, Table
from tests.checker.dsl import leased
from tests.checker.linearizability.brute import brute
from tests.checker.linearizability.brute_leases import brute_with_leases
from tests.checker.linearizability.locks import Row, kept, table_of
from tests.often import often

OWNED = [MODELS[name] for name in ("owner-mutex", "reentrant", "fenced", "reentrant-fenced")]
COUNTED = [semaphore(1), semaphore(2)]


def name_of(model: Model) -> str:
    return model.name


def decided(table: Table, model: Model, until: Ints | None = None) -> bool | None:
    decision = decide(table, model, until)
    for answer in decision.answers.values():
        assert answer.reason
        rows = {*answer.rows, *answer.prefix}
        assert rows <= set(range(len(table)))
    return decision.linearizable


@pytest.mark.parametrize("model", OWNED + COUNTED, ids=name_of)
@often
@given(data=st.data())
def test_keepers(model: Model, data: st.DataObject) -> None:
    table, _ = data.draw(kept())
    assert decided(table, model) is brute(as_clients(table), model)


@pytest.mark.parametrize("model", OWNED + COUNTED, ids=name_of)
@often
@given(data=st.data())
def test_keepers_of_leases(model: Model, data: st.DataObject) -> None:
    table, until = data.draw(kept(most=5, leases=True))
    expected = brute_with_leases(as_clients(table), model, until)
    assert decided(table, model, until) is expected


def kept_turns(random: Random, *, leases: bool) -> tuple[Table, Ints]:
    """A right lock: turns one after the other, each renewed by its client's keeper at any time,
    also while it lets go; sometimes one of the times is moved."""
    rows, now = [], 0
    for turn in range(random.randrange(2, 5)):
        client = turn % 2
        asked, granted = now, now + random.randrange(1, 6)
        leaving = granted + random.randrange(4, 20)
        left = leaving + random.randrange(2, 8)
        rows.append(Row(client, Op.ACQUIRE, Outcome.OK, asked, granted, turn + 1, asked + 15))
        rows.append(Row(client, Op.RELEASE, Outcome.OK, leaving, left))
        at = granted + random.randrange(0, 4)
        while at < left:
            end = at + random.randrange(1, 6)
            outcome = Outcome.OK if at <= leaving else random.choice((Outcome.OK, Outcome.FAIL))
            renewal = Row(client + 2, Op.RENEW, outcome, at, end, until=at + 15, owner=client)
            rows.append(renewal)
            at = end + random.randrange(1, 8)
        now = leaving + random.randrange(1, 4)
    if random.random() < 0.3:
        at = random.randrange(len(rows))
        shift = random.choice((-6, -3, 3, 6))
        rows[at] = rows[at]._replace(
            start=max(0, rows[at].start + shift), end=max(0, rows[at].end + shift)
        )
    table, until = table_of(rows)
    return table, until if leases else np.full(len(until), NEVER)


@pytest.mark.parametrize("leases", [False, True])
@pytest.mark.parametrize("model", OWNED[::2], ids=name_of)
def test_what_keepers_mostly_do_is_decided(model: Model, leases: bool) -> None:
    random, answers = Random(3), Counter[bool | None]()
    for _ in range(400):
        table, until = kept_turns(random, leases=leases)
        assert has_keepers(table) or not (table.f == Op.RENEW).any()
        answer = decided(table, model, until if leases else None)
        answers[answer] += 1
        if len(table) <= 9:
            own = as_clients(table)
            expected = brute_with_leases(own, model, until) if leases else brute(own, model)
            assert answer is expected
    assert answers[None] == 0
    assert answers[True] > 200
    assert answers[False] > 20


def test_a_keeper_that_renews_in_between_costs_no_search() -> None:
    table, until = leased("""
        0 acquire 0-2 until=12
        9 renew 5-8 until=15 of=0
        9 renew 10-18 until=20 of=0  # while it lets go
        0 release 16-19
        1 acquire 3-21""")
    decision = decide(table, MODELS["owner-mutex"], until)
    assert decision.linearizable is True
    assert decision.engines == {"sweep": 1}


@pytest.mark.parametrize(
    ("renewal", "expected"),
    [
        ("12-14 until=22", False),  # it promised the lock for longer
        ("12-14 until=18", True),
        ("21-23 until=40", False),  # it came after another one was let in
    ],
)
def test_what_a_keeper_was_promised_binds(renewal: str, expected: bool) -> None:
    table, until = leased(f"""
        0 acquire 0-2 until=10
        9 renew 5-8 until=15 of=0
        9 renew {renewal} of=0
        1 acquire 18-20 until=40""")
    assert decided(table, MODELS["owner-mutex"], until) is expected


def test_a_table_without_keepers_is_left_as_it_is() -> None:
    table, until = leased("0 acquire 0-2 \n 0 renew 3-4")
    assert not has_keepers(table)
    same = merged_renewals(table, until)
    assert same.rows.tolist() == [0, 1]
    assert sweep(same.table, MODELS["owner-mutex"], same.until).get(NOTHING) is None
    assert has_keepers(replace(table, owner=table.owner + 1))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("9 renew 5-9 until=17 of=0", "0 renew 7-8 until=15", True),
        ("9 renew 5-9 until=40 of=0", "0 renew 7-8 until=15", False),
        ("9 renew 5-9 until=17 of=0", "8 renew 5-9 until=16 of=0", True),
        ("9 renew 5-9 until=17 of=0", "8 renew 5-9 until=40 of=0", False),
        ("9 renew 5-9 until=40 of=0", "8 renew 5-9 until=17 of=0", False),
    ],
)
def test_two_who_renew_at_once(one: str, other: str, expected: bool) -> None:
    table, until = leased(f"""
        0 acquire 0-2 until=10
        {one}
        {other}
        1 acquire 18-20 until=60""")
    decision = decide(table, MODELS["owner-mutex"], until)
    assert decision.linearizable is expected
    assert decision.engines == {"sweep": 1}


def test_ends_of_many_keys_over_a_long_time() -> None:
    """Where key and time do not fit into one word."""
    keys = np.repeat(np.arange(1 << 10, dtype=np.int32), 3)
    end = np.tile(np.array([5, 1 << 58, 7]), 1 << 10)
    expected = np.tile(np.array([BEFORE_ALL, 5, 1 << 58]), 1 << 10)
    assert latest_before(keys, end).tolist() == expected.tolist()
    assert latest_before(keys[:6], end[:6] % 100).tolist() == [BEFORE_ALL, 5, 44] * 2
    assert len(latest_before(keys[:0], end[:0])) == 0
