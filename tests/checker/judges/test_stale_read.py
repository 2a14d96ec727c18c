"""A storage that serves what it had replaced, by its numbers; and numbers that prove nothing."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Case, Culprit, Finding, Verdict, judge
from lockcheck.checker.judges.stale_read import find
from tests.checker.dsl import codes, history, ns


def found(*lines: str, **more: Any) -> list[Finding]:
    return list(find(Case(history(*lines, **more))))


WROTE = "1 write 2-3 v1 seq=1 base=v0"
STALE = {
    "the value before the first write": (WROTE, "2 read 8-9 seq=2 = v0"),
    "an older write": (WROTE, "1 write 4-5 v2 seq=2", "2 read 8-9 seq=3 = v1"),
    "its times say nothing": (WROTE, "2 read 0-9 seq=2 = v0"),
    "served before another one that is right": (
        WROTE, "2 read 8-9 seq=2 = v0", "2 read 10-11 seq=3 = v1"
    ),
    "after a write that was refused": (
        WROTE, "1 write 4-5! v2 seq=2", "2 read 8-9 seq=3 = v0"
    ),
    "numbers of all keys together": (WROTE, "1 read:x 4-5 seq=2 = q", "2 read 8-9 seq=3 = v0"),
    "numbers of each key": (WROTE, "1 read:x 4-5 seq=1 = q", "2 read 8-9 seq=2 = v0"),
}  # fmt: skip
FRESH = {
    "the last value": (WROTE, "2 read 8-9 seq=2 = v1"),
    "it was served before": ("2 read 8-9 seq=1 = v0", "1 write 2-3 v1 seq=2 base=v0"),
    "without a number": (WROTE, "2 read 8-9 = v0"),
    "a number is missing: perhaps of a write": (WROTE, "2 read 8-9 seq=3 = v0"),
    "a number of another key, which counts for itself": (
        WROTE, "1 read:x 4-5 seq=1 = q", "1 read:x 6-7 seq=2 = q", "2 read 8-9 seq=3 = v0"
    ),
    "a value that is not known": (WROTE, "2 read 8-9 seq=2 = v9"),
    "written again": (WROTE, "1 write 4-5 v0 seq=2", "2 read 8-9 seq=3 = v0"),
    "numbers that are versions": (
        WROTE, "1 write 4-5 v2 seq=2", "1 read 6-7 seq=2 = v2", "2 read 8-9 seq=3 = v1"
    ),
    "nothing was written": ("2 read 8-9 seq=1 = v0", "2 read 10-11 seq=2 = v1"),
    "nothing was returned": (WROTE, "2 read 8-9 seq=2"),
    "changed by something else": (WROTE, '1 cas 4-5 ["v1","v0"] seq=2', "2 read 8-9 seq=3 = v0"),
}  # fmt: skip


@pytest.mark.parametrize("lines", STALE.values(), ids=STALE)
def test_rejects(lines: tuple[str, ...]) -> None:
    (finding,) = found(*lines)
    assert (finding.code, finding.blame.who) == ("stale-read", Culprit.STORAGE)
    assert finding.effect is Verdict.VIOLATION
    write, read = finding.operations
    assert (write.f, read.f) == ("write", "read")


@pytest.mark.parametrize("lines", FRESH.values(), ids=FRESH)
def test_accepts(lines: tuple[str, ...]) -> None:
    assert found(*lines) == []


def test_each_is_one() -> None:
    reads = [f"2 read {n}-{n + 1} seq={n} = v0" for n in range(10, 20)]
    wrote = [f"1 write {n}-{n + 1} v{n} seq={n}" for n in range(1, 10)]
    assert len(found("1 write 0-1 v0 seq=0", *wrote, *reads)) == 10


def test_with_a_ledger_no_write_is_unknown() -> None:
    numbers = WROTE, "2 read 8-9 seq=3 = v0"
    assert len(found(*numbers, ledger=True)) == 1
    unanswered = "1 write 4-7? v0 seq=2"
    assert found(*numbers, unanswered, ledger=True) == []


LOST = """
    1 acquire 0-1
    1 write 2-3 v1 seq=1 base=v0
    1 release 4-5
    2 acquire 6-7
    2 read 8-9 seq=2 = v0
    2 write 10-11 v2 seq=3 base=v0
    2 release 12-13"""


def test_what_it_overwrites_is_not_the_clients_fault() -> None:
    judgement = judge(history(LOST))
    assert set(codes(judgement)) == {"not-linearizable", "stale-read", "lost-update"}
    (lost,), (stale,) = judgement.of("lost-update"), judgement.of("stale-read")
    assert lost.blame.who is stale.blame.who is Culprit.STORAGE
    right = judge(history(LOST.replace("= v0", "= v1")))
    (lost,) = right.of("lost-update")
    assert lost.blame.who is Culprit.CLIENT


def test_it_becomes_known_when_the_read_is_answered() -> None:
    (finding,) = found(LOST)
    assert finding.time_ns == ns(9)
    assert [o.start_ns for o in finding.operations] == [ns(2), ns(8)]
