"""Writes of an earlier holder that the storage took after one of a later holder."""

from __future__ import annotations

import pytest

from lockcheck.checker import Case, Culprit, Finding, Verdict
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import codes, history, judged, ns

STALE = """
    1 acquire 0-1
    2 acquire 110-111
    2 write 112-113 b seq=1
    1 write 130-131 a seq=2
    1 release 132-133!
    2 release 140-141"""


def stale(*lines: str, ledger: bool = True, **terms: object) -> list[Finding]:
    found = judged(*lines, ledger=ledger, ttl_ms=100, **terms).findings
    return [finding for finding in found if finding.code == "stale-write"]


@pytest.mark.parametrize("ledger", [True, False])
def test_a_stale_write(ledger: bool) -> None:
    (finding,) = stale(STALE, ledger=ledger)
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert [o.invoke.value for o in finding.operations] == ["b", "a"]
    assert (finding.time_ns, finding.length_ns) == (ns(131), ns(30))
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.HOLDER, ns(30))
    assert finding.effect is Verdict.VIOLATION
    assert note(finding) == ""


ACCEPTED = {
    "in turn": """
        1 acquire 0-1
        1 write 2-3 a seq=1
        1 release 4-5
        2 acquire 6-7
        2 write 8-9 b seq=2""",
    "the stale one was refused": STALE.replace("130-131", "130-131!"),
    "the newer one was refused": STALE.replace("112-113", "112-113!"),
    "the late one was served first": STALE.replace("seq=2", "seq=0"),
    "their acquires were concurrent, and there are no tokens": STALE.replace(
        "2 acquire 110-111", "2 acquire 0.5-111"
    ),
    "asked at the very moment of the grant": STALE.replace("2 acquire 110-111", "2 acquire 1-111"),
    "on another key": STALE.replace("2 acquire", "2 acquire:b")
    .replace("2 write", "2 write:b")
    .replace("2 release", "2 release:b"),
    "written without ever holding the lock": STALE.replace("1 acquire 0-1", "1 acquire 0-1!"),
    "the same holder twice": """
        1 acquire 0-1
        1 write 2-3 a seq=1
        1 write 4-5 b seq=2""",
    "it holds again": """
        1 acquire 0-1
        1 release 2-3
        2 acquire 4-5
        2 write 6-7 b seq=1
        2 release 8-9
        1 acquire 10-11
        1 write 12-13 a seq=2""",
    "a token that went backwards makes nobody stale": """
        1 acquire 0-1 token=9
        1 write 2-3 a seq=1
        1 release 4-5
        2 acquire 6-7 token=8
        2 write 8-9 b seq=2""",
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
@pytest.mark.parametrize("ledger", [True, False])
def test_accepts(lines: str, ledger: bool) -> None:
    assert stale(lines, ledger=ledger) == []


@pytest.mark.parametrize(("tokens", "number"), [((7, 8), 1), ((8, 7), 0), ((7, 7), 0)])
def test_tokens_tell_where_the_acquires_were_concurrent(
    tokens: tuple[int, int], number: int
) -> None:
    lines = STALE.replace("1 acquire 0-1", f"1 acquire 0-1 token={tokens[0]}")
    lines = lines.replace("2 acquire 110-111", f"2 acquire 0-111 token={tokens[1]}")
    assert len(stale(lines)) == number


def test_the_highest_token_counts_not_the_last() -> None:
    lines = """
        2 acquire 0-100 token=9
        1 acquire 1-100 token=8
        3 acquire 5-100 token=7
        2 write 112-113 b seq=1
        3 write 114-115 c seq=2
        1 write 116-117 a seq=3"""
    pairs = [[hold.token for hold in finding.holds] for finding in stale(lines)]
    assert pairs == [[7, 9], [8, 9]]


def test_the_storage_knows_of_writes_that_no_client_saw_answered() -> None:
    unanswered = STALE.replace("130-131 a seq=2", "130-150? a").replace("1 release 132-133!", "")
    assert stale(unanswered) == []
    (finding,) = stale(unanswered, "storage write 1 a seq=2")
    assert "never learned" in note(finding)
    assert finding.time_ns == ns(130)


def test_a_write_that_never_came_back_at_all() -> None:
    lines = STALE.replace("130-131 a seq=2", "130- a").replace("1 release 132-133!", "")
    (finding,) = stale(lines, "storage write 1 a seq=2")
    assert finding.operations[1].answer is None


def test_repeated_marks_are_told_apart_by_the_number() -> None:
    lines = """
        1 acquire 0-1
        1 write 2-3 a seq=1
        2 acquire 110-111
        2 write 112-113 a seq=2
        1 write 130-131 a seq=3"""
    (finding,) = stale(lines)
    assert finding.operations[1].start_ns == ns(130)


def test_a_write_in_flight_when_the_lease_ran_out() -> None:
    lines = STALE.replace("1 write 130-131 a seq=2", "1 write 90-131 a seq=2")
    (finding,) = stale(lines)
    assert (finding.blame.who, finding.blame.by_ns, finding.length_ns) == (Culprit.HOLDER, 0, 0)
    assert "in flight" in note(finding)


def test_a_pause_between_the_invocation_and_the_sending_explains_it() -> None:
    lines = STALE.replace("1 write 130-131 a seq=2", "1 write 90-131 a seq=2")
    (finding,) = stale("fault pause n1 91-129", lines)
    assert finding.blame.fault
    (finding,) = stale("stall n1 91-129", lines)
    assert finding.blame.who is Culprit.MACHINE
    assert finding.effect is Verdict.UNKNOWN


def test_a_later_holder_that_was_let_in_early_is_the_services_fault() -> None:
    (finding,) = stale(STALE.replace("2 acquire 110-111", "2 acquire 60-61"))
    assert finding.blame.who is Culprit.SERVICE
    assert finding.blame.by_ns == ns(39)


@pytest.mark.parametrize("ending", ["1 release 60-61", "1 lost 60"])
def test_a_client_that_wrote_after_it_had_let_go(ending: str) -> None:
    lines = STALE.replace("1 release 132-133!", ending)
    (finding,) = stale(lines)
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.CLIENT, ns(70))
    assert "although its hold had ended" in note(finding)


