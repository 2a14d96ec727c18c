"""Accepted writes are a chain of versions; what the final one does not descend from is lost."""

from __future__ import annotations

import pytest

from lockcheck.checker import Culprit, Finding, Verdict
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.evidence.versions import _overwriters
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import judged, ns

LOST = """
    1 acquire 0-1
    1 read 2-3 seq=1 = null
    2 acquire 110-111
    2 read 112-113 seq=2 = null
    2 write 114-115 b seq=3
    2 release 116-117
    1 write 130-131 a seq=4
    1 release 132-133!"""


def lost(*lines: str, ledger: bool = True, **terms: object) -> list[Finding]:
    found = judged(*lines, ledger=ledger, **{"ttl_ms": 100, **terms}).findings
    return [finding for finding in found if finding.code == "lost-update"]


@pytest.mark.parametrize("ledger", [True, False])
def test_an_update_was_overwritten_by_one_that_had_not_seen_it(ledger: bool) -> None:
    (finding,) = lost(LOST, ledger=ledger)
    assert [hold.process for hold in finding.holds] == [1, 2]
    told = [(o.f, o.process) for o in finding.operations]
    assert told == [("read", 1), ("write", 2), ("write", 1)]
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.HOLDER, ns(30))
    assert (finding.time_ns, finding.length_ns) == (ns(131), ns(30))
    assert note(finding) == ""


CHAIN = """
    1 acquire 0-1
    1 write 2-3 a base={first} seq=1
    1 release 4-5
    2 acquire 6-7
    2 write 8-9 b base=a seq=2
    2 release 10-11
    3 acquire 12-13
    3 write 14-15 c base={third} seq=3
    3 release 16-17"""

