"""A log that begins in the middle: the operation that is named is the one that does not fit."""

from __future__ import annotations

import time

import pytest

from lockcheck.checker import Finding, judge
from lockcheck.checker.linearizability.models import MODELS
from lockcheck.checker.logs.beforehand import _beginnings
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import history, table


def found(*lines: str) -> Finding:
    [finding] = judge(history(*lines, partial=True)).of("not-linearizable")
    return finding


STALE = ("1 read 0-1 = old", "1 write 2-3 a", "1 write 4-5 b", "2 read 6-7 = a", "2 read 8-9 = b")
TWICE = ("3 write 3-4 c", "4 write 3-4 c", "3 read 5-5 = c")


@pytest.mark.parametrize("lines", [STALE, (*STALE, *TWICE)], ids=["", "twice"])
def test_a_stale_read_is_named_and_not_the_first_one(lines: tuple[str, ...]) -> None:
    finding = found(*lines)
    last = finding.operations[-1]
    assert (last.f, last.answer and last.answer.value) == ("read", "a")
    assert "old" not in note(finding)


def test_the_value_before_the_log_may_be_the_stale_one() -> None:
    finding = found("1 read 0-1 = old", "1 write 2-3 a", "2 read 4-5 = old")
    assert (
        note(finding)
        == 'n1 wrote "a", and only then n2 read "old", but "old" was the initial value.'
    )


def test_of_two_beginnings_the_one_that_explains_more() -> None:
    finding = found("1 read 0-1 = odd", "2 read 2-3 = old", "1 write 4-5 a", "2 read 6-7 = a")
    assert note(finding) == 'n2 read "old", but nobody wrote "old".'


def test_without_a_beginning_that_helps_it_is_as_before() -> None:
    finding = found("1 write 0-1 a", "2 read 2-3 = odd", "2 read 4-5 = a")
    assert note(finding) == 'n2 read "odd", but nobody wrote "odd".'


def entered_before(clients: int) -> float:
    """Seconds of a processor to find who was inside a lock before, of so many that released it."""
    part = table(*(f"{client} release {client}-{client + 1}" for client in range(clients)))
    began = time.process_time()
    assert len(next(_beginnings(part, MODELS["reentrant"]))) == clients
    return time.process_time() - began


def test_many_clients_that_were_inside_before() -> None:
    """Eight times as many take eight times as long, or a little more; not 64 times."""
    assert entered_before(64_000) < 16 * entered_before(8_000)
