"""Work that was done without having been granted the lock."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lockcheck.checker import Case, Culprit, Finding, Verdict
from lockcheck.checker.judges.unlocked_section import find
from lockcheck.history import History
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import events, history, judged, ns


def found(*lines: str, **terms: Any) -> list[Finding]:
    return list(find(Case(history(*lines, **terms))))


HELD = "1 acquire 0-1 \n 1 write 2-3 a \n 1 release 50-51 \n"
ACCEPTED = {
    "under the lock": HELD,
    "refused, and it did nothing": HELD + "2 acquire 10-11!",
    "refused, then granted": HELD + "2 acquire 10-11! \n 2 acquire 60-61 \n 2 write 62-63 b",
    "a reader without a lock": HELD + "2 acquire 10-11! \n 2 read 12-13 = a \n 3 read 12-13 = a",
    "the storage refused it": HELD + "2 acquire 10-11! \n 2 write 12-13! b",
    "nobody knows whether it was written": HELD + "2 acquire 10-11! \n 2 write 12-13? b",
    "never answered": HELD + "2 acquire 10-11! \n 2 write 12- b",
    "nobody knows whether it was granted": HELD + "2 acquire 10-11? \n 2 write 12-13 b",
    "after its own hold": HELD + "1 write 60-61 b",
    "refused while it held it, and it wrote late": """
        1 acquire 0-1
        1 acquire 2-3!
        1 release 4-5
        1 write 6-7 b""",
    "nobody locks this key": HELD + "2 write:other 10-11 b",
    "what sets things up": "9 write 0-1 zero \n 1 acquire 2-3 \n 1 write 4-5 a",
    "nobody works under the lock": "1 acquire 0-1 \n 1 release 2-3 \n 2 write 10-11 b",
    "retired after an answer that nobody knows, and it goes on": """
        1 acquire 0-1
        1 renew 2-3?
        6@n1 write 4-5 a
        2 acquire 300-301
        2 write 302-303 b""",
}
REJECTED = {
    "refused": HELD + "2 acquire 10-11! \n 2 write 12-13 b",
    "refused, a cas": HELD + "2 acquire 10-11! \n 2 cas 12-13 [1,2]",
    "refused, an add": HELD + "2 acquire 10-11! \n 2 add 12-13 4",
    "refused, a job": HELD + "2 acquire 10-11! \n 2 run 12-13 job",
    "granted once, refused now": "2 acquire 0-1 \n 2 release 2-3 \n"
    "1 acquire 5-6 \n 2 acquire 10-11! \n 2 write 12-13 b \n 1 release 20-21",
    "never asked, while others work under the lock": HELD + "2 write 12-13 b",
}


@pytest.mark.parametrize("lines", ACCEPTED.values(), ids=ACCEPTED)
def test_accepts(lines: str) -> None:
    assert found(lines) == []


@pytest.mark.parametrize("lines", REJECTED.values(), ids=REJECTED)
def test_rejects(lines: str) -> None:
    (finding,) = found(lines)
    assert finding.operations[-1].process == 2
    assert (finding.time_ns, finding.blame.who) == (ns(12), Culprit.CLIENT)
    assert (finding.length_ns, finding.blame.by_ns) == (0, 0)
    assert {operation.process for operation in finding.operations} == {2}
    assert "n1 certainly held it" in note(finding)


def test_work_in_the_moment_of_the_loss_was_done_under_the_lock() -> None:
    held = "1 acquire 0-1 \n 1 write {}-5 a \n 1 lost 3 \n 2 write 12-13 b"
    assert len(found(held.format(3))) == 1
    assert found(held.format(3.1)) == []


def test_each_of_them_is_told() -> None:
    lines = HELD + "2 acquire 10-11! \n 2 write 12-13 b \n 2 write 60-61 c \n 2 write 62-63! d"
    first, second = found(lines)
    assert (first.time_ns, second.time_ns) == (ns(12), ns(60))
    assert note(second) == ""
    assert [o.process for o in first.operations] == [2, 2]


def test_whether_it_ever_asked() -> None:
    (refused,) = found(HELD, "2 acquire 10-11! error=held", "2 write 12-13 b")
    assert "never asked" not in note(refused)
    (never,) = found(HELD, "2 write 12-13 b")
    assert note(never).startswith("It never asked for it.")


@pytest.mark.parametrize(
    ("guard", "token", "effect"),
    [
        ("none", None, Verdict.VIOLATION),
        ("cas", None, Verdict.OK),
        ("fence", None, Verdict.VIOLATION),  # a fence refuses whoever has no token to show
        ("fence", 3, Verdict.OK),
    ],
)
def test_behind_a_guard(guard: str, token: int | None, effect: Verdict) -> None:
    told = events(HELD + "2 acquire 10-11! \n 2 write 12-13 b", guard=guard)
    (write,) = (e for e in told if e.time == ns(12))
    shown = [msgspec.structs.replace(e, token=token) if e is write else e for e in told]
    (finding,) = find(Case(History.of(shown)))
    assert finding.effect is effect


def test_it_counts() -> None:
    assert judged(HELD, "2 acquire 10-11! \n 2 write 12-13 b").verdict is Verdict.VIOLATION