ACCEPTED = {
    "each based on the one before": CHAIN.format(first="null", third="b"),
    "the first value was there before": CHAIN.format(first="zero", third="b"),
    "the base is what the process had read": """
        1 acquire 0-1
        1 read 1-2 seq=1 = null
        1 write 2-3 a seq=2
        1 release 4-5
        2 acquire 6-7
        2 read 7-8 seq=3 = a
        2 write 8-9 b seq=4""",
    "read once, written twice": """
        1 acquire 0-1
        1 read 1-2 seq=1 = null
        1 write 2-3 a seq=2
        1 write 4-5 b seq=3
        1 write 6-7 c seq=4""",
    "blind writes replace what is there": """
        1 acquire 0-1
        1 write 2-3 a seq=1
        1 release 4-5
        2 acquire 6-7
        2 write 8-9 b seq=2""",
    "a read of an earlier hold is not what a write is based on": """
        1 acquire 0-1
        1 read 1-2 seq=1 = null
        1 release 4-5
        2 acquire 6-7
        2 write 8-9 b seq=2
        2 release 10-11
        1 acquire 12-13
        1 write 14-15 c seq=3""",
    "a renewal is no read": """
        1 acquire 0-1
        1 write 2-3 a seq=1
        1 release 4-5
        2 acquire 6-7
        2 renew 7-8
        2 write 8-9 b seq=2""",
    "a refused write changes nothing for its process": """
        1 acquire 0-1
        1 read 1-2 seq=1 = null
        1 write 2-3! x seq=2
        1 write 4-5 a seq=3
        1 release 6-7""",
    "a value that comes back": """
        1 acquire 0-1
        1 write 2-3 on base=off seq=1
        1 write 4-5 off base=on seq=2
        1 write 6-7 on base=off seq=3
        1 write 8-9 off base=on seq=4""",
    "values that are lists": """
        1 acquire 0-1
        1 write 2-3 [1] base=null seq=1
        1 write 4-5 [1,2] base=[1] seq=2
        1 write 6-7 {"a":[1]} base=[1,2] seq=3
        1 write 8-9 {"a":[2]} base={"a":[1]} seq=4""",
    "a refused one is no update": LOST.replace("130-131", "130-131!"),
    "without numbers there is no order": LOST.replace("seq=", "token="),
    "two keys": LOST.replace("2 write", "2 write:x").replace("2 read", "2 read:x"),
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
@pytest.mark.parametrize("ledger", [True, False])
def test_accepts(lines: str, ledger: bool) -> None:
    assert lost(lines, ledger=ledger) == []


def test_no_base_and_no_read_is_a_blind_write() -> None:
    """`null` may also mean that nobody said it: only a read in the same hold makes it a version."""
    read = "2 acquire 6-7 \n 2 read 7-7.5 seq=9 = null"
    lines = CHAIN.replace("base=a", "base=null").format(first="null", third="b")
    assert lost(lines) == []
    assert len(lost(lines.replace("2 acquire 6-7", read))) == 1


def test_one_is_not_true() -> None:
    lines = CHAIN.replace("2-3 a", "2-3 1").replace("base=a", "base=true")
    assert len(lost(lines.format(first="null", third="b"))) == 1


def test_a_base_that_the_storage_never_held() -> None:
    """It knows all that it took, so whatever this was computed from, it was not the value there."""
    lines = CHAIN.format(first="null", third="elsewhere")
    assert [f.operations[0].invoke.value for f in lost(lines)] == ["a", "b"]
    assert lost(lines, ledger=False) == []  # clients know only what they were told


# --- writes that nobody saw answered ------------------------------------------------------------

UNANSWERED = """
    1 acquire 0-1
    1 write 2-3 a base=null seq=1
    1 write 4-5? x base=a
    2 acquire 110-111
    2 write 114-115 b base={base} seq=3
    2 release 116-117"""


def test_a_base_that_was_never_acknowledged_was_written_all_the_same() -> None:
    lines = UNANSWERED.format(base="x")
    assert lost(lines, ledger=False) == []
    assert lost(lines, "storage write 1 x base=a seq=2") == []


def test_a_base_that_was_never_acknowledged_and_names_no_base_of_its_own() -> None:
    read = UNANSWERED.format(base="x").replace("4-5? x base=a", "4-5? x")
    assert lost(read, ledger=False) == []  # its process had last written `a`
    blind = read.replace("1 write 2-3 a base=null seq=1", "3 write 2-3 a base=null seq=1")
    assert lost(blind, ledger=False) == []


def test_a_base_that_was_refused_proves_nothing_without_a_ledger() -> None:
    lines = UNANSWERED.format(base="x").replace("4-5? x base=a", "4-5! x base=zero")
    assert lost(lines, ledger=False) == []


def test_the_storage_need_not_know_the_base() -> None:
    lines = CHAIN.format(first="null", third="a")
    silent = [f"storage write {n} {value} seq={n}" for n, value in enumerate("abc", 1)]
    assert len(lost(lines, *silent, ledger=False)) == 1


def test_an_unacknowledged_update_without_a_rival_is_not_missed() -> None:
    lines = UNANSWERED.format(base="elsewhere")
    found = lost(lines, "storage write 1 x base=a seq=2")
    assert [f.operations[0].invoke.value for f in found] == ["a"]


def test_an_unacknowledged_update_is_lost_where_another_has_the_same_base() -> None:
    (finding,) = lost(UNANSWERED.format(base="a"), "storage write 1 x base=a seq=2")
    assert finding.operations[0].invoke.value == "x"
    assert "never learned" in note(finding)


def test_an_unacknowledged_update_that_was_not_taken_is_not_missed() -> None:
    assert lost(UNANSWERED.format(base="a")) == []


def test_a_hole_in_the_ledger_is_filled_from_the_answers() -> None:
    judgement = judged(
        CHAIN.format(first="null", third="b"),
        "storage write 1 a base=null seq=1",
        "storage write 3 c base=b seq=3",
    )
    assert judgement.findings == ()
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.doubts[0] == Doubt(DoubtCode.WRITE_NOT_REMEMBERED, "k", "n2", seq=2)


def test_the_storage_alone_knows_the_writer() -> None:
    lines = "1 acquire 0-1 \n 1 release 2-3 \n 2 acquire 4-5 \n 2 release 6-7"
    judgement = judged(
        lines, "storage write 1 a base=zero seq=1", "storage write 2 b base=zero seq=2"
    )
    assert [finding.code for finding in judgement.findings] == ["lost-update"]
    assert judgement.findings[0].holds == ()
    assert judgement.doubts[0].code is DoubtCode.WRITE_NEVER_SENT


# --- which are told, and who is to blame --------------------------------------------------------


def test_each_lost_update_is_told_once() -> None:
    lines = """
        1 acquire 0-1
        1 read 2-3 seq=1 = null
        2 acquire 110-111
        2 write 112-113 b base=null seq=2
        2 write 114-115 c base=b seq=3
        2 write 116-117 d base=c seq=4
        1 write 130-131 a base=null seq=5
        2 release 140-141"""
    found = lost(lines)
    assert [f.operations[-2].invoke.value for f in found] == ["b", "c", "d"]
    assert {f.operations[-1].invoke.value for f in found} == {"a"}


def test_what_was_built_on_again_is_not_lost() -> None:
    lines = """
        1 acquire 0-1
        1 write 2-3 a base=null seq=1
        2 acquire 110-111
        2 write 112-113 b base=null seq=2
        1 write 130-131 c base=a seq=3"""
    (finding,) = lost(lines)
    assert [o.invoke.value for o in finding.operations] == ["b", "c"]


def test_the_lost_one_may_be_the_earlier_holders() -> None:
    lines = """
        1 acquire 0-1
        1 read 2-3 seq=1 = null
        2 acquire 110-111
        2 read 112-113 seq=2 = null
        1 write 114-115 a seq=3
        2 write 116-117 b seq=4
        2 release 140-141
        1 release 142-143"""
    (finding,) = lost(lines)
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert finding.operations[-2].invoke.value == "a"
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.HOLDER, ns(14))


