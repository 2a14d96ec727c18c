"""Who is to blame for two holders at once: the service only where nothing else explains it."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Blame, Code, Culprit, Finding, Verdict
from lockcheck.checker.doubt import DoubtCode
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import judged, ns

OUTLIVED = """
    1 acquire 0-1
    2 acquire 110-111
    1 release 130-131
    2 release 140-141"""
LET_IN_EARLY = """
    1 acquire 0-1
    2 acquire 50-51
    1 release 60-61
    2 release 70-71"""


def overlap(*lines: str, ttl_ms: int | None = 100, **terms: Any) -> Finding:
    (finding,) = (f for f in judged(*lines, ttl_ms=ttl_ms, **terms).findings if f.code == "overlap")
    return finding


def blame(*lines: str, ttl_ms: int | None = 100) -> Blame:
    return overlap(*lines, ttl_ms=ttl_ms).blame


def test_the_holder_outlived_its_lease() -> None:
    found = blame(OUTLIVED)
    assert (found.who, found.by_ns, found.promised_until_ns) == (Culprit.HOLDER, ns(30), ns(100))


def test_the_service_broke_its_promise() -> None:
    found = blame(LET_IN_EARLY)
    assert (found.who, found.by_ns, found.promised_until_ns) == (Culprit.SERVICE, ns(49), ns(100))


@pytest.mark.parametrize(
    ("granted", "who"),
    [
        ("99.699999", Culprit.SERVICE),
        ("99.7", Culprit.HOLDER),  # 2,000 ppm of drift, and 0.1 ms that the request took
        ("100.000001", Culprit.HOLDER),
    ],
)
def test_the_promise_is_sure_but_for_the_drift_of_two_clocks(granted: str, who: Culprit) -> None:
    lines = f"1 acquire 0-0.1 \n 2 acquire 98-{granted} \n 1 release 120-121 \n 2 release 130-131"
    assert blame(lines).who is who


@pytest.mark.parametrize(
    ("granted", "who"), [("99.94", Culprit.SERVICE), ("99.96", Culprit.HOLDER)]
)
def test_a_run_is_on_one_host_and_its_clocks_drift_less(granted: str, who: Culprit) -> None:
    lines = f"1 acquire 0-1 \n 2 acquire 98-{granted} \n 1 release 120-121 \n 2 release 130-131"
    assert overlap(lines, backend="redis").blame.who is who


def test_a_holder_that_kept_to_its_lease_is_not_accused_of_what_clocks_explain() -> None:
    judgement = judged(
        "1 acquire 0-1",
        "2 acquire 98-99.9",
        "1 release 99.95-99.96!",
        "2 release 130-131",
        ttl_ms=100,
    )
    [found] = judgement.of(Code.OVERLAP)
    assert (found.blame.who, found.blame.by_ns) == (Culprit.CLOCKS, ns(0.1))
    assert judgement.verdict is Verdict.UNKNOWN
    assert [doubt.code for doubt in judgement.doubts] == [DoubtCode.CLOCKS_DRIFT]


def test_a_lock_without_a_lease_promises_until_its_release() -> None:
    found = blame(OUTLIVED, ttl_ms=None)
    assert (found.who, found.by_ns, found.promised_until_ns) == (Culprit.SERVICE, ns(19), None)


def test_the_lease_that_was_asked_for_counts_more_than_the_terms() -> None:
    lines = OUTLIVED.replace("1 acquire 0-1", "1 acquire 0-1 ttl_ms=120")
    assert blame(lines).who is Culprit.SERVICE


# --- renewals --------------------------------------------------------------------------------

RENEWED = """
    1 acquire 0-1
    1 renew {renewal}
    2 acquire 110-111
    1 release 190-191
    2 release 195-196"""


@pytest.mark.parametrize(
    ("renewal", "who", "by_ms"),
    [
        ("50-51", Culprit.SERVICE, 39),
        ("50-109?", Culprit.HOLDER, 90),
        ("50-120", Culprit.SERVICE, 39),  # granted before, or it would have had to be refused
        ("109-120", Culprit.SERVICE, 98),
        ("111-120", Culprit.HOLDER, 90),
        ("112-113", Culprit.HOLDER, 90),  # asked for after: it cannot bind what was before
        ("5-6", Culprit.HOLDER, 85),
        ("5-6 ttl_ms=200", Culprit.SERVICE, 94),
    ],
)
def test_only_a_renewal_that_was_asked_for_in_time_extends_the_promise(
    renewal: str, who: Culprit, by_ms: int
) -> None:
    lines = RENEWED.format(renewal=renewal)
    if renewal.endswith("?"):  # then the process is retired: its hold ends there
        lines = lines.replace("1 release 190-191", "").replace("50-109?", "50-190?")
    found = blame(lines)
    assert (found.who, found.by_ns) == (who, ns(by_ms))


# --- which of them was first -------------------------------------------------------------------

READ_ITS_ANSWER_LATE = """
    1 acquire 0-150 {first}
    2 acquire 120-121 {second}
    1 release 160-161
    2 release 170-171"""


def test_a_client_that_read_its_answer_late_was_granted_first() -> None:
    """By its answer process 2 was first, and the service would have let 1 in much too early. But
    1 was granted before: it stood still, and its lease ran out. Nobody can say that the service
    is at fault."""
    finding = overlap(READ_ITS_ANSWER_LATE.format(first="", second=""))
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert "stopped before it read its answer" in note(finding)
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.HOLDER, ns(60))
    assert (finding.time_ns, finding.length_ns) == (ns(150), ns(10))


def test_tokens_tell_who_was_first() -> None:
    finding = overlap(READ_ITS_ANSWER_LATE.format(first="token=8", second="token=7"))
    assert [hold.process for hold in finding.holds] == [2, 1]
    assert finding.blame.who is Culprit.SERVICE


@pytest.mark.parametrize("first", ["", "token=7"])
def test_one_token_tells_nothing(first: str) -> None:
    finding = overlap(READ_ITS_ANSWER_LATE.format(first=first, second=""))
    assert [hold.process for hold in finding.holds] == [1, 2]
    finding = overlap(READ_ITS_ANSWER_LATE.format(first="", second="token=9"))
    assert [hold.process for hold in finding.holds] == [1, 2]


def test_the_service_is_blamed_where_no_order_excuses_it() -> None:
    finding = overlap("1 acquire 0-3", "2 acquire 1-4", "1 release 8-9", "2 release 9-10")
    assert finding.blame.who is Culprit.SERVICE
    assert [hold.process for hold in finding.holds] == [1, 2]


def test_the_answers_tell_where_both_orders_excuse_the_service() -> None:
    """Both were granted long before they read their answers."""
    finding = overlap(
        "1 acquire 0-150", "2 acquire 1-151", "1 release 160-161", "2 release 170-171"
    )
    assert finding.blame.who is Culprit.HOLDER
    assert [hold.process for hold in finding.holds] == [1, 2]


# --- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("fault pause n1 5-105", "pause"),
        ("fault pause n1 5-", "pause"),
        ("fault pause n1 5-105!", None),  # it was not proven
        ("fault pause n2 5-105", None),  # on somebody else
        ("fault pause n1 112-115", None),  # after the other one was let in
    ],
)
def test_the_fault_that_explains_a_holder_is_on_its_node(fault: str, expected: str | None) -> None:
    found = blame(fault, OUTLIVED)
    assert found.who is Culprit.HOLDER
    assert (found.fault and found.fault.name) == expected


def test_a_fault_that_was_healed_before_the_acquire_explains_nothing() -> None:
    shifted = "1 acquire 10-11 \n 2 acquire 120-121 \n 1 release 130-131 \n 2 release 140-141"
    assert blame("fault pause n1 0-9", shifted).fault is None
    found = blame("fault pause n1 0-12", shifted)
    assert found.fault


def test_a_servers_fault_explains_the_service_rather_than_a_clients() -> None:
    found = blame("fault pause n1 5-49", "fault clock r1 40-49", LET_IN_EARLY).fault
    assert found
    assert found.name == "clock"


def test_a_clients_fault_is_named_where_no_server_had_one() -> None:
    found = blame("fault pause n1 5-49", LET_IN_EARLY).fault
    assert found
    assert found.where == "n1"


def test_the_longest_fault_is_named() -> None:
    found = blame("fault short n1 5-9", "fault long n1 20-90", OUTLIVED).fault
    assert found
    assert found.name == "long"


# --- the machine -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stalls", "who"),
    [
        ("stall n1 60-125", Culprit.MACHINE),  # 65 ms; without it, all was over at 65
        ("stall n1 95-125", Culprit.MACHINE),  # it goes on after the other one was let in
        ("stall n1 60-89", Culprit.HOLDER),  # 29 of the 30 ms
        ("stall n1 60-90", Culprit.MACHINE),  # exactly
        ("stall n2 60-125", Culprit.HOLDER),  # somebody else's
        ("stall n1 131-190", Culprit.HOLDER),  # after it had released
        ("stall n1 20-40 \n stall n1 60-80", Culprit.MACHINE),
        ("stall n1 60-80 \n stall n1 61-81", Culprit.HOLDER),  # the same 20 ms told twice
        ("fault pause n1 2-3 \n stall n1 60-125", Culprit.HOLDER),  # ours
        ("fault pause n1 2-3! \n stall n1 60-125", Culprit.HOLDER),  # perhaps ours
        ("fault pause r1 2-3 \n stall n1 60-125", Culprit.MACHINE),
    ],
)
def test_stalls_excuse_a_holder_who_would_have_been_in_time(stalls: str, who: Culprit) -> None:
    assert blame(stalls, OUTLIVED).who is who


def test_a_stall_before_the_acquire_counts_only_from_there() -> None:
    lines = "1 acquire 100-101 \n 2 acquire 210-211 \n 1 release 230-231 \n 2 release 240-241"
    assert blame("stall n1 50-129", lines).who is Culprit.HOLDER
    assert blame("stall n1 50-130", lines).who is Culprit.MACHINE


def test_what_the_machine_did_is_unknown_and_says_so() -> None:
    judgement = judged("stall n1 60-125", OUTLIVED, ttl_ms=100)
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.doubts
    for doubt in judgement.doubts:
        assert doubt.code is DoubtCode.MACHINE_STALLED
        assert (doubt.node, doubt.length_ns) == ("n1", ns(65))


def test_a_service_is_not_excused_by_stalls() -> None:
    assert blame("stall n1 2-59", LET_IN_EARLY).who is Culprit.SERVICE


# --- the host's clock ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "who"),
    [
        ("clock-step n2 30 49", Culprit.MACHINE),
        ("clock-step n2 60 500", Culprit.MACHINE),  # noticed a little later
        ("clock-step n2 30 40", Culprit.SERVICE),  # too small to explain 49 ms
        ("clock-step n2 30 -500", Culprit.SERVICE),  # backwards, leases only last longer
        ("clock-step n2 30 25 \n clock-step n3 31 25", Culprit.SERVICE),  # one step, seen by two
        ("clock-step n2 20 25 \n clock-step n2 31 25", Culprit.MACHINE),
        ("clock-step n2 2000 500", Culprit.SERVICE),
        ("fault skew n2 10-40 \n clock-step n2 30 500", Culprit.SERVICE),  # ours, on n2 alone
        ("fault skew r1 10-40 \n clock-step n2 30 500", Culprit.MACHINE),
        ('clock-step n2 30 "much"', Culprit.SERVICE),
    ],
)
def test_a_jump_of_the_hosts_clock_excuses_the_service(steps: str, who: Culprit) -> None:
    assert blame(steps, LET_IN_EARLY).who is who


def test_a_jump_of_the_hosts_clock_is_unknown() -> None:
    judgement = judged("clock-step n2 30 500", LET_IN_EARLY, ttl_ms=100)
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.doubts[0].code is DoubtCode.CLOCK_JUMPED


# --- somebody's blind release --------------------------------------------------------------------

TAKEN_AWAY = """
    1 acquire 0-1
    2 acquire 110-111
    1 release {release}
    3 acquire 130-131
    2 release 150-151 = {{"removed": 1, "blind": true}}
    3 release 160-161 = {{"removed": 0, "blind": true}}"""
BLIND = '= {"removed": 1, "blind": true}'


@pytest.mark.parametrize(
    ("release", "who"),
    [
        (f"120-121 {BLIND}", Culprit.CLIENT),
        (f"120-190 {BLIND}", Culprit.CLIENT),  # its answer was read late
        ('120-121 = {"removed": 0, "blind": true}', Culprit.SERVICE),
        ('120-121 = {"removed": 1}', Culprit.SERVICE),  # it compared before it deleted
        ("120-125? ", Culprit.CLIENT),  # of the same kind; nobody knows: so do not accuse
        ("105-108? ", Culprit.CLIENT),  # given up, but it may have come to the server later
        (f"132-133 {BLIND}", Culprit.SERVICE),  # after the third was let in
    ],
)
def test_a_blind_release_explains_why_a_third_was_let_in(release: str, who: Culprit) -> None:
    found = judged(TAKEN_AWAY.format(release=release), ttl_ms=100).findings
    (finding,) = (
        f for f in found if f.code == "overlap" and [h.process for h in f.holds] == [2, 3]
    )
    assert finding.blame.who is who
    if who is Culprit.CLIENT:
        assert finding.blame.release
        assert finding.blame.released_by
        assert finding.blame.released_by.process == 1
        certain = release.endswith(BLIND)
        assert ("n1 took it away" in note(finding)) == certain
        assert ("n1 may have taken it away" in note(finding)) != certain
        assert finding.operations == (finding.blame.release,)
    else:
        assert note(finding) == ""
        assert finding.operations == ()


def test_a_release_that_may_have_removed_its_own_lock_is_no_proof() -> None:
    """It was under way when the other one was let in, perhaps because of it."""
    release = f"105-121 {BLIND}"
    lines = TAKEN_AWAY.format(release=release).replace("2 acquire 110-111", "2 acquire 106-107")
    found = judged(lines, ttl_ms=100).findings
    (finding,) = (f for f in found if f.code == "overlap")
    assert finding.blame.who is Culprit.CLIENT
    assert "may have taken it away" in note(finding)


def test_the_last_release_before_the_third_was_let_in_is_named() -> None:
    lines = TAKEN_AWAY.format(release=f"120-121 {BLIND}")
    found = judged(f"9 acquire 0-0.5 \n 9 release 115-116 {BLIND}", lines, ttl_ms=100)
    named = {
        f.blame.release.process
        for f in found.findings
        if f.code == "overlap" and f.blame.release and [h.process for h in f.holds] == [2, 3]
    }
    assert named == {1}


def test_a_release_on_another_key_explains_nothing() -> None:
    lines = TAKEN_AWAY.format(release=f"120-121 {BLIND}")
    lines = lines.replace("1 acquire", "1 acquire:x").replace("1 release 120", "1 release:x 120")
    assert blame(lines).who is Culprit.SERVICE
