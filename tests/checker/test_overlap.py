"""Certain holds of two clients with an instant in common, and nothing else."""

from __future__ import annotations

import pytest

from lockcheck.checker import Code, Verdict
from lockcheck.checker.overlap import TOLD_EACH, overlapping
from tests.checker.dsl import codes, history, judged, ns

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
    "a process that has held nothing but a moment": """
        1 acquire 0-50
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


@pytest.mark.parametrize("lines", NO_OVERLAP.values(), ids=NO_OVERLAP)
def test_accepts(lines: str) -> None:
    judgement = judged(lines, ttl_ms=100)
    assert codes(judgement) == []
    assert judgement.verdict is Verdict.OK


@pytest.mark.parametrize(("lines", "expected"), OVERLAP.values(), ids=OVERLAP)
def test_rejects(lines: str, expected: tuple[float, float]) -> None:
    judgement = judged(lines, ttl_ms=100)
    (finding,) = judgement.findings
    assert judgement.verdict is Verdict.VIOLATION
    assert finding.code is Code.OVERLAP
    assert (finding.time_ns, finding.length_ns) == (ns(expected[0]), ns(expected[1]))


VALIDITY = """
    1 acquire 0-1 valid_ms=50
    2 acquire 60-61 valid_ms=50
    1 release 70-71
    2 release 80-81"""


def test_a_client_that_watches_its_validity_stops_believing_when_it_ends() -> None:
    assert codes(judged(VALIDITY, ttl_ms=55)) == ["overlap"]
    assert codes(judged(VALIDITY, ttl_ms=55, honours_validity=True)) == []


def test_a_validity_that_was_read_late_does_not_last_beyond_the_lease() -> None:
    """The client counts from before it stood still; its answer was written down after."""
    late = "1 acquire 0-54 valid_ms=50 \n 2 acquire 60-61 \n 1 release 70-71 \n 2 release 80-81"
    assert codes(judged(late, ttl_ms=55, honours_validity=True)) == []


@pytest.mark.parametrize(("renewed", "expected"), [("40-41", ["overlap"]), ("52-53", [])])
def test_a_renewal_extends_validity_only_in_time(renewed: str, expected: list[str]) -> None:
    judgement = judged(
        "1 acquire 0-1 valid_ms=50",
        f"1 renew {renewed} valid_ms=50",
        "2 acquire 59-60 valid_ms=50",
        "1 release 70-71",
        "2 release 80-81",
        ttl_ms=60,
        honours_validity=True,
    )
    assert codes(judgement) == expected


def test_an_overlap_is_told_by_who_was_let_in_first() -> None:
    (finding,) = judged(
        "1 acquire 0-1", "2 acquire 3-4", "1 release 8-9", "2 release 9-10"
    ).findings
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert finding.note == ""


def test_concurrent_acquires_are_noted() -> None:
    (finding,) = judged("1 acquire 0-3", "2 acquire 1-4", "1 release 8-9", "2 release 8-9").findings
    assert "at the same time" in finding.note


def test_up_to_nine_at_once_are_told_pair_by_pair() -> None:
    lines = [f"{n} acquire {n}-{n}.5 \n {n} release {100 + n}-{101 + n}" for n in range(9)]
    assert len(judged(*lines).findings) == 9 * 8 // 2


def test_many_at_once_do_not_explode_and_none_is_left_out() -> None:
    lines = [f"{n} acquire {n}-{n}.5 \n {n} release {1000 - n}-{1000}" for n in range(300)]
    pairs = list(overlapping(list(history(*lines).holds)))
    assert len(pairs) <= 300 * TOLD_EACH
    assert {later.process for _, later in pairs} == set(range(1, 300))


def test_those_that_end_last_are_kept() -> None:
    """A hold that outlasts many short ones is found by whoever comes after them all."""
    short = [f"{n} acquire {n}-{n}.5 \n {n} release 40-41" for n in range(1, 20)]
    pairs = overlapping(
        list(history("0 acquire 0-0.5", "0 release 99-100", *short, "50 acquire 60-61").holds)
    )
    assert (0, 50) not in {(a.process, b.process) for a, b in pairs}  # 50 died when it was granted
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
