"""Whose lock a blind release may have removed, and whose it certainly did."""

from __future__ import annotations

import pytest

from lockcheck.checker import Case, Code, Culprit
from lockcheck.checker.evidence.releases import BlindRelease
from lockcheck.history import Hold
from tests.checker.dsl import history, judged

BLIND = '= {"removed": 1, "blind": true}'


def of(
    victim: str, release: str = "120-130", *, by: str = "", more: str = ""
) -> list[tuple[BlindRelease, Hold]]:
    told = history(
        f"1 acquire 0-10 {by} \n 2 acquire {victim} \n 1 release {release} {BLIND}", more
    )
    (hold,) = (hold for hold in told.holds if hold.process == 2)
    return [(found, hold) for found in Case(told).releases.get("k", [])]


@pytest.mark.parametrize(
    ("victim", "by", "maybe"),
    [
        ("110-111", "", True),
        ("10-111", "", False),  # asked at the moment of the other's grant: it may have been first
        ("10.000001-111", "", True),
        ("110-111 shared=true", "", True),
        ("110-111", "shared=true", True),
        ("110-111 shared=true", "shared=true", False),
    ],
)
def test_whose_it_may_have_been(victim: str, by: str, maybe: bool) -> None:
    found = of(victim, by=by, more="3 acquire 115-116")  # so that it is looked at
    assert found
    assert any(release.may_be_foreign_to(hold) for release, hold in found) is maybe


@pytest.mark.parametrize(
    ("victim", "certain"),
    [("110-119", True), ("110-120", False), ("110-125", False)],
)
def test_whose_it_certainly_was(victim: str, certain: bool) -> None:
    ((release, hold),) = of(victim)
    assert release.was_foreign_to(hold) is certain


@pytest.mark.parametrize(
    ("victim", "looked_at"),
    [("110-111", 1), ("129-135", 1), ("130-135", 0), ("140-141", 0), ("5-6", 0)],
)
def test_only_where_somebody_asked_before_it_was_over(victim: str, looked_at: int) -> None:
    assert len(of(victim)) == looked_at


def test_a_court_for_one_pair() -> None:
    told = history("1 acquire 0-1 \n 2 acquire 2-3 \n 1 release 5-6")
    first, second = told.holds
    assert Case(told).attribution.blame(first, second).by_ns > 0


# --- permits -----------------------------------------------------------------------------------

SPARE = """
    1 acquire 0-1
    2 acquire 2-3
    2 release 50-51 = {{"removed": 1, "blind": true}}
    3 acquire 120-121
    4 acquire 122-123
    1 release {late} = {{"removed": 1, "blind": true}}
    5 acquire 130-131
    3 release 140-141 = {{"removed": 1, "blind": true}}
    4 release 142-143 = {{"removed": 1, "blind": true}}
    5 release 144-145 = {{"removed": 1, "blind": true}}"""


@pytest.mark.parametrize(
    ("late", "who"),
    [("125-126", Culprit.CLIENT), ("135-136", Culprit.SERVICE), ("90-91", Culprit.SERVICE)],
)
def test_a_permit_that_is_given_back_after_its_lease_is_one_too_many(
    late: str, who: Culprit
) -> None:
    """Another client had it by then. Given back in time, or after the third was let in, it does
    not explain that one."""
    found = judged(SPARE.format(late=late), permits=2, ttl_ms=100).of(Code.OVERLAP)
    [blame] = [f.blame for f in found if 5 in {hold.process for hold in f.holds}]
    assert blame.who is who
    if who is Culprit.CLIENT:
        assert blame.released_by
        assert blame.released_by.process == 1