def test_two_whose_answers_came_in_the_other_order() -> None:
    lines = """
        1 acquire 0-150
        2 acquire 120-121
        2 write 122-123 b base=zero seq=1
        1 write 152-153 a base=zero seq=2
        1 release 160-161
        2 release 170-171"""
    (finding,) = lost(lines)
    assert [hold.process for hold in finding.holds] == [1, 2]
    assert finding.blame.who is Culprit.HOLDER


def test_a_holder_that_overwrote_itself_cannot_blame_the_lock() -> None:
    (finding,) = lost(
        "1 acquire 0-1 \n 1 write 2-3 a base=zero seq=1 \n 1 write 4-5 b base=zero seq=2"
    )
    assert finding.blame.who is Culprit.CLIENT
    assert len(finding.holds) == 1
    assert "its own update" in note(finding)


def test_a_client_that_did_not_look_cannot_blame_the_lock() -> None:
    (finding,) = lost(CHAIN.format(first="null", third="a"))
    assert finding.blame.who is Culprit.CLIENT
    assert [hold.process for hold in finding.holds] == [2, 3]


def test_a_client_without_the_lock_cannot_blame_it() -> None:
    lines = CHAIN.format(first="null", third="a").replace("3 acquire 12-13", "3 acquire 12-13!")
    (finding,) = lost(lines)
    assert finding.blame.who is Culprit.CLIENT
    assert "without the lock" in note(finding)


def test_the_machine_is_the_machine_only_without_a_guard() -> None:
    (finding,) = lost("stall n1 20-129", LOST)
    assert (finding.blame.who, finding.effect) == (Culprit.MACHINE, Verdict.UNKNOWN)
    (finding,) = lost("stall n1 20-129", LOST, guard="cas")
    assert finding.effect is Verdict.VIOLATION


@pytest.mark.parametrize("guard", ["none", "fence", "cas"])
def test_guards(guard: str) -> None:
    (finding,) = lost(LOST, guard=guard)
    assert finding.effect is Verdict.VIOLATION


