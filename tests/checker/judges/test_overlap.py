"""Certain holds of two clients with an instant in common, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Case, Code, Culprit, Finding, Verdict
from lockcheck.checker.judges.overlap import PAIRS_EACH, find, overlapping
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import history, judged, ns

NO_OVERLAP = {
    "one after the other": """
        1 acquire 0-1
        1 release 5-6
        2 acquire 7-8
        2 release 9-10""",
    "granted while the release is under way": """
        1 acquire 0-1
        1 release 5-9
        2 acquire 6-7
        2 release 10-11""",
    "granted at the very moment of the release": """
        1 acquire 0-1
        1 release 5-6
        2 acquire 4-5
        2 release 9-10""",
    "the release is never answered": """
        1 acquire 0-1
        1 release 5-
        2 acquire 6-7
        2 release 8-9""",
    "nobody knows whether it was released": """
        1 acquire 0-1
        1 release 5-20?
        2 acquire 6-7
        2 release 8-9""",
    "the release failed because the lease was gone": """
        1 acquire 0-1
        1 release 200-201!
        2 acquire 200-201
        2 release 203-204""",
    "nobody knows whether it was granted": """
        1 acquire 0-30?
        2 acquire 5-6
        2 release 10-11
        3 acquire 12-13
        3 release 14-15""",
    "an acquire that was never answered": """
        1 acquire 0-
        2 acquire 5-6
        2 release 10-11
        3 acquire 12-13
        3 release 14-15""",
    "a refused acquire": """
        1 acquire 0-1
        2 acquire 2-3!
        1 release 8-9
        3 acquire 10-11""",
    "a holder that dies is certain up to its last sign of life": """
        1 acquire 0-1
        1 write 2-3 a
        2 acquire 50-51
        2 release 60-61""",
    "retired after an answer that nobody knows": """
        1 acquire 0-1
        1 write 2-10? a
        4@n1 acquire:other 20-21
        2 acquire 12-13
        2 release 30-31""",
    "told that it lost it": """
        1 acquire 0-1
        1 lost 5
        2 acquire 5-6
        1 release 9-10!
        2 release 11-12""",
    "two keys": """
        1 acquire:a 0-1
        2 acquire:b 2-3
        1 release:a 8-9
        2 release:b 8-9""",
    "a moment, at the very end of the other one's": """
        1 acquire 0-50
        2 acquire 40-45
        2 release 50-61""",
    "a moment, of one that knew that its lease was over": """
        1 acquire 0-50
        1 lost 50
        2 acquire 40-45
        2 release 60-61""",
}

OVERLAP = {
    "one within the other": (
        """
        1 acquire 0-1
        2 acquire 3-4
        2 release 6-7
        1 release 8-9""",
        (4, 2),
    ),
    "by one nanosecond": (
        """
        1 acquire 0-1
        2 acquire 3-4.999999
        1 release 5-6
        2 release 6-7""",
        (4.999999, 0.000001),
    ),
    "granted at the same moment": (
        """
        1 acquire 0-1
        2 acquire 0-1
        1 release 5-6
        2 release 6-7""",
        (1, 4),
    ),
    "the later one never releases": (
        """
        1 acquire 0-1
        2 acquire 3-4
        2 read 5-6 = null
        1 release 8-9""",
        (4, 2),
    ),
    "the earlier one was last seen after the later one was let in": (
        """
        1 acquire 0-1
        2 acquire 3-4
        1 write 7-8? x
        2 release 9-10""",
        (4, 4),
    ),
    "told too late": (
        """
        1 acquire 0-1
        2 acquire 3-4
        1 lost 6
        2 release 8-9""",
        (4, 2),
    ),
    "a moment, of one that is not heard of again": (
        """
        1 acquire 0-50
        2 acquire 40-45
        2 release 60-61""",
        (50, 0),
    ),
    "a moment, of one that releases at once": (
        """
        1 acquire 0-1
        2 acquire 3-4
        2 release 4-5
        1 release 6-7""",
        (4, 0),
    ),
    "a writer among readers, not heard of again": (
        """
        1 acquire 0-1 shared=true
        2 acquire 3-4
        1 release 6-7""",
        (4, 0),
    ),
    "its keeper renewed all the while": (
        """
        1 acquire 0-1
        9 renew 20-21 of=1
        2 acquire 30-31 shared=true
        9 renew 40-41 of=1
        2 release 50-51""",
        (31, 9),
    ),
    "on the second key": (
        """
        1 acquire:a 0-1
        1 acquire:b 2-3
        2 acquire:b 4-5
        1 release:b 8-9
        1 release:a 10-11
        2 release:b 12-13""",
        (5, 3),
    ),
}


def overlaps(*lines: str, **terms: Any) -> list[Finding]:
    return list(find(Case(history(*lines, **terms))))


@pytest.mark.parametrize("lines", NO_OVERLAP.values(), ids=NO_OVERLAP)
def test_accepts(lines: str) -> None:
    assert overlaps(lines, ttl_ms=100) == []


@pytest.mark.parametrize(("lines", "expected"), OVERLAP.values(), ids=OVERLAP)
def test_rejects(lines: str, expected: tuple[float, float]) -> None:
    (finding,) = overlaps(lines, ttl_ms=100)
    assert finding.effect is Verdict.VIOLATION
    assert finding.code is Code.OVERLAP
    assert judged(lines, ttl_ms=100).of(Code.OVERLAP) == (finding,)
    assert (finding.time_ns, finding.length_ns) == (ns(expected[0]), ns(expected[1]))


VALIDITY = """
    1 acquire 0-1 valid_ms=50
    2 acquire 60-61 valid_ms=50
    1 release 70-71
    2 release 80-81"""


def test_a_client_that_watches_its_validity_stops_believing_when_it_ends() -> None:
    assert len(overlaps(VALIDITY, ttl_ms=55)) == 1
    assert overlaps(VALIDITY, ttl_ms=55, check_validity=True) == []


@pytest.mark.parametrize(
    ("acts", "own_lease_clock", "found"),
    [
        ("1 write 65-66 a seq=1", True, True),  # it believes, whatever the true time is
        ("1 write 65-66 a seq=1", False, False),  # it looked in time, and was slow
        ("1 write 40-41 a seq=1", True, False),  # after that nobody knows
        ("", True, False),
    ],
)
def test_whose_clock_is_its_own_believes_as_long_as_it_acts(
    acts: str, own_lease_clock: bool, found: bool
) -> None:
    told = overlaps(VALIDITY, acts, ttl_ms=55, check_validity=True, own_lease_clock=own_lease_clock)
    assert bool(told) == found
    assert all(finding.blame.who is Culprit.HOLDER for finding in told)


def test_a_validity_that_was_read_late_does_not_last_beyond_the_lease() -> None:
    """The client counts from before it stood still; its answer was written down after."""
    late = "1 acquire 0-54 valid_ms=50 \n 2 acquire 60-61 \n 1 release 70-71 \n 2 release 80-81"
    assert overlaps(late, ttl_ms=55, check_validity=True) == []


@pytest.mark.parametrize(("renewed", "expected"), [("40-41", ["overlap"]), ("52-53", [])])
def test_a_renewal_extends_validity_only_in_time(renewed: str, expected: list[str]) -> None:
    findings = overlaps(
        "1 acquire 0-1 valid_ms=50",
        f"1 renew {renewed} valid_ms=50",
        "2 acquire 59-60 valid_ms=50",
        "1 release 70-71",
        "2 release 80-81",
        ttl_ms=60,
        check_validity=True,
    )
    assert [finding.code for finding in findings] == expected


def test_an_overlap_is_told_by_who_was_let_in_first() -> None:
    (finding,) = overlaps("1 acquire 0-1", "2 acquire 3-4", "1 release 8-9", "2 release 9-10")
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert note(finding) == ""


def test_concurrent_acquires_are_noted() -> None:
    (finding,) = overlaps("1 acquire 0-3", "2 acquire 1-4", "1 release 8-9", "2 release 8-9")
    assert "at the same time" in note(finding)


def test_up_to_nine_at_once_are_told_pair_by_pair() -> None:
    lines = [f"{n} acquire {n}-{n}.5 \n {n} release {100 + n}-{101 + n}" for n in range(9)]
    assert len(overlaps(*lines)) == 9 * 8 // 2


def test_many_at_once_do_not_explode_and_none_is_left_out() -> None:
    lines = [f"{n} acquire {n}-{n}.5 \n {n} release {1000 - n}-{1000}" for n in range(300)]
    pairs = list(overlapping(list(history(*lines).holds)))
    assert len(pairs) <= 300 * PAIRS_EACH
    assert {later.process for _, later in pairs} == set(range(1, 300))


def test_those_that_end_last_are_kept() -> None:
    """A hold that outlasts many short ones is found by whoever comes after them all."""
    short = [f"{n} acquire {n}-{n}.5 \n {n} release 40-41" for n in range(1, 20)]
    pairs = overlapping(
        list(history("0 acquire 0-0.5", "0 release 99-100", *short, "50 acquire 60-61").holds)
    )
    assert (0, 50) in {(a.process, b.process) for a, b in pairs}  # which died when it was granted
    pairs = overlapping(
        list(
            history(
                "0 acquire 0-0.5",
                "0 release 99-100",
                *short,
                "50 acquire 60-61",
                "50 release 70-71",
            ).holds
        )
    )
    assert (0, 50) in {(a.process, b.process) for a, b in pairs}


# --- locks that more than one may hold ----------------------------------------------------------

SHARED = {
    "two readers": ("1 acquire 0-1 shared=true", "2 acquire 3-4 shared=true", []),
    "a reader and a writer": ("1 acquire 0-1 shared=true", "2 acquire 3-4", ["overlap"]),
    "a writer and a reader": ("1 acquire 0-1", "2 acquire 3-4 shared=true", ["overlap"]),
    "two writers": ("1 acquire 0-1", "2 acquire 3-4", ["overlap"]),
}


@pytest.mark.parametrize(("one", "other", "expected"), SHARED.values(), ids=SHARED)
def test_those_who_share_do_not_exclude_each_other(
    one: str, other: str, expected: list[str]
) -> None:
    findings = overlaps(one, other, "1 release 8-9 \n 2 release 9-10", ttl_ms=100)
    assert [finding.code for finding in findings] == expected
    for finding in findings:
        assert ("shared it with others" in note(finding)) == ("shared" in one + other)


def test_a_writer_among_readers_is_told_with_those_that_end_last() -> None:
    readers = [
        f"{n} acquire {n}-{n}.5 shared=true \n {n} release {99 + n}-200" for n in range(1, 20)
    ]
    told = history(*readers, "30 acquire 50-51 \n 30 release 90-91")
    pairs = list(overlapping(list(told.holds)))
    assert {later.process for _, later in pairs} == {30}
    assert {found.process for found, _ in pairs} == set(range(12, 20))
    after = history(*readers, "30 acquire 118-119 \n 30 release 120-121")
    assert list(overlapping(list(after.holds))) == []


THREE = """
    1 acquire {one}
    2 acquire {two}
    3 acquire 50-51
    1 release 60-61
    2 release 70-71
    3 release 80-81"""


def test_no_more_hold_a_semaphore_than_it_has_permits() -> None:
    lines = THREE.format(one="0-1", two="2-3")
    assert overlaps(lines, permits=3) == []
    (finding,) = overlaps(lines, ttl_ms=100, permits=2)
    assert [hold.process for hold in finding.holds] == [1, 3, 2]
    assert (finding.time_ns, finding.length_ns) == (ns(51), ns(9))
    # The promise to 1 would have been over first.
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.SERVICE, ns(49))
    assert note(finding) == "There are 2 permits, and 3 held one."


@pytest.mark.parametrize(
    ("more", "who", "order"),
    [
        ("", Culprit.HOLDER, [2, 3, 1]),
        ("stall n2 15-65", Culprit.MACHINE, [2, 3, 1]),
        ("stall n1 1-59", Culprit.HOLDER, [2, 3, 1]),
    ],
)
def test_the_service_is_not_to_blame_where_one_of_them_outlived_its_lease(
    more: str, who: Culprit, order: list[int]
) -> None:
    lines = THREE.format(one="0-1 ttl_ms=100", two="2-3 ttl_ms=20")
    (finding,) = overlaps(lines, more, permits=2)
    assert finding.blame.who is who
    assert [hold.process for hold in finding.holds] == order


def test_each_that_is_one_too_many_is_told() -> None:
    lines = [f"{n} acquire {n}-{n}.5 \n {n} release {90 - n}-{91 - n}" for n in range(6)]
    findings = overlaps(*lines, permits=3)
    assert [finding.holds[1].process for finding in findings] == [3, 4, 5]
    assert {len(finding.holds) for finding in findings} == {4}


ENTERED_TWICE = """
    1 acquire 0-1
    1 acquire 2-3
    1 release 4-5
    2 acquire 6-7
    1 release 8-9
    2 release 10-11"""


def test_whoever_enters_again_holds_until_it_has_left_as_often() -> None:
    (finding,) = overlaps(ENTERED_TWICE, model="reentrant")
    assert (finding.time_ns, finding.length_ns) == (ns(7), ns(1))


def test_an_ordinary_lock_is_over_with_its_release() -> None:
    assert overlaps(ENTERED_TWICE) == []


def test_a_grant_that_was_given_up_is_over_with_the_last_sign_of_life() -> None:
    """The client died, nobody knows when, and came back under the same name."""
    lines = """
        1 acquire 0-1
        1 write 2-3 a
        2 acquire {granted}
        2 release 200-201
        1 acquire 210-211
        1 release 220-221"""
    assert overlaps(lines.format(granted="150-151"), ttl_ms=100) == []
    assert len(overlaps(lines.format(granted="1.5-2"), ttl_ms=100)) == 1


PERMITS_IN_TURN = {
    "each after another has let go": """
        1 acquire 0-1
        2 acquire 2-3
        1 release 4-5
        3 acquire 6-7
        2 release 8-9
        1 acquire 10-11
        3 release 12-13
        2 acquire 14-15""",
    "at the very moment of a release": """
        1 acquire 0-1
        2 acquire 2-3
        1 release 6-8
        3 acquire 5-6
        2 release 9-10
        3 release 9-10""",
    "a hold that took no time, at the very moment of a release": """
        1 acquire 0-1
        1 release 5-21
        2 acquire 2-3
        2 release 20-21
        3 acquire 4-5
        3 release 5-6""",
}


@pytest.mark.parametrize("lines", PERMITS_IN_TURN.values(), ids=PERMITS_IN_TURN)
def test_permits_that_are_given_back_may_be_granted_again(lines: str) -> None:
    assert overlaps(lines, permits=2) == []


def test_a_moment_is_one_permit_too_many() -> None:
    lines = "1 acquire 0-1 \n 1 release 20-21 \n 2 acquire 2-3 \n 2 release 20-21 \n 3 acquire 4-5"
    (finding,) = overlaps(lines, permits=2)
    assert (finding.time_ns, finding.length_ns) == (ns(5), 0)


def test_all_who_held_a_permit_are_named_in_the_order_of_their_grants() -> None:
    lines = [f"{n} acquire {n}-{n}.5 \n {n} release {40 - 5 * n}-50" for n in range(1, 5)]
    (finding,) = overlaps(*lines, permits=3, ttl_ms=100)
    assert {hold.process for hold in finding.holds} == {1, 2, 3, 4}
    others = [hold.start_ns for hold in finding.holds[2:]]
    assert others == sorted(others)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("shared=true", "", "n1 shared it with others, n2 was to have it alone."),
        ("", "shared=true", "n2 shared it with others, n1 was to have it alone."),
    ],
)
def test_who_shared_it_is_said(first: str, second: str, said: str) -> None:
    (finding,) = overlaps(f"1 acquire 0-1 {first} \n 2 acquire 2-3 {second}", SEEN)
    assert note(finding) == said


SEEN = "1 renew 8-9 \n 2 renew 8-9 \n 1 release 10-11 \n 2 release 10-11"


def test_an_answer_that_came_late_is_said() -> None:
    late = "1 acquire 0-7 token=1 \n 2 acquire 2-3 token=2"
    (finding,) = overlaps(late, SEEN)
    assert "The first client was stopped before it read its answer." in note(finding)
    (finding,) = overlaps(late.replace("token=2", "token=0"), SEEN)
    assert "is a guess" in note(finding)
    assert "before it read" not in note(finding)
