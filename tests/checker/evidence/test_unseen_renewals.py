"""A lease that its keeper promises to renew, in a history without renewals: the lock is to blame
for losing it, unless something kept the keeper from its work."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker.finding import Culprit
from tests.checker import dsl

# The second is let in half a lease after the first lease would have run out.
DROPPED = (
    "1 acquire 0-10",
    "2 acquire 1490-1500",
    "1 release 2000-2010",
    "2 release 2020-2030",
)
TERMS: dict[str, Any] = {"ttl_ms": 1000, "backend": "mine", "lock_nodes": ("r1",)}


def blamed(*lines: str, **terms: Any) -> set[Culprit]:
    judgement = dsl.judged(*DROPPED, *lines, **(TERMS | terms))
    return {finding.blame.who for finding in judgement.findings if finding.code == "overlap"}


def test_it_was_to_renew_it_and_did_not() -> None:
    assert blamed(renews=True) == {Culprit.SERVICE}


def test_without_the_promise_its_holder_went_on_for_too_long() -> None:
    assert blamed() == {Culprit.HOLDER}


@pytest.mark.parametrize(
    "disturbance",
    [
        "fault pause n1 600-1400",
        "fault partition n1 600-1400 effect=cuts",
        "fault kill r1 600-1400",
        "fault pause n1 100-200",  # its keeper may have ended with the first error
    ],
)
def test_a_keeper_that_was_disturbed_is_not_the_locks_fault(disturbance: str) -> None:
    assert blamed(disturbance, renews=True) == {Culprit.HOLDER}


def test_a_stall_of_the_machine_is_nobodys() -> None:
    assert Culprit.SERVICE not in blamed("stall n1 300-900", renews=True)


def test_a_fault_of_another_client_or_of_a_clock_excuses_nothing() -> None:
    assert blamed("fault pause n3 600-1400", "3 acquire 10-20!", renews=True) == {Culprit.SERVICE}
    assert blamed("fault clock r1 600-1400 effect=skews", renews=True) == {Culprit.SERVICE}


def test_where_it_reports_renewals_they_count() -> None:
    """The last one was sent 300 ms after the grant, so the lease ended before the other's."""
    assert blamed("1 renew 300-310", renews=True) == {Culprit.HOLDER}
    assert blamed("1 renew 900-910", renews=True) == {Culprit.SERVICE}


def test_a_session_that_waited_for_longer_than_its_timeout_is_not_late_by_that() -> None:
    """Its lease would have been over before its grant, counted from the acquire."""
    judgement = dsl.judged(
        "2 acquire 0-10",
        "1 acquire 20-2000",
        "2 release 1990-1995",
        "fault partition n1 1500-4000 effect=cuts",  # so since when it was kept alive is not known
        "3 acquire 2200-3300",
        "1 lost 3400",
        "3 release 3500-3510",
        **(TERMS | {"session": True}),
    )
    [overlap] = [finding for finding in judgement.findings if finding.code == "overlap"]
    assert overlap.blame.who is Culprit.HOLDER
    assert overlap.blame.by_ns == dsl.ns(100)