def test_a_client_that_had_released_in_time_cannot_blame_the_lock() -> None:
    """Its write overtook nobody's: it was sent within the hold, and answered after."""
    told = history(
        "1 acquire 0-1 \n 1 write 5-6 a seq=2 \n 1 release 9-10",
        "2 acquire 8-9 \n 2 write 20-21 b seq=1",
        ttl_ms=100,
    )
    first, second = told.holds
    write = next(o for o in told.operations if o.f == "write")
    assert Case(told).attribution.blame(first, second, write).who is Culprit.CLIENT


def test_a_write_at_the_very_moment_of_the_loss_was_in_time() -> None:
    lines = STALE.replace("1 release 132-133!", "1 lost 130")
    (finding,) = stale(lines)
    assert finding.blame.who is Culprit.HOLDER
    assert note(finding) == ""


def test_a_client_that_watches_its_validity_was_paused_after_the_look() -> None:
    lines = STALE.replace("1 acquire 0-1", "1 acquire 0-1 valid_ms=90")
    (finding,) = stale("fault pause n1 50-129", lines, check_validity=True)
    assert finding.blame.who is Culprit.HOLDER
    assert finding.blame.fault


def test_every_stale_write_is_told() -> None:
    more = "1 write 132-133 a2 seq=3 \n 1 write 134-135 a3 seq=4"
    assert len(stale(STALE.replace("1 release 132-133!", more))) == 3


def test_a_lease_less_holder_that_died_is_not_the_services_fault() -> None:
    lines = STALE.replace("130-131 a seq=2", "20-30? a").replace("1 release 132-133!", "")
    found = judged(lines, "storage write 1 a seq=2", ledger=True).findings
    (finding,) = (f for f in found if f.code == "stale-write")
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.HOLDER, 0)


@pytest.mark.parametrize(
    ("guard", "effect"),
    [("none", Verdict.VIOLATION), ("fence", Verdict.VIOLATION), ("cas", Verdict.OK)],
)
def test_guards(guard: str, effect: Verdict) -> None:
    (finding,) = stale(STALE, guard=guard)
    assert finding.effect is effect


def test_a_fence_must_hold_even_when_the_machine_stalls() -> None:
    (finding,) = stale("stall n1 20-129", STALE, guard="fence")
    assert finding.blame.who is Culprit.MACHINE
    assert finding.effect is Verdict.VIOLATION


SHARED = """
    1 acquire 0-1 {one}
    2 acquire 3-4 {other}
    2 write 5-6 b seq=1
    1 write 7-8 a seq=2
    1 release 9-10
    2 release 11-12"""


@pytest.mark.parametrize(
    ("one", "other", "permits", "stale"),
    [
        ("", "", 1, True),
        ("", "", 2, False),
        ("shared=true", "", 1, True),
        ("", "shared=true", 1, True),
        ("shared=true", "shared=true", 1, False),
    ],
)
def test_those_who_may_hold_it_together_make_nothing_stale(
    one: str, other: str, permits: int, stale: bool
) -> None:
    told = judged(SHARED.format(one=one, other=other), ledger=True, permits=permits)
    assert ("stale-write" in codes(told)) == stale


def test_one_that_was_sent_in_time_was_not_late() -> None:
    lines = SHARED.format(one="token=33", other="token=34")
    (finding,) = (f for f in judged(lines, ledger=True).findings if f.code == "stale-write")
    assert finding.length_ns == 0


READ = STALE.replace("2 write 112-113 b seq=1", "2 read 112-113 seq=1 = z")


def test_a_fence_that_looks_at_writes_only_accepts_one_after_a_read() -> None:
    """It does no harm by itself."""
    (finding,) = stale(READ, ledger=False, guard="fence")
    assert finding.effect is Verdict.OK
    assert [o.f for o in finding.operations] == ["read", "write"]
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert "A later holder had read before" in note(finding)


@pytest.mark.parametrize(
    ("lines", "terms"),
    [
        (READ, {"guard": "none"}),
        (READ, {"guard": "fence", "backend": "redis"}),  # its storage looks at reads, too
        (READ.replace("seq=1", "seq=3"), {"guard": "fence"}),
        (READ.replace("seq=1 ", ""), {"guard": "fence"}),
        (READ.replace("2 read", "2 read:x"), {"guard": "fence"}),
        (READ.replace("2 acquire 110-111", "2 acquire 0.5-111"), {"guard": "fence"}),
    ],
)
def test_nothing_is_said_of_other_reads(lines: str, terms: dict[str, str]) -> None:
    assert stale(lines, ledger=False, **terms) == []


def test_after_a_newer_write_it_is_a_violation_all_the_same() -> None:
    read_first = "2 read 112-113 seq=0 = z \n 2 write 114-115 b seq=1"
    both = STALE.replace("2 write 112-113 b seq=1", read_first)
    (finding,) = stale(both, ledger=False, guard="fence")
    assert finding.effect is Verdict.VIOLATION