def test_overwriters_by_definition() -> None:
    parents = [-1, 0, 1, 0, 3, -1, 2, 6]

    def descends(j: int, i: int) -> bool:
        return j == i or (j >= 0 and descends(parents[j], i))

    expected = {
        i: next(j for j in range(i + 1, 8) if not descends(j, i))
        for i in range(8)
        if not all(descends(j, i) for j in range(i, 8))
    }
    assert _overwriters(parents) == expected


@pytest.mark.parametrize(("shared", "permits"), [("shared=true", 1), ("", 2)])
def test_a_lock_that_lets_both_in_is_not_to_blame(shared: str, permits: int) -> None:
    (finding,) = lost(
        f"""
        1 acquire 0-1 {shared}
        2 acquire 2-3 {shared}
        1 write 4-5 a base=zero seq=1
        2 write 6-7 b base=zero seq=2""",
        permits=permits,
    )
    assert finding.blame.who is Culprit.CLIENT
    assert "lets both in" in note(finding)


# --- who is to blame, and how late it was -------------------------------------------------------

DONE_BEFORE = """
    1 acquire 0-1
    1 read 2-3 seq=1 = null
    1 write 4-{done} a seq=2
    2 acquire 20-30
    2 read 31-32 seq=3 = null
    2 write 33-34 b seq=4
    2 release 35-36"""


@pytest.mark.parametrize(
    ("done", "who"),
    [
        ("29", Culprit.CLIENT),  # it was there to be read
        ("30", Culprit.SERVICE),  # equal times are concurrent
        ("31", Culprit.SERVICE),
    ],
)
def test_what_was_done_before_the_other_one_was_let_in(done: str, who: Culprit) -> None:
    (finding,) = lost(DONE_BEFORE.format(done=done))
    assert finding.blame.who is who
    if who is Culprit.CLIENT:
        assert (finding.blame.by_ns, finding.length_ns) == (0, 0)
        assert finding.blame.promised_until_ns == ns(100)


def test_within_one_hold_nobody_came_too_late() -> None:
    """The client read it once, and overwrote what it had written itself."""
    lines = CHAIN.replace("2 acquire", "1 acquire").replace("2 write", "1 write")
    lines = lines.replace("2 release", "1 release").replace("base=a", "base=other")
    (finding,) = lost(lines.format(first="null", third="b"))
    assert (finding.blame.who, finding.blame.by_ns) == (Culprit.CLIENT, 0)
    assert finding.length_ns == 0
    assert len(finding.holds) == 2


def test_a_write_in_time_is_not_late() -> None:
    early = LOST.replace("110-111", "10-11").replace("112-113", "12-13").replace("114-", "14-")
    early = early.replace("14-115", "14-15").replace("116-117", "16-17").replace("130-131", "30-31")
    (finding,) = lost(early)
    assert (finding.blame.who, finding.length_ns) == (Culprit.SERVICE, 0)


def test_without_a_lease_nothing_was_late() -> None:
    (finding,) = lost(LOST, ttl_ms=None)
    assert finding.length_ns == 0


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (CHAIN.format(first="null", third="b"), (3, 0)),
        (CHAIN.format(first="null", third="a"), (3, 1)),
        (CHAIN.format(first="zero", third="zero"), (3, 2)),
        # Overwritten again and again, it is lost once.
        (f"{CHAIN.format(first='zero', third='zero')}\n4 write 22-23 d base=zero seq=4", (4, 3)),
        # Nobody was told that it had been accepted: no update that anybody counts on.
        (LOST.replace("1 write 130-131 a seq=4", "1 write 130-131? a seq=4"), (1, 1)),
        (LOST, (2, 1)),
        (LOST.replace("1 write 130-131 a", "1 write 130-131! a"), (1, 0)),
    ],
)
def test_how_many_acknowledged_updates_are_lost(lines: str, told: tuple[int, int]) -> None:
    counts = judged(lines, ledger=True, ttl_ms=100).counts
    assert (counts.updates_acknowledged, counts.updates_lost) == told
