"""A lock that was gone while its holder ran, believed, and was not told."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Case, Code, Culprit, Finding, Verdict
from lockcheck.checker.judges.silent_loss import find
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import codes, history, judged, ns

LOST = """
    1 acquire 0-1
    2 acquire 110-111
    1 read 120-121 = x
    1 release {end}-900
    2 release 160-161"""


def found(*lines: str, ttl_ms: int | None = 100, **terms: Any) -> list[Finding]:
    terms = {"backend": "redis"} | terms
    return list(find(Case(history(*lines, ttl_ms=ttl_ms, **terms))))


@pytest.mark.parametrize(("end", "told"), [("150", 0), ("211", 0), ("211.000001", 1), ("400", 1)])
def test_for_longer_than_its_lease(end: str, told: int) -> None:
    assert len(found(LOST.format(end=end))) == told


ACCEPTED = {
    "told in time": LOST.replace("1 release {end}-900", "1 lost 200"),
    "never heard of again": LOST.replace("1 release {end}-900", ""),
    "paused all the while": LOST + "\n fault pause n1 100-350",
    "it may have been paused": LOST + "\n fault pause n1 100-!",
    "the machine stalled": LOST + "\n stall n1 150-350",
    "both shared it": LOST.replace("acquire 0-1", "acquire 0-1 shared=true").replace(
        "110-111", "110-111 shared=true"
    ),
    "both asked at once": LOST.replace("1 acquire 0-1", "1 acquire 0-110.5"),
    "nobody knows whether the other was granted it": LOST.replace("110-111", "110-111?").replace(
        "2 release", "# "
    ),
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(lines: str) -> None:
    assert found(lines.format(end="400")) == []


def test_only_leases_say_by_when_it_should_be_told() -> None:
    assert found(LOST.format(end="400"), ttl_ms=None) == []
    own = LOST.format(end="400").replace("acquire 0-1", "acquire 0-1 ttl_ms=100")
    assert len(found(own, ttl_ms=None)) == 1
    assert found(own.replace("ttl_ms=100", "ttl_ms=300"), ttl_ms=None) == []
    renewed = own + "\n 1 renew 50-51 ttl_ms=300"
    assert found(renewed, ttl_ms=None) == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("fault pause n1 150-170", 1),  # the rest is still long enough
        ("fault pause n2 100-350", 1),  # somebody else's
        ("stall n1 150-170", 1),
        ("stall n1 150-290 \n stall n1 160-300", 1),
        ("stall n1 150-300 \n stall n1 300-350", 0),
    ],
)
def test_only_the_time_that_it_ran_counts(more: str, told: int) -> None:
    assert len(found(LOST.format(end="400"), more)) == told


def test_a_reader_that_lost_it_to_a_writer() -> None:
    lines = LOST.format(end="400").replace("acquire 0-1", "acquire 0-1 shared=true")
    assert len(found(lines)) == 1
    assert len(found(lines, "5 acquire 20-21 shared=true \n 5 release 700-701")) == 2


def test_of_somebody_elses_history_only_signs_of_life_count() -> None:
    """The read at 120 is the first that shows that it ran after the loss at 111."""
    assert found(LOST.format(end="220"), backend="") == []
    assert len(found(LOST.format(end="220.000001"), backend="")) == 1
    silent = LOST.replace("1 read 120-121 = x", "").format(end="400")
    assert len(found(silent)) == 1
    assert found(silent, backend="") == []
    assert found(silent.replace("release 400", "read:other 300-301 \n 1 release 400")) != []


def test_a_semaphore_is_not_judged() -> None:
    assert found(LOST.format(end="400"), permits=2) == []


def test_who_is_to_blame_and_what_was_missing() -> None:
    judgement = judged(LOST.format(end="400"), ttl_ms=100)
    assert {"overlap", "silent-loss"} <= set(codes(judgement))
    (finding,) = judgement.of(Code.SILENT_LOSS)
    assert (finding.blame.who, finding.length_ns) == (Culprit.HOLDER, ns(289))
    assert finding.time_ns == ns(211)
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert finding.operations == (finding.holds[0].release,)


@pytest.mark.parametrize("guard", ["fence", "cas"])
def test_behind_a_guard_it_is_shown(guard: str) -> None:
    (finding,) = found(LOST.format(end="400"), guard=guard)
    assert finding.effect is Verdict.OK


def test_told_too_late() -> None:
    (finding,) = found(LOST.replace("1 release {end}-900", "1 lost 400"))
    assert "in the end" in note(finding)


def test_whoever_entered_again_in_between_was_told_that_it_holds_it() -> None:
    lines = LOST.format(end="400")
    again = lines.replace("1 read 120-121 = x", "1 acquire 120-121 \n 1 release 122-123")
    assert found(again, model="reentrant") == []
    assert len(found(lines, model="reentrant")) == 1
