"""Registers with unique values: what is accepted, what is not, what is left to others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from lockcheck.checker.linearizability.answer import Answer
from lockcheck.checker.linearizability.models import CAS_REGISTER
from lockcheck.checker.linearizability.pieces import MistakeKind
from lockcheck.checker.linearizability.zones import EXPLAINED, zones
from lockcheck.history.table import NOTHING, Symbols, Table
from tests.checker.dsl import table
from tests.checker.linearizability.brute import brute
from tests.checker.linearizability.registers import INFO, Row, correct, maybe_spoiled, table_of
from tests.often import often

Verdict = bool | None


def verdict(what: Table) -> Verdict:
    """The verdict on a history with one key."""
    answer = zones(what).get(NOTHING)
    return True if answer is None else answer.linearizable


def by_key(whole: Table) -> dict[object, tuple[Table, Answer | None]]:
    answers = zones(whole)
    numbers = np.unique(whole.key).tolist()
    assert set(answers) <= set(numbers)
    return {
        whole.symbols.value(number): (whole.take(whole.key == number), answers.get(number))
        for number in numbers
    }


ACCEPTED = {
    "nothing": "",
    "only a read of the initial value": "0 read 1-2 = null",
    "a write and its read": "0 write 1-2 5\n1 read 3-4 = 5",
    "a read while its value is written": "0 write 1-9 5\n1 read 2-3 = 5",
    "a read that ends when its write begins": "1 read 1-3 = 5\n0 write 3-4 5",
    "the old value until the new one is there for sure": "0 write 1-5 5\n1 read 2-5 = null",
    "equal times are concurrent": "0 write 1-2 5\n1 write 2-3 6\n2 read 3-4 = 5",
    "old and new while both are written": (
        "0 write 1-9 5\n1 write 1-9 6\n2 read 2-3 = 6\n2 read 4-5 = 5"
    ),
    "zones that touch": "0 write 1-2 5\n1 read 4-4 = 5\n2 write 3-4 6\n1 read 5-6 = 6",
    "a piece without a zone fits between two": (
        "0 write 1-2 5\n0 read 4-5 = 5\n1 write 5-6 6\n2 write 5-7 7\n0 read 8-9 = 7"
    ),
    "a cas": "0 write 1-2 5\n1 cas 3-4 [5,6]\n0 read 5-6 = 6",
    "a cas of the initial value": "0 cas 1-2 [null,6]\n0 read 3-4 = 6",
    "cas at the same time, one after another": (
        "0 cas 1-9 [null,1]\n1 cas 1-9 [1,2]\n2 cas 1-9 [2,3]\n3 read 9-10 = 3"
    ),
    "a read of each value on the way": (
        "0 write 1-2 1\n1 cas 3-8 [1,2]\n2 read 3-4 = 1\n2 read 5-6 = 2\n2 cas 8-9 [2,3]"
    ),
    "a cas to the same value is a read": "0 write 1-2 5\n1 cas 3-4 [5,5]\n2 cas 3-4 [5,5]",
    "what failed did not happen": "0 write 1-2! 5\n0 cas 3-4! [7,8]\n0 read 5-6 = null",
    "an unconfirmed read proves nothing": ("0 write 1-2 5\n1 read 3-4? = null\n1 read 5- = 6"),
    "an unconfirmed write that was never seen": "0 write 1-2? 5\n0 read 3-4 = null",
    "an unconfirmed write takes effect late": "0 write 1-2? 5\n0 read 3-4 = null\n0 read 9-10 = 5",
    "an unconfirmed cas from an unwritten value did not happen": (
        "0 cas 1-2? [7,8]\n0 read 3-4 = null"
    ),
    "an unconfirmed cas to the same value is nothing": "0 cas 1-2? [7,7]\n0 read 3-4 = null",
    "unconfirmed cas in a row, of which the last is seen": (
        "0 cas 1- [null,1]\n0 cas 1- [1,2]\n0 cas 1- [2,3]\n0 cas 1- [3,4]\n0 cas 1- [4,5]\n"
        "1 read 2-3 = 5"
    ),
    "two unconfirmed cas from the same value, one seen": (
        "0 cas 1- [null,1]\n1 cas 1- [null,2]\n2 read 3-4 = 2"
    ),
    "an unseen value may be written often": "0 write 1-2 5\n0 write 3-4 5\n0 write 5-6 7",
    "unconfirmed twins that were never seen": "0 write 1- 5\n0 write 2- 5\n1 read 3-4 = null",
    "the initial value again, never seen": "0 write 1-2 null\n0 write 3-4 5\n0 read 5-6 = 5",
    "a value is no other one of another type": "0 write 1-2 1\n0 write 3-4 true\n0 read 5-6 = true",
}

REJECTED = {
    "a value that was never written": "0 read 1-2 = 5",
    "a value whose write failed": "0 write 1-2! 5\n0 read 3-4 = 5",
    "a cas from an unwritten value": "0 cas 1-2 [5,6]",
    "a cas to the same unwritten value": "0 cas 1-2 [5,5]",
    "a value that came from nothing": "0 cas 1- [7,8]\n0 read 3-4 = 8",
    "values twice, and an unwritten one": (
        "0 write 1-2 5\n0 write 1-2 5\n0 read 3-4 = 5\n0 read 5-6 = 6"
    ),
    "read before it was written": "1 read 1-2 = 5\n0 write 3-4 5",
    "read before an unconfirmed write": "1 read 1-2 = 5\n0 write 3- 5",
    "a stale read": "0 write 1-2 5\n0 write 3-4 6\n1 read 5-6 = 5",
    "a stale read of the initial value": "0 write 1-2 5\n1 read 3-4 = null",
    "the initial value after another was read": "0 write 1- 5\n1 read 2-3 = 5\n1 read 4-5 = null",
    "back and forth": (
        "0 write 1-20 5\n1 write 1-20 6\n2 read 2-3 = 5\n"
        "2 read 4-5 = 6\n2 read 6-7 = 5"
    ),
    "zones that overlap": "0 write 1-2 5\n1 write 1-2 6\n2 read 3-4 = 5\n2 read 3-4 = 6",
    "a value that squeezes into a zone": (
        "0 write 1-2 5\n1 write 3-4 6\n"
        "1 read 5-6 = 5\n1 read 7-8 = 6"
    ),
    "a value that begins to squeeze in at once": (
        "0 write 1-6 5\n1 write 2-4 6\n2 read 5-7 = 5\n2 read 8-9 = 6"
    ),
    "two cas from the same value": "0 write 1-2 5\n1 cas 3-9 [5,6]\n2 cas 3-9 [5,7]",
    "two cas from the initial value": "1 cas 3-9 [null,6]\n2 cas 3-9 [null,7]",
    "two cas, one of them seen only": "1 cas 3-9 [null,6]\n2 cas 3- [null,7]\n0 read 10-11 = 7",
    "cas in a circle": "0 cas 1-9 [1,2]\n1 cas 1-9 [2,1]",
    "unconfirmed cas in a circle": "0 cas 1- [1,2]\n1 cas 1- [2,3]\n2 cas 1- [3,1]\n3 read 2-4 = 2",
    "a way into a circle of cas": (
        "0 cas 1-9 [1,2]\n1 cas 1-9 [2,1]\n"
        "2 cas 1-9 [2,3]\n3 cas 1-9 [3,4]"
    ),
    "cas the wrong way round": "0 write 1-2 1\n1 cas 3-4 [2,3]\n1 cas 5-6 [1,2]",
    "read after it was replaced": "0 write 1-2 1\n1 cas 3-4 [1,2]\n2 read 5-6 = 1",
    "read after what it became was replaced": (
        "0 write 1-2 1\n1 cas 1-6 [1,2]\n1 cas 1-6 [2,3]\n2 read 3-4 = 3\n2 read 5-6 = 1"
    ),
    "read after what it became was seen": (
        "0 write 1-2 1\n1 cas 1-9 [1,2]\n2 read 3-4 = 2\n2 read 5-6 = 1"
    ),
    "a write in the midst of a piece": (
        "0 write 1-2 1\n0 read 3-4 = 1\n1 write 5-6 9\n0 cas 7-8 [1,2]"
    ),
    "a cas of the initial value after a write": "0 write 1-2 5\n1 cas 3-4 [null,6]",
}  # fmt: skip

UNTOLD = {
    "a value written twice": "0 write 1-2 5\n0 write 3-4 5\n0 read 5-6 = 5",
    "the initial value written again": "0 write 1-2 5\n0 write 3-4 null\n0 read 5-6 = null",
    "once confirmed, once not": "0 write 1-2 5\n0 write 3- 5\n0 read 5-6 = 5",
    "twice unconfirmed": "0 write 1- 5\n0 write 3- 5\n0 read 5-6 = 5",
    "by a cas and a write": "0 write 1-2 5\n0 write 3-4 6\n0 cas 5-6 [6,5]\n0 read 7-8 = 5",
    "seen by an unconfirmed cas that was seen": (
        "0 write 1- 5\n0 write 3- 5\n0 cas 5- [5,6]\n0 read 7-8 = 6"
    ),
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(lines: str) -> None:
    assert verdict(table(lines)) is True
    assert brute(table(lines), CAS_REGISTER)


@pytest.mark.parametrize("lines", REJECTED.values(), ids=REJECTED)
def test_rejected(lines: str) -> None:
    assert verdict(table(lines)) is False
    assert not brute(table(lines), CAS_REGISTER)


@pytest.mark.parametrize("lines", UNTOLD.values(), ids=UNTOLD)
def test_left_to_others(lines: str) -> None:
    (answer,) = zones(table(lines)).values()
    assert answer.linearizable is None
    assert not answer.decided
    assert answer.engine == "zones"
    assert answer.reason == MistakeKind.TWICE.value


def test_another_initial_value() -> None:
    what = table("0 write 1-2 6\n1 read 1-2 = 5")
    five, six = what.symbols.number(5), what.symbols.number(6)
    assert zones(what, {NOTHING: five}) == {}
    assert zones(what, {NOTHING: NOTHING})[NOTHING].linearizable is False
    assert zones(what, {NOTHING: six})[NOTHING].linearizable is False  # 5 is not written
    again = table("0 write 1-2 5\n1 read 1-2 = 5")
    assert zones(again, {NOTHING: again.symbols.number(5)})[NOTHING].linearizable is None


@often
@given(st.data(), st.sampled_from([0, 5000]))
def test_agrees_with_all_orders(data: st.DataObject, more_symbols: int) -> None:
    rows = maybe_spoiled(lambda below: data.draw(st.integers(0, below - 1)))
    symbols = Symbols()
    for number in range(more_symbols):  # so that a table of all keys and values would be large
        symbols.number(f"another {number}")
    for part, answer in by_key(table_of(rows, symbols)).values():
        decided = True if answer is None else answer.linearizable
        event(f"{decided}")
        if decided is not None:
            assert decided == brute(part, CAS_REGISTER)


def test_what_is_generated_is_worth_it() -> None:
    """Enough of the drawn histories are good, bad, and bad in each way."""
    choose = random.Random(4).randrange
    verdicts: Counter[Verdict] = Counter()
    kinds: Counter[str] = Counter()
    for _ in range(1500):
        for part, answer in by_key(table_of(maybe_spoiled(choose))).values():
            decided = True if answer is None else answer.linearizable
            assert decided in (None, brute(part, CAS_REGISTER))
            verdicts[decided] += 1
            kinds[_shape(answer)] += 1
    total = verdicts.total()
    assert verdicts[True] > 0.3 * total
    assert verdicts[False] > 0.15 * total
    assert verdicts[None] < 0.15 * total
    assert min(kinds[shape] for shape in SHAPES) > 0, kinds


SHAPES = ("nobody wrote", "initial value", "only once", "led", "needs the one", "and only then")


def _shape(answer: Answer | None) -> str:
    reason = "" if answer is None else answer.reason
    return next((shape for shape in SHAPES if shape in reason), reason)


# Mutations of good histories ----------------------------------------------------------------------

Mutation = Callable[[list[Row]], list[Row] | None]  # None: nothing in it that it could spoil


def good(seed: int) -> list[Row]:
    """A good history of one key, with unique values."""
    for attempt in range(100):
        rows = correct(random.Random(f"{seed}.{attempt}").randrange, most=60)
        if len({row.key for row in rows}) == 1 and len(rows) > 30 and verdict_of(rows):
            return sorted(rows, key=lambda row: row.start)
    raise AssertionError("no such history was made")


def verdict_of(rows: list[Row]) -> Verdict:
    ((_, answer),) = by_key(table_of(rows)).values()
    return True if answer is None else answer.linearizable


def reads(rows: list[Row]) -> list[tuple[int, int]]:
    """Confirmed reads, each with the row that wrote what it read."""
    writer = {row.wrote: i for i, row in enumerate(rows)}
    return [
        (i, writer[row.result])
        for i, row in enumerate(rows)
        if row.f == "read" and row.outcome is not INFO and row.result is not None
    ]


def swap_two_answers(rows: list[Row]) -> list[Row] | None:
    """One of them then reads what will be written only later."""
    for one, _ in reads(rows):
        for other, writer in reads(rows):
            if rows[one].end < rows[writer].start:
                first, second = rows[one], rows[other]
                return changed(
                    rows,
                    {
                        one: replace(first, result=second.result),
                        other: replace(second, result=first.result),
                    },
                )
    return None


def move_a_return(rows: list[Row]) -> list[Row] | None:
    """A read ends before its value is written."""
    for read, writer in reads(rows):
        if rows[read].start < rows[writer].start:
            return changed(rows, {read: replace(rows[read], end=rows[writer].start - 1)})
    return None


def delay_a_write(rows: list[Row]) -> list[Row] | None:
    for read, writer in reads(rows):
        late = rows[read].end + 1
        return changed(rows, {writer: replace(rows[writer], start=late, end=late + 1)})
    return None


def delay_a_read(rows: list[Row]) -> list[Row] | None:
    """Until after another value was read, that was written after its own."""
    end = max(row.end for row in rows) + 1
    for read, writer in reads(rows):
        for other, later in reads(rows):
            if (
                rows[writer].end < rows[later].start
                and rows[writer].outcome is not INFO
                and other != read
            ):
                return changed(rows, {read: replace(rows[read], start=end, end=end + 1)})
    return None


def changed(rows: list[Row], to: dict[int, Row]) -> list[Row]:
    return [to.get(i, row) for i, row in enumerate(rows)]


@pytest.mark.parametrize("mutation", [swap_two_answers, move_a_return, delay_a_write, delay_a_read])
def test_mutations_are_caught(mutation: Mutation) -> None:
    spoiled = [(seed, rows) for seed in range(60) if (rows := mutation(good(seed))) is not None]
    assert len(spoiled) >= 20
    for seed, rows in spoiled:
        assert verdict_of(rows) is False, seed


# Many keys, many steps ----------------------------------------------------------------------------


def test_one_key_does_not_matter_to_another() -> None:
    fine, stale, twins = (2, 2), (2, 1), (1, 1)  # what is written last, and what is read then
    lines = (
        f"0 write:k{i} 1-2 1 \n 0 write:k{i} 3-4 {last} \n 1 read:k{i} 5-6 = {read}"
        for i, (last, read) in enumerate([fine, stale, twins] * 10)
    )
    answers = {key: answer for key, (_, answer) in by_key(table(*lines)).items()}
    for i in range(30):
        answer = answers[f"k{i}"]
        assert (True if answer is None else answer.linearizable) is (True, False, None)[i % 3]


def test_two_keys_at_the_same_time() -> None:
    """Zones of the one are between those of the other."""
    stale = "0 write:x 1-2 5 \n 1 write:x 10-11 6 \n 2 read:x 20-21 = 5"
    other = [f"3 write:y {i}-{i + 1} {i} \n 3 read:y {i + 2}-{i + 3} = {i}" for i in (3, 12)]
    answers = {key: answer for key, (_, answer) in by_key(table(stale, *other)).items()}
    assert answers["x"] is not None
    assert answers["x"].linearizable is False
    assert answers["y"] is None


def test_some_operations_without_a_key() -> None:
    """Are on an object of their own."""
    for keys in ((), ("x",), ("y",), ("x", "y")):
        lines = [f"1 read:{key} 5-6 = 9" for key in keys]
        what = table("0 write:x 1-2 1 \n 0 read:y 3-4", *lines)
        x, y = (what.symbols.number(key) for key in ("x", "y"))
        answers = zones(replace(what, key=np.where(what.key == y, NOTHING, what.key)))
        assert set(answers) == {{"x": x, "y": NOTHING}[key] for key in keys}


def test_only_so_many_keys_are_explained_at_length() -> None:
    twins = [
        f"0 write:twins{i} 1-2 1 \n 0 write:twins{i} 1-2 1 \n 0 read:twins{i} 1-2 = 1"
        for i in range(EXPLAINED)
    ]
    stale = [f"0 read:k{i} 1-2 = 1" for i in range(EXPLAINED + 50)]
    judged = by_key(table(*twins, *stale))
    answers = [answer for _, answer in judged.values() if answer is not None and answer.decided]
    assert len(answers) == EXPLAINED + 50
    assert not any(answer.linearizable for answer in answers)
    briefly = [answer for answer in answers if answer.reason == MistakeKind.UNWRITTEN.value]
    assert len(answers) - len(briefly) == EXPLAINED
    assert all(answer.rows for answer in answers)
    assert all(answer.reason for answer in answers)


@pytest.mark.parametrize("steps", [1, 2, 3, 64, 1000])
def test_as_many_unconfirmed_steps_as_you_like(steps: int) -> None:
    """Of which only the last one was seen."""
    chain = [f"0 cas 1-1? [{i},{i + 1}]" for i in range(steps)]
    read = f"1 read 5-6 = {steps}"
    assert verdict(table(*chain, "1 write 2-3 0", read)) is True
    assert verdict(table(*chain, read)) is False
    assert verdict(table(*chain, "1 write 8-9 0", read)) is False
    assert verdict(table(*chain, f"0 cas 1-1? [{steps},0]", read)) is False


@pytest.mark.parametrize("steps", [2, 3, 31, 32, 33, 1000])
def test_cas_in_a_row(steps: int) -> None:
    def in_order(*order: int) -> Table:
        values = ["null", *range(1, steps + 1)]
        return table(
            *(f"0 cas {t}0-{t}5 [{values[i]},{values[i + 1]}]" for t, i in enumerate(order))
        )

    order = range(steps)
    assert verdict(in_order(*order)) is True
    for step in {0, 1, steps // 2, steps - 2} - {steps - 1}:
        swapped = [*order[:step], step + 1, step, *order[step + 2 :]]
        assert verdict(in_order(*swapped)) is False
