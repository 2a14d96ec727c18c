"""Releases whose answer says nothing: kazoo's, those of etcd's `Mutex`, a bare `DEL`."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Culprit, Verdict
from tests.checker.dsl import codes, judged
from tests.checker.logs.test_midway import USED

LEASE: dict[str, Any] = {"ttl_ms": 100}
OUTLIVED = """
    1 acquire 0-1
    2 acquire 110-111
    1 release 130-131 {says}
    2 release 140-141 {says}"""
SAYS = [("", {"tells_release": False}), ("unsaid=true", {})]


@pytest.mark.parametrize(("says", "terms"), SAYS)
@pytest.mark.parametrize("partial", [False, True])
def test_the_service_is_not_accused_of_what_it_did_not_say(
    says: str, terms: dict[str, Any], *, partial: bool
) -> None:
    lines = OUTLIVED.format(says=says)
    judgement = judged(lines, USED, partial=partial, **LEASE, **terms)
    assert [(f.code, f.blame.who) for f in judgement.findings] == [("overlap", Culprit.HOLDER)]
    told = judged(OUTLIVED.format(says=""), USED, partial=partial, **LEASE)
    assert set(codes(told)) == {"overlap", "not-linearizable"}


@pytest.mark.parametrize("model", ["", "mutex", "reentrant"])
@pytest.mark.parametrize(("says", "terms"), SAYS)
def test_a_release_that_says_nothing_may_have_been_one(
    says: str, terms: dict[str, Any], model: str
) -> None:
    lines = f"1 acquire 0-1 \n 1 release 2-3 {says} \n 2 acquire 4-5 \n 2 release 6-7 {says}"
    assert judged(lines, USED, model=model, **LEASE, **terms).verdict is Verdict.OK


@pytest.mark.parametrize(("says", "terms"), SAYS)
def test_it_does_not_excuse_who_was_let_in_before_it(says: str, terms: dict[str, Any]) -> None:
    lines = f"1 acquire 0-1 \n 2 acquire 50-51 \n 1 release 60-61 {says} \n 2 release 70-71 {says}"
    judgement = judged(lines, USED, **LEASE, **terms)
    assert {f.blame.who for f in judgement.findings} == {Culprit.SERVICE}
    assert "overlap" in codes(judgement)


@pytest.mark.parametrize(("says", "terms"), SAYS)
def test_whose_turn_came_with_it_is_not_known(says: str, terms: dict[str, Any]) -> None:
    """The first one may have lost it long before, so the second may have had it since then."""
    lines = f"""
        1 acquire 0-1
        2 acquire 2-300
        1 release 290-291 {says}
        3 acquire 340-341
        2 release 345-346 {says}
        3 release 350-351 {says}"""
    judgement = judged(lines, USED, **LEASE, **terms)
    assert {f.blame.who for f in judgement.findings} == {Culprit.UNKNOWN}
    told = judged(lines.replace("unsaid=true", ""), USED, **LEASE)
    assert Culprit.SERVICE in {f.blame.who for f in told.findings}


@pytest.mark.parametrize(("says", "terms"), SAYS)
def test_a_lock_may_be_held_on_when_a_release_said_nothing(
    says: str, terms: dict[str, Any]
) -> None:
    """Without a lease nobody can say that it is free: so nothing is stuck."""
    refused = "\n".join(f"{1 + n % 2} acquire {n}00-{n}01! refused=held" for n in range(2, 40))
    lines = f"1 acquire 0-1 \n 1 release 2-3 {says}"
    assert codes(judged(lines, refused, **terms)) == []
    assert codes(judged("1 acquire 0-1 \n 1 release 2-3", refused)) == ["stuck"]
    assert codes(judged(lines, refused, **LEASE, **terms)) == ["stuck"]
