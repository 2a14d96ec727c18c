"""Contradictions after the first one of an object: each is real, and none is an echo."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from lockcheck.checker import judge
from lockcheck.checker.linearizability import MODELS, Model, decide
from lockcheck.checker.linearizability.own_order import in_turn
from lockcheck.checker.logs.afterwards import MOST, Reading, Span
from lockcheck.history.table import NEVER, Ints, Table
from tests.checker.dsl import history
from tests.checker.linearizability import registers
from tests.checker.linearizability.agreement import in_sequence
from tests.checker.linearizability.drawn import drawn, some_either, some_shared
from tests.checker.linearizability.locks import many_turns
from tests.checker.linearizability.registers import correct

NAMES = ("owner-mutex", "fenced", "reentrant", "reentrant-fenced", "owner-semaphore", "shared")
SEEDS = 1_500
each_lock = pytest.mark.parametrize("model", [MODELS[name] for name in NAMES], ids=NAMES)


def contradicts_after(table: Table, model: Model, until: Ints | None, span: Span) -> bool:
    reading = Reading(table, until, model)
    assert reading.can_begin_anyhow or model.crowd
    part = reading.part({int(table.key[0]): span})
    return decide(part.table, model, part.until).linearizable is False


def spans_of(random: Random, table: Table) -> Span:
    times = sorted(random.choices(np.concatenate((table.start, table.end)).tolist(), k=2))
    after, last = int(times[0]), int(times[1])
    return Span(min(after, int(table.start.max())), last if random.random() < 0.5 else NEVER)


def worth_it(table: Table, span: Span) -> bool:
    return bool(((table.start > span.after_ns) & (table.start <= span.last_ns)).any())


@pytest.mark.parametrize("leases", [False, True])
@each_lock
def test_no_part_of_a_right_locks_history_contradicts_itself(model: Model, leases: bool) -> None:
    tried = 0
    for seed in range(SEEDS):
        random = Random(seed)
        table, until = drawn(random, leases=leases)
        table = some_either(random, table)
        table = some_shared(random, table) if model.name == "shared" else table
        if in_sequence(table) and random.random() < 0.5:
            table = in_turn(table, events=True)
        promised = until if leases else None
        if not len(table) or not decide(table, model, promised).linearizable:
            continue
        span = spans_of(random, table)
        tried += worth_it(table, span)
        if worth_it(table, span):
            assert not contradicts_after(table, model, promised, span), seed
    assert tried > SEEDS // 8


def test_no_part_of_a_right_registers_history_contradicts_itself() -> None:
    model, tried = MODELS["cas-register"], 0
    for seed in range(SEEDS):
        random = Random(seed)
        rows = correct(random.randrange, most=12)
        table = registers.table_of(row for row in rows if row.key == rows[0].key)
        if in_sequence(table) and random.random() < 0.5:
            table = in_turn(table, events=True)
        if not decide(table, model).linearizable:
            continue
        span = spans_of(random, table)
        if worth_it(table, span):
            tried += 1
            assert not contradicts_after(table, model, None, span), seed
    assert tried > SEEDS // 3


def test_nor_does_a_part_of_a_long_one() -> None:
    for seed in range(30):
        table = many_turns(seed)
        for model in (MODELS["owner-mutex"], MODELS["fenced"]):
            assert not contradicts_after(table, model, None, spans_of(Random(seed), table))


def turns_on(key: str, number: int, *, wrong: frozenset[int] = frozenset()) -> list[str]:
    """Clients hold the lock in turn; in the wrong turns another one is granted it, too."""
    lines = []
    for turn in range(number):
        at, client = 100 * turn, turn % 3
        lines.append(f"{client} acquire:{key} {at}-{at + 5}")
        lines.append(f"{client} release:{key} {at + 60}-{at + 65}")
        if turn in wrong:
            lines.append(f"{client + 3} acquire:{key} {at + 20}-{at + 25}")
            lines.append(f"{client + 3} release:{key} {at + 30}-{at + 35}")
    return lines


def writes_to(key: str, number: int, *, wrong: frozenset[int] = frozenset()) -> list[str]:
    """What is written is read; in the wrong places what was there before."""
    lines = []
    for n in range(number):
        at, read = 100 * n, n - 1 if n in wrong else n
        lines += [f"7 write:{key} {at}-{at + 10} {n}", f"8 read:{key} {at + 20}-{at + 30} = {read}"]
    return lines


def no_order(*lines: str, **terms: Any) -> list[tuple[str, int]]:
    found = judge(history(*lines, **terms)).of("not-linearizable")
    return [(finding.key, finding.time_ns // 100_000_000) for finding in found]


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("made", [turns_on, writes_to])
@pytest.mark.parametrize("wrong", [(), (5,), (5, 9), (3, 40, 42, 150), tuple(range(2, 60, 3))])
def test_each_of_several_defects_is_found(
    made: Callable[..., list[str]], wrong: tuple[int, ...], partial: bool
) -> None:
    lines = made("k", 200, wrong=frozenset(wrong))
    assert no_order(*lines, partial=partial) == [("k", turn) for turn in wrong]


def test_on_each_of_several_keys() -> None:
    lines = [*writes_to("x", 20, wrong=frozenset({3, 9})), *turns_on("l", 9)]
    others = writes_to("y", 20, wrong=frozenset({4}))
    lines += [line.replace("7 ", "9 ", 1).replace("8 ", "6 ", 1) for line in others]
    assert no_order(*lines) == [("x", 3), ("y", 4), ("x", 9)]


def test_so_many_of_one_object_are_found() -> None:
    wrong = frozenset(range(2, 3 * MOST, 2))
    assert len(no_order(*writes_to("x", 3 * MOST + 5, wrong=wrong))) == MOST + 1


ECHOES = {
    "a write that is lost, read by many": (
        "1 write 0-1 1\n1 write 2-3 2\n2 read 4-5 = 1\n2 read 6-7 = 1\n2 read 8-9 = 1"
    ),
    "a write that takes effect late": (
        "1 write 0-1 1\n1 write 2-3 2\n2 read 4-5 = 1\n2 read 6-7 = 1\n2 read 8-9 = 2"
    ),
    "several writes that are lost": (
        "1 write 0-1 1\n1 write 2-3 2\n1 write 4-5 3\n2 read 6-7 = 1\n2 read 8-9 = 1\n"
        "1 write 10-11 4\n2 read 12-13 = 4"
    ),
    "two holders, each of which goes on": (
        "1 acquire 0-1\n2 acquire 2-3\n1 renew 4-5\n2 renew 6-7\n1 renew 8-9\n2 renew 10-11\n"
        "1 release 12-13\n2 release 14-15\n1 acquire 16-17\n1 release 18-19"
    ),
    "a counter of tokens that goes back": "\n".join(
        f"{n % 3} acquire {10 * n}-{10 * n + 1} token={n if n < 9 else n - 8}\n"
        f"{n % 3} release {10 * n + 5}-{10 * n + 6}"
        for n in range(20)
    ),
}


@pytest.mark.parametrize("lines", ECHOES.values(), ids=ECHOES)
def test_an_echo_is_no_second_one(lines: str) -> None:
    assert len(no_order(lines)) == 1
