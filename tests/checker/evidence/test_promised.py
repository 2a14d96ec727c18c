"""Until when a hold was promised where that is not simply its lease: after a wait, of a session, of
a connection, within a lease that the server itself says is over."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Code, Culprit, Finding, Verdict
from lockcheck.checker.doubt import DoubtCode
from tests.checker.dsl import codes, judged, ns


def overlap(*lines: str, **terms: Any) -> Finding:
    (finding,) = judged(*lines, **terms).of(Code.OVERLAP)
    return finding


# --- a grant that was waited for -----------------------------------------------------------------

WAITED = """
    9 acquire 0-1
    1 acquire 2-{granted}
    9 release 50-51
    2 acquire {later}
    1 release {released}
    2 release 900-901"""


@pytest.mark.parametrize(
    ("granted", "later", "released", "who"),
    [
        (500, "509-510", "520-521!", Culprit.UNKNOWN),  # granted between 50 and 500
        (500, "509-510", "599-600!", Culprit.UNKNOWN),
        (500, "509-510", "610-611!", Culprit.HOLDER),  # it went on even if it was granted last
        (500, "599-601", "602-603!", Culprit.HOLDER),
        (60, "139-145", "190-191!", Culprit.SERVICE),  # before any lease of it can have been over
        (60, "152-155", "158-159!", Culprit.UNKNOWN),
    ],
)
def test_when_a_grant_was_made_that_was_waited_for_nobody_knows(
    granted: int, later: str, released: str, who: Culprit
) -> None:
    lines = WAITED.format(granted=granted, later=later, released=released)
    assert overlap(lines, ttl_ms=100).blame.who is who


def test_but_its_client_may_know() -> None:
    lines = WAITED.format(granted=500, later="509-510", released="520-521!")
    told = lines.replace("-500", "-500 valid_ms=5")  # nearly all of its lease was over by then
    assert overlap(told, ttl_ms=100).blame.who is Culprit.HOLDER


def test_one_that_was_not_let_in_before_it_did_not_make_it_wait() -> None:
    """By the tokens the first one was granted it after: so it waited for nobody."""
    lines = "1 acquire 0-150 token=1 \n 9 acquire 10-11 token=2 \n 9 release 20-21"
    more = "2 acquire 155-156 token=3 \n 1 release 160-161! \n 2 release 170-171"
    assert overlap(lines, more, ttl_ms=100).blame.who is Culprit.HOLDER


# --- a session that its client keeps unseen ------------------------------------------------------

SESSION = "1 acquire 0-1 \n 2 acquire 5-{granted} \n 1 release 200-201! \n 2 release 300-301"


@pytest.mark.parametrize(
    ("granted", "fault", "who"),
    [
        (50, "fault odd n1 2-40 effect=stops", Culprit.SERVICE),  # however long ago its heartbeat
        (80, "fault odd n1 2-40 effect=stops", Culprit.HOLDER),  # that was before it was stopped
        (80, "fault odd r1 2-40 effect=ends", Culprit.HOLDER),
        (80, "stall n1 3-60", Culprit.UNKNOWN),
        (80, "9 renew 0.5-0.6 of=9", Culprit.UNKNOWN),  # renewals are told, and none of its own
        (101, "9 renew 0.5-0.6 of=9", Culprit.HOLDER),
    ],
)
def test_a_session_counts_from_a_heartbeat_that_nobody_saw(
    granted: int, fault: str, who: Culprit
) -> None:
    lines = SESSION.format(granted=granted)
    found = overlap(lines, fault, ttl_ms=100, session=True, backend="zookeeper")
    assert found.blame.who is who


def test_a_session_whose_client_tells_when_it_was_kept_is_dated() -> None:
    lines = SESSION.format(granted=80).replace("0-1 ", "0-1 valid_ms=99 ")
    found = overlap(lines, "fault odd n1 2-40 effect=stops", ttl_ms=100, session=True, backend="e")
    assert (found.blame.who, found.blame.promised_until_ns) == (Culprit.SERVICE, ns(100))


# --- what ends with its connection ---------------------------------------------------------------

CONNECTED: dict[str, Any] = {
    "session": True,
    "ttl_ms": 5_000,
    "backend": "postgres-advisory",
    "ends_with": "connection",
    "lock_nodes": ("p1",),
    "clients": 2,
    "fewest": 1,
}
RESTARTED = "fault kill p1 100-400 since=101 effect=ends"


@pytest.mark.parametrize(
    "told",
    [
        "1 lost 103 \n 1 release 103-104! refused=unavailable",
        "1 lost 103",
        "",  # it was never heard of again
        "1 release 600-601! refused=not-owner",  # and did not notice
    ],
)
def test_a_lock_that_ends_with_its_connection_is_free_when_its_server_is_up_again(
    told: str,
) -> None:
    first = "1 acquire 0-1 valid_ms=4999 \n 9 renew 90-91 of=1 valid_ms=4999"
    judgement = judged(first, told, "2 acquire 450-451 valid_ms=4999", RESTARTED, **CONNECTED)
    assert not judgement.of(Code.NOT_LINEARIZABLE)
    assert all(finding.blame.who is Culprit.HOLDER for finding in judgement.findings)
    assert all(finding.blame.ended_by for finding in judgement.findings)


@pytest.mark.parametrize("asked", [3805, 3809])
def test_a_server_ends_one_process_after_the_other(asked: int) -> None:
    """Those of PostgreSQL that are left give up a dead one's locks, and let others in."""
    judgement = judged(
        "fault kill p1 3808-4329 since=3862 proven=3862 effect=ends",
        f"5 acquire {asked}-3810 valid_ms=4999 token=36 \n 5 lost 3858",
        "3 acquire 3808-3834 valid_ms=4999 token=37 \n 3 lost 3857",
        **CONNECTED,
    )
    assert all(finding.blame.who is not Culprit.SERVICE for finding in judgement.findings)


