"""A lock that is refused although it is free, and granted later; and those that are only busy."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Case, Culprit, Finding, Verdict, judge
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.judges.denied import find
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import codes, history, ns
from tests.checker.judges.test_stuck import refusals

LATER = "7 acquire 3000-3001 \n 7 release 3002-3003"
RELEASED = "1 acquire 0-1 \n 1 release 5-6"


def found(*lines: str, **terms: Any) -> list[Finding]:
    values: dict[str, Any] = {"ttl_ms": 100, "backend": "redis"} | terms
    return list(find(Case(history(*lines, LATER, **values))))


DENIED = {
    "released": RELEASED,
    "its holder died": "1 acquire 0-1",
    "the release failed": "1 acquire 0-1 \n 1 release 5-6!",
    "never granted before": "",
    "one that was never answered had asked long ago": f"{RELEASED} \n 5 acquire 7-",
    "a fault that was healed in time": f"{RELEASED} \n fault pause r1 5-900",
    "a fault long after": f"{RELEASED} \n fault pause r1 2800-2950",
    "one who waits": f"{RELEASED} \n 8 acquire 2700-3100!",
    "it has a lease of its own": "1 acquire 0-1 ttl_ms=300 \n 1 release 5-6",
    "a clock that was set right before its last hold": (
        "fault clock r1 0-1 effect=skews \n 1 acquire 2-3 \n 1 release 5-6"
    ),
    "a wrong clock of which nobody knows the effect": f"{RELEASED} \n fault pause r1 1-2",
}
BUSY = {
    "its holder renews": "1 acquire 0-1 \n" + "\n".join(
        f"1 renew {at}-{at + 1}" for at in range(50, 3000, 50)
    ),
    "held meanwhile": f"{RELEASED} \n 5 acquire 1850-1851 \n 5 release 2400-2401",
    "perhaps held meanwhile": f"{RELEASED} \n 5 acquire 1850-1851?",
    "one that was never answered may have it": f"{RELEASED} \n 5 acquire 1850-",
    "a long lease": "1 acquire 0-1 ttl_ms=2000",
    "a fault meanwhile": f"{RELEASED} \n fault pause r1 1900-2000",
    "a fault that was never healed": f"{RELEASED} \n fault pause r1 1600-",
    "a clock that was wrong when it was held": f"{RELEASED} \n fault clock r1 2-900 effect=skews",
    "it was granted after a long wait": f"{RELEASED} \n 8 acquire 1500-2999",
}  # fmt: skip


@pytest.mark.parametrize("lines", DENIED.values(), ids=DENIED)
def test_rejects(lines: str) -> None:
    (finding,) = found(lines, refusals())
    assert (finding.code, finding.blame.who) == ("denied", Culprit.SERVICE)
    assert finding.effect is Verdict.VIOLATION
    assert len(finding.operations) == 5


@pytest.mark.parametrize("lines", BUSY.values(), ids=BUSY)
def test_accepts(lines: str) -> None:
    assert found(lines, refusals()) == []


@pytest.mark.parametrize(
    ("refused", "number"),
    [
        (refusals(until=1900, every=50), 0),  # for too short a time
        (refusals(every=600), 0),  # too few
        (refusals(mark="?"), 0),
        (refusals(more="refused=unavailable"), 0),
        (refusals(more="refused=gone"), 0),
        (refusals(), 1),
    ],
)
def test_what_counts_is_what_counts_for_a_stuck_lock(refused: str, number: int) -> None:
    assert len(found(RELEASED, refused)) == number


def test_each_time_is_one() -> None:
    again = "1 acquire 3100-3101 \n 1 release 3102-3103"
    first, second = found(RELEASED, refusals(), again, refusals(4000, 6000), "8 acquire 6100-6101")
    assert (first.time_ns, second.time_ns) == (ns(6), ns(3103))
    assert first.length_ns == ns(2905 - 6)
    assert "20 requests were refused from then on, for 2.899 s" in note(first)


def test_up_to_the_end_it_is_stuck_instead() -> None:
    told = history(RELEASED, refusals(), ttl_ms=100, backend="redis")
    assert codes(judge(told)) == ["stuck"]
    assert codes(judge(history(RELEASED, refusals(), LATER, ttl_ms=100))) == ["denied"]


def test_a_log_may_lack_a_client() -> None:
    lines = RELEASED, refusals(), LATER
    judgement = judge(history(*lines, ttl_ms=100, partial=True))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.doubts == (Doubt(DoubtCode.MAYBE_UNSEEN, "k", length_ns=ns(2899)),)
    from_before = judge(history(refusals(), LATER, ttl_ms=100, partial=True))
    assert from_before.findings == ()


@pytest.mark.parametrize("guard", ["none", "fence", "cas"])
def test_no_guard_makes_up_for_it(guard: str) -> None:
    (finding,) = found(RELEASED, refusals(), guard=guard)
    assert finding.effect is Verdict.VIOLATION


def test_what_the_machine_explains_is_unknown() -> None:
    (finding,) = found(RELEASED, refusals(until=2100), "stall n2 1000-2950")
    assert (finding.blame.who, finding.effect) == (Culprit.MACHINE, Verdict.UNKNOWN)


NODES: dict[str, Any] = {"lock_nodes": ("r1", "r2", "r3"), "ttl_ms": 1000}
CUT = "fault partition r1 100-30000 effect=cuts"
END = "7 acquire 31000-31001"


def out(since: int = 1000, until: int = 28000, more: str = "refused=unavailable") -> str:
    return refusals(since, until, 500, more=more)


UNSERVED = {
    "with a majority": (RELEASED, CUT, out()),
    "by whatever words": (RELEASED, CUT, out(), out(1100, 28000, "refused=held")),
    "without a fault": (RELEASED, out()),
    "a client is cut off, others are not": (
        RELEASED, CUT, "fault partition n3 100-30000 effect=cuts", out()
    ),
}  # fmt: skip
SERVED = {
    "for too short a time": (RELEASED, CUT, out(until=22000)),
    "no majority": (RELEASED, CUT, "fault kill r2 100-30000 effect=ends", out()),
    "another majority had to be found": (
        RELEASED, CUT, "fault kill r2 14000-14001 effect=ends", out()
    ),
    "no majority meanwhile": (RELEASED, CUT, "fault kill r2 14000-15000 effect=ends", out()),
    "granted meanwhile": (RELEASED, CUT, out(), "8 acquire 14000-14001 \n 8 release 14002-14003"),
    "perhaps granted meanwhile": (RELEASED, CUT, out(), "8 acquire 14000-14001?"),
    "a wrong clock": (RELEASED, CUT, "fault clock r2 100-30000 effect=skews", out()),
    "nowhere in particular": (RELEASED, CUT, "fault odd - 100-30000", out()),
    "all that asked were cut off": (
        RELEASED, CUT, "fault partition n2,n3,n4 100-30000 effect=cuts", out()
    ),
    "all but one": (RELEASED, CUT, "fault partition n2,n3 100-30000 effect=cuts", out()),
    "of a client's own": (RELEASED, CUT, out(more="refused=gone")),
    "held by one that renews": (
        "1 acquire 0-1", *(f"1 renew {n}-{n + 1}" for n in range(500, 30000, 500)), CUT, out()
    ),
}  # fmt: skip


@pytest.mark.parametrize("lines", UNSERVED.values(), ids=UNSERVED)
def test_a_majority_grants_nothing(lines: tuple[str, ...]) -> None:
    (finding,) = list(find(Case(history(*lines, END, **NODES))))
    assert finding.effect is Verdict.VIOLATION
    assert finding.operations


@pytest.mark.parametrize("lines", SERVED.values(), ids=SERVED)
def test_a_lock_that_could_not_be_granted(lines: tuple[str, ...]) -> None:
    assert list(find(Case(history(*lines, END, **NODES)))) == []


def test_a_lock_whose_servers_are_not_known_has_no_majority() -> None:
    lines = UNSERVED["with a majority"]
    assert list(find(Case(history(*lines, END, ttl_ms=1000)))) == []


def test_up_to_the_end_of_a_run_it_is_a_doubt() -> None:
    healed = "fault partition r1 10-500 effect=cuts"
    assert list(find(Case(history(RELEASED, healed, out(), **NODES)))) == []
