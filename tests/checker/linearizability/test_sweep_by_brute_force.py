"""The sweeps answer as the brute force over all orders does, on small histories of every kind."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker.linearizability.models import MODELS, Call, Model, semaphore
from lockcheck.checker.linearizability.sweep import CHOICE, OVERLAPPING, TOUCHING, sweep
from lockcheck.history.table import NEVER, NO_TOKEN, NOTHING, Ints, Op, Outcome, Table
from tests.checker.linearizability.brute import Timed, brute
from tests.checker.linearizability.generated import histories
from tests.checker.linearizability.locks import Row, small, table_of, with_leases
from tests.often import often

OWNED = [MODELS[name] for name in ("owner-mutex", "reentrant", "fenced", "reentrant-fenced")]
COUNTED = [semaphore(1), semaphore(2)]


def name_of(model: Model) -> str:
    return model.name


def told(table: Table, model: Model, until: Ints | None = None) -> bool | None:
    answer = sweep(table, model, until).get(NOTHING)
    if answer is None:
        return True
    assert answer.linearizable is not True
    if answer.linearizable is None:
        assert answer.reason in (CHOICE, TOUCHING, OVERLAPPING)
    else:
        assert answer.rows
        assert answer.reason
    return answer.linearizable


@pytest.mark.parametrize("model", OWNED + COUNTED, ids=name_of)
@often
@given(data=st.data())
def test_clients_in_sequence(model: Model, data: st.DataObject) -> None:
    table, _ = data.draw(small())
    answer = told(table, model)
    assert answer is None or answer is brute(table, model)
    assert model.owners or answer is not None


@pytest.mark.parametrize("model", OWNED + COUNTED, ids=name_of)
@often
@given(data=st.data())
def test_whatever_clients_do(model: Model, data: st.DataObject) -> None:
    table = data.draw(histories(model))
    answer = told(table, model)
    assert answer is None or answer is brute(table, model)
    assert model.owners or answer is not None


@pytest.mark.parametrize("model", OWNED, ids=name_of)
@often
@given(data=st.data())
def test_leases(model: Model, data: st.DataObject) -> None:
    table, until = data.draw(small(most=6, leases=True))
    answer = told(table, model, until)
    assert answer is None or answer is brute_with_leases(table, model, until)


@often
@given(data=st.data())
def test_semaphores_whose_permits_are_leased(data: st.DataObject) -> None:
    """Whose permit ran out nobody knows: a lease is a release that may happen from then on."""
    model = data.draw(st.sampled_from(COUNTED))
    table, until = data.draw(small(most=6, leases=True))
    rows = timed(table, model, until)
    ends = [(moment, NEVER, Call(Op.RELEASE, confirmed=False)) for moment in leases(table, until)]
    plain = [(start, end, call._replace(argument=None)) for start, end, call in rows]
    assert told(table, model, until) is brute(plain + ends, model)


def leases(table: Table, until: Ints) -> list[int]:
    """When each granted acquire runs out; what its client renewed before its next turn counts."""
    found = []
    for row in range(len(table)):
        if table.f[row] != Op.ACQUIRE or table.outcome[row] != Outcome.OK:
            continue
        promised = int(until[row])
        for later in range(row + 1, len(table)):
            if table.process[later] != table.process[row] or table.outcome[later] != Outcome.OK:
                continue
            if table.f[later] != Op.RENEW:
                break
            promised = max(promised, int(until[later]))
        found.append(promised)
    return found


def timed(table: Table, model: Model, until: Ints) -> list[Timed]:
    found = []
    for row in range(len(table)):
        f, outcome = Op(int(table.f[row])), Outcome(int(table.outcome[row]))
        if outcome is Outcome.FAIL or (outcome is Outcome.INFO and f is Op.RENEW):
            continue
        ok, token = outcome is Outcome.OK, int(table.token[row])
        call = Call(
            f,
            process=int(table.process[row]) if model.owners else None,
            argument=int(until[row]) if ok else -NEVER,
            token=token if model.tokens and ok and token != NO_TOKEN else None,
            confirmed=ok,
        )
        found.append((int(table.start[row]), int(table.end[row]), call))
    return found


def brute_with_leases(table: Table, model: Model, until: Ints) -> bool:
    leased, moments = with_leases(model, until)
    rows = timed(table, model, until)
    ends = [(moment, NEVER, Call(Op.OTHER, argument=moment, confirmed=False)) for moment in moments]
    return brute(rows + ends, leased)


UNTOLD_AT_MOST = 0.02  # of the histories in which no client's operations touch


@pytest.mark.parametrize("model", OWNED, ids=name_of)
def test_hardly_any_history_is_left_undecided(model: Model) -> None:
    random, answers = Random(7), Counter[bool | None]()
    for _ in range(600):
        answers[told(_apart(random), model)] += 1
    assert answers[None] <= UNTOLD_AT_MOST * sum(answers.values())
    assert answers[True] > 50
    assert answers[False] > 50


def _apart(random: Random) -> Table:
    rows = []
    for client in range(3):
        times = sorted(random.sample(range(60), 6))
        f = Op.RELEASE
        for start, end in zip(times[::2], times[1::2], strict=True):
            f = Op.RELEASE if f is Op.ACQUIRE else Op.ACQUIRE
            outcome = Outcome.INFO if random.random() < 0.25 else Outcome.OK
            rows.append(Row(client, f, outcome, start, end))
    return table_of(rows)[0]