def test_but_not_before_its_server_ended() -> None:
    early = "1 acquire 0-1 valid_ms=4999 \n 2 acquire 50-51 valid_ms=4999 \n 1 release 90-91"
    found = overlap(early, "2 release 95-96", RESTARTED, **CONNECTED)
    assert (found.blame.who, found.blame.ended_by) == (Culprit.SERVICE, None)


def test_the_end_of_another_server_ends_no_connection() -> None:
    lines = (
        "1 acquire 0-1 valid_ms=4999 \n 2 acquire 450-451 \n 2 release 480-481 \n 1 release 500-501"
    )
    other = RESTARTED.replace("p1", "s1")
    assert overlap(lines, other, **CONNECTED).blame.who is Culprit.SERVICE
    assert overlap(lines, RESTARTED, **CONNECTED).blame.who is Culprit.HOLDER
    lasting = CONNECTED | {"ends_with": "", "lock_nodes": ()}
    assert overlap(lines, RESTARTED, **lasting).blame.who is Culprit.SERVICE


# --- a loss that was told, and a release that was refused -----------------------------------------

LEASE: dict[str, Any] = {"ttl_ms": 100, "clients": 2, "fewest": 1}


@pytest.mark.parametrize("terms", [LEASE, LEASE | {"backend": "redis"}])
def test_a_loss_that_was_told_ends_the_promise(terms: dict[str, Any]) -> None:
    told = "1 acquire 0-1 \n 1 lost 20 \n 2 acquire 30-31 \n 2 release 40-41"
    assert codes(judged(told, **terms)) == []
    late = told.replace("lost 20", "lost 36").replace("2 release 40-41", "2 release 50-51")
    assert set(codes(judged(late, **terms))) == {"overlap", "not-linearizable"}
    refused = told.replace("1 lost 20", "9 renew 15-19! of=1 \n 1 lost 20")
    assert codes(judged(refused, **terms)) == ["not-linearizable"]


RELEASED_IN_VAIN = """
    1 acquire 0-10 valid_ms=990 token=1
    2 acquire 5-31 valid_ms=990 token=2
    1 release 30-32! refused={why}
    2 release 40-41"""


@pytest.mark.parametrize(
    ("why", "fault", "verdict"),
    [
        ("not-owner", "", Verdict.VIOLATION),
        ("not-owner", "fault clock r1 20-900 effect=skews", Verdict.VIOLATION),
        ("not-owner", "fault cut n1 20-900 effect=cuts", Verdict.UNKNOWN),  # perhaps sent twice
        ("not-owner", "fault cut n1 32.1-900 effect=cuts", Verdict.VIOLATION),
        ("unavailable", "fault cut n1 20-900 effect=cuts", Verdict.VIOLATION),  # never sent
    ],
)
def test_a_service_that_refuses_a_release_within_the_lease_says_that_it_is_over(
    why: str, fault: str, verdict: Verdict
) -> None:
    terms: dict[str, Any] = {
        "backend": "etcd",
        "session": True,
        "ttl_ms": 1_000,
        "clients": 2,
        "fewest": 1,
    }
    judgement = judged(RELEASED_IN_VAIN.format(why=why), fault, **terms)
    assert judgement.verdict is verdict
    assert all(f.blame.who is Culprit.SERVICE for f in judgement.findings)
    doubts = [doubt.code for doubt in judgement.doubts]
    assert doubts == ([DoubtCode.MAYBE_RELEASED] if verdict is Verdict.UNKNOWN else [])


def test_a_release_that_took_long_may_have_been_sent_twice() -> None:
    """By a library that does not say so: then its refusal is no word of the server's."""
    terms: dict[str, Any] = {"backend": "lib", "ttl_ms": 1_000, "clients": 2, "fewest": 1}
    lines = "1 acquire 0-1 \n 1 release 200-{answered}! refused=not-owner \n 2 acquire 230-231"
    for answered, verdict in (("299", Verdict.VIOLATION), ("300", Verdict.UNKNOWN)):
        assert (
            judged(lines.format(answered=answered), "2 release 240-241", **terms).verdict is verdict
        )
    unsaid = lines.format(answered="202")
    told = judged(unsaid, "2 release 240-241", tells_release=False, **terms)
    assert told.verdict is Verdict.UNKNOWN
