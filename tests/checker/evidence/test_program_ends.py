"""A client whose program ends may have given up what it held: then no service is accused."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Judgement
from lockcheck.checker.finding import Culprit, Verdict
from lockcheck.checker.judging import judge_scan
from tests.checker import dsl
from tests.checker.columns.test_screens import scanned

# Its program gives it up on its way out, and the next client is let in before the first one learns
# of that.
HANDED_OVER = (
    "1 acquire 0-10",
    "2 acquire 300-490",
    "1 lost 505",
    "2 release 600-610",
    "1 acquire 700-710",
    "1 release 720-730",
)
ENDED = "program n1 504 480"
LATE = "program n1 620 615"  # after the other was let in


def judged(*lines: str, **terms: Any) -> Judgement:
    promised: dict[str, Any] = {
        "session": True,
        "ttl_ms": 1000,
        "backend": "mine",
        "lock_nodes": ("r1",),
    }
    return dsl.judged(*HANDED_OVER, *lines, **(promised | terms))


def accused(judgement: Judgement) -> list[str]:
    """What is a violation of the service's."""
    return [
        finding.code
        for finding in judgement.findings
        if finding.blame.who is Culprit.SERVICE and finding.effect is Verdict.VIOLATION
    ]


@pytest.mark.parametrize("ends_with", ["", "connection"])
def test_the_end_of_its_program_ends_a_session(ends_with: str) -> None:
    assert accused(judged(ENDED, ends_with=ends_with)) == []


def test_without_it_the_service_let_another_in() -> None:
    assert accused(judged()) == ["overlap", "not-linearizable"]


def test_an_end_that_came_later_excuses_nothing() -> None:
    assert "overlap" in accused(judged(LATE))


def test_a_lease_may_have_been_given_up_on_the_way_out() -> None:
    assert accused(judged(ENDED, session=False)) == []
    assert accused(judged(session=False)) == ["overlap", "not-linearizable"]


def test_it_is_no_sign_of_life() -> None:
    """The one that waits for the program writes it: the client may be dead."""
    history = dsl.history("1 acquire 0-10", "program n1 500 480")
    [hold] = history.holds
    assert hold.end_ns == dsl.ns(10)
    assert [event.node for event in history.programs_ended] == ["n1"]


def test_it_is_the_same_in_columns() -> None:
    """Of a long history the cross-check goes by columns alone."""
    terms: dict[str, Any] = {"ttl_ms": 1000, "backend": "mine", "lock_nodes": ("r1",)}
    expected = {(): ["overlap", "not-linearizable"], (ENDED,): []}
    for more, codes in expected.items():
        events = dsl.events(*HANDED_OVER, *more, **terms)
        judgement = judge_scan(scanned(events))
        assert accused(judgement) == codes
        assert [d.linearizable for d in judgement.definitions] == [
            Verdict.VIOLATION if codes else Verdict.OK
        ]
