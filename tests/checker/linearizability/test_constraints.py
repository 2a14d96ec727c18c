"""Explanations of registers: each is a proof, is short, and says in words what it is about."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker.linearizability.answer import Answer, Because
from lockcheck.checker.linearizability.zones import LONGEST_CYCLE, zones
from lockcheck.history.table import NOTHING, Table
from tests.checker.dsl import table
from tests.checker.linearizability.proofs import Proof
from tests.checker.linearizability.registers import Row, correct, maybe_spoiled, table_of

REASONS = {
    "0 write 1-2 4\n3 read 3-4 = 7": "process 3 read 7, but nobody wrote 7",
    "3 cas 3-4 [7,8]": "process 3 replaced 7 by 8, but nobody wrote 7",
    "3 cas 1- [7,8]\n0 read 3-4 = 8": (
        "process 3 replaced 7 by 8 (unconfirmed), but nobody wrote 7; that it did shows as "
        "process 0 read 8"
    ),
    "3 read 1-2 = 7\n0 write 3-4 7": "process 3 read 7, and only then process 0 wrote 7",
    "3 read 1-2 = 7\n0 write 3- 7": (
        "process 3 read 7, and only then process 0 wrote 7 (unconfirmed)"
    ),
    "3 cas 1-2 [7,8]\n0 write 3-4 7": "process 3 replaced 7 by 8, and only then process 0 wrote 7",
    "0 write 1-2 5\n0 write 3-4 6\n1 read 5-6 = 5": (
        "process 0 wrote 5, and only then process 0 wrote 6, and only then process 1 read 5"
    ),
    "0 write 1-2 5\n1 read 3-4 = null": (
        "process 0 wrote 5, and only then process 1 read null, but null was the initial value"
    ),
    "0 cas 1-9 [null,1]\n2 write 1-2 5\n1 read 3-4 = 1": (
        "process 2 wrote 5, and only then process 1 read 1, but cas had made 1 of the initial value"
    ),
    "0 write 1-9 5\n1 cas 3-9 [5,6]\n2 cas 3-9 [5,7]": (
        "process 1 replaced 5 by 6 and process 2 replaced 5 by 7, but 5 was there only once"
    ),
    "0 write 1-2 5\n1 cas 3-4 [5,6]\n2 read 5-6 = 5": (
        "process 1 replaced 5 by 6, and only then process 2 read 5, but 5 was there only once"
    ),
    "0 cas 1-9 [1,2]\n1 cas 1-9 [2,1]": (
        "process 0 replaced 1 by 2 and process 1 replaced 2 by 1: "
        "each needs the one before it, the first one needs the last"
    ),
    "0 write 1-9 1\n1 cas 1-9 [1,2]\n1 cas 1-9 [2,3]\n2 read 3-4 = 3\n2 read 5-6 = 1": (
        "process 2 read 3, and only then process 2 read 1, but 2 cas led from 1 to 3"
    ),
    "0 write 1-9 1\n1 cas 1-9 [1,2]\n1 cas 1-9 [2,3]\n2 read 3-4 = 3\n2 read 5-6 = 2": (
        "process 2 read 3, and only then process 2 read 2, but 1 cas led from 2 to 3"
    ),
    "0 cas 1-9 [1,2]\n1 cas 1-9 [2,3]\n2 cas 1-9 [3,4]\n3 cas 1-9 [4,1]": (
        "process 0 replaced 1 by 2, process 1 replaced 2 by 3, process 2 replaced 3 by 4 "
        "and process 3 replaced 4 by 1: each needs the one before it, the first one needs the last"
    ),
    "0 cas 1-2 [1,2]\n1 cas 1-9 [2,3]\n2 cas 1-9 [3,4]\n3 cas 3-9 [4,5]\n4 cas 1-9 [5,1]": (
        "process 0's cas from 1 to 2 ended before process 3's cas from 4 to 5 began; "
        "process 4's cas from 5 to 1 saw what process 3's cas from 4 to 5 wrote; "
        "process 0's cas from 1 to 2 saw what process 4's cas from 5 to 1 wrote"
    ),
    (
        "0 write 1-9 5\n1 write 1-9 6\n2 read 2-3 = 5\n2 read 4-5 = 6\n3 read 2-3 = 6\n"
        "3 read 4-5 = 5"
    ): (
        "process 2 read 5, and only then process 2 read 6; "
        "but also: process 3 read 6, and only then process 3 read 5"
    ),
    "0 write 1-2 5\n1 cas 1-9 [5,6]\n1 write 3-4 9\n2 read 5-6 = 6": (
        "process 0 wrote 5, and only then process 1 wrote 9, and only then process 2 read 6; "
        "cas joins 6 to 5"
    ),
    '0 write 1-2 "a\\u001b[1m"\n1 read 3-4 = null': (
        'process 0 wrote "a\\u001b[1m", and only then process 1 read null, '
        "but null was the initial value"
    ),
}


def explained(what: Table) -> Answer:
    (answer,) = zones(what).values()
    return answer


@pytest.mark.parametrize("lines", REASONS)
def test_what_is_said(lines: str) -> None:
    what = table(lines)
    answer = explained(what)
    assert answer.reason == REASONS[lines]
    Proof(what, NOTHING).check(answer)


def test_each_constraint_says_why() -> None:
    what = table("0 write 1-2 5\n1 cas 1-9 [5,6]\n1 write 3-4 9\n2 read 5-6 = 6")
    answer = explained(what)
    assert answer.rows == (0, 2, 3)
    one, other = answer.cycle
    assert one == Because(2, 3, "process 1's write of 9 ended before process 2's read of 6 began")
    assert (other.before, other.after) == (3, 2)
    assert other.reason == (
        "all on 6 came before all on 9, since "
        "process 0's write of 5 ended before process 1's write of 9 began"
    )


def test_a_long_value_is_cut() -> None:
    answer = explained(table(f'0 read 1-2 = "{"x" * 1000}"'))
    assert len(answer.reason) < 150
    assert "xxx…" in answer.reason


def test_a_long_circle_of_cas_is_told_briefly() -> None:
    what = circle_of_cas(LONGEST_CYCLE)
    answer = explained(what)
    assert len(answer.cycle) == LONGEST_CYCLE
    assert f"{LONGEST_CYCLE - 4} more like them" in answer.reason
    Proof(what, what.symbols.number("x")).check(answer)
    answer = explained(circle_of_cas(LONGEST_CYCLE + 1))
    assert answer.linearizable is False
    assert answer.reason
    assert not answer.cycle


def circle_of_cas(steps: int) -> Table:
    return table(*(f"0 cas:x 1-9 [{i},{(i + 1) % steps}]" for i in range(steps)))


@given(st.data())
def test_every_explanation_is_a_proof(data: st.DataObject) -> None:
    what = table_of(maybe_spoiled(lambda below: data.draw(st.integers(0, below - 1))))
    check_all(what)


def test_many_explanations_are_proofs() -> None:
    choose = random.Random(11).randrange
    assert sum(check_all(table_of(maybe_spoiled(choose, most=14))) for _ in range(1500)) > 200


def check_all(what: Table) -> int:
    failed = {key: answer for key, answer in zones(what).items() if answer.decided}
    for key, answer in failed.items():
        Proof(what, key).check(answer)
    return len(failed)


def test_a_proof_is_of_a_few_operations_however_many_there_are() -> None:
    rows = long_history(600)
    assert zones(table_of(rows)) == {}
    for place in (140, 300, 450):
        stale = [replace(row) for row in rows]
        reader = next(i for i in range(place, len(rows)) if rows[i].f == "read")
        stale[reader] = replace(rows[reader], result=rows[0].asked)
        what = table_of(stale)
        ((key, answer),) = zones(what).items()
        assert len(answer.rows) <= 4
        assert len(answer.cycle) == 2
        Proof(what, key).check(answer)


def long_history(length: int) -> list[Row]:
    """One after another, each overlapping the next."""
    rows, value = [Row(0, "x", "write", 0, 3, asked=0)], 0
    for i in range(1, length):
        row = Row(i % 5, "x", "read", 2 * i, 2 * i + 3, result=value)
        if i % 3 == 0:
            row = Row(i % 5, "x", "write", 2 * i, 2 * i + 1, asked=i)
            value = i
        elif i % 3 == 1 and i % 2:
            row = Row(i % 5, "x", "cas", 2 * i, 2 * i + 1, asked=value, second=i)
            value = i
        rows.append(row)
    return rows


# A proof that is none is noticed -----------------------------------------------------------------


def test_the_test_would_notice() -> None:
    what = table("0 write 1-2 5\n0 write 3-4 6\n1 read 5-6 = 5\n1 read 7-8 = 6")
    answer = explained(what)
    proof = Proof(what, NOTHING)
    proof.check(answer)
    one, other = answer.cycle
    for cycle in (
        (one, one),
        (one,),
        (replace(one, before=one.after, after=one.before), other),
        (one, replace(other, reason="it saw what it wrote")),
        (one, replace(other, reason="the one ended before the other began")),
        (one, replace(other, reason="it replaced what it saw")),
        (one, replace(other, reason="2 cas led from here to there")),
        (one, replace(other, reason="null was the initial value, which comes before all")),
    ):
        with pytest.raises(AssertionError):
            proof.check(replace(answer, cycle=cycle))
    with pytest.raises(AssertionError):
        proof.check(replace(answer, cycle=()))


def test_correct_histories_need_none() -> None:
    for seed in range(200):
        rows = correct(random.Random(seed).randrange, most=40)
        assert not any(answer.decided for answer in zones(table_of(rows)).values())
