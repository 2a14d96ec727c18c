"""What is said of a fault goes by what it did to its nodes, and not by its name."""

from __future__ import annotations

import json

import pytest

from lockcheck.checker import Judgement, judge
from lockcheck.history import History
from lockcheck.results.report.timeline import timeline
from lockcheck.results.story.narrative import Narrative
from lockcheck.words import fault_name
from tests.checker.dsl import history, ns
from tests.results import story
from tests.results.test_report import report, words

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
HAPPENED = {
    "stops": "n1 was paused",
    "ends": "its process was ended",
    "cuts": "it was cut off",
    "skews": "its clock was wrong",
    "slows": "it was slowed down",
    "starves": "its disk took no more writes",
    "": "odd of n1",
}
# What each holder could have done, and what none can.
CURES = {
    "stops": "a client that does not run cannot notice",
    "ends": "what a client sent before its end",
    "cuts": "stop when the lease is over and no renewal has been answered",
    "skews": "by a monotonic clock, which nobody sets",
    "slows": "look at its own monotonic clock before each step",
    "starves": "may hang, or end, in the middle of its work",
    "": "it cannot stop a client whose lease has run out",
}


def told(lines: str, effect: str, nodes: str = "n1", more: str = "") -> tuple[History, Judgement]:
    known = f"effect={effect}" if effect else ""
    given = history(lines, f"fault odd {nodes} 5-120 {known} {more}", ttl_ms=100)
    return given, judge(given)


@pytest.mark.parametrize("effect", HAPPENED)
def test_a_holder_that_outlived_its_lease(effect: str) -> None:
    given, judgement = told(OUTLIVED, effect)
    slept = effect == "stops"
    assert ("slept through its lease" in story.detail(judgement)) == slept
    assert HAPPENED[effect] in story.tell(given, judgement.findings[0]).blame
    cure = story.tell(given, judgement.findings[0]).prevention
    assert CURES[effect] in cure
    assert ("does not run" in cure) == (effect == "stops")
    assert "a guard at" in cure
    assert "{" not in cure


@pytest.mark.parametrize(
    ("effect", "cure"),
    [
        ("skews", "clock that can jump"),
        ("ends", "must not come back without the locks"),
        ("cuts", "cut off from the majority"),
        ("stops", "a defect of the lock, and not of its use"),
        ("slows", "a defect of the lock, and not of its use"),
        ("starves", "ends, or refuses, where that fails"),
        ("", "a defect of the lock, and not of its use"),
    ],
)
def test_a_service_that_broke_its_promise(effect: str, cure: str) -> None:
    given, judgement = told(LET_IN_EARLY, effect, "r1,r2")
    assert story.tell(given, judgement.findings[0]).blame.endswith("odd of r1 and r2.")
    assert cure in story.tell(given, judgement.findings[0]).prevention


@pytest.mark.parametrize(
    ("effect", "over"),
    [
        ("stops", "it runs again"),
        ("ends", "it is there again"),
        ("cuts", "it can be reached again"),
        ("skews", "its clock is right again"),
        ("slows", "it is as fast as before"),
        ("starves", "its disk takes writes again"),
        ("", "all is as before"),
    ],
)
def test_what_is_different_when_it_is_healed(effect: str, over: str) -> None:
    given, judgement = told(OUTLIVED, effect)
    (healed,) = (s for s in story.tell(given, judgement.findings[0]).steps if "healed" in s.text)
    assert healed.text == f"odd healed: {over}, still believing that it holds k"
    assert healed.time_ns == ns(120)


@pytest.mark.parametrize(
    ("effect", "ms"), [("stops", 115), ("ends", 120), ("cuts", 120), ("", 120)]
)
def test_who_does_something_runs_again(effect: str, ms: int) -> None:
    """Of one that was only cut off it says nothing."""
    given, judgement = told(f"{OUTLIVED} \n 1 read 115-116 = 7", effect)
    (healed,) = (s for s in story.tell(given, judgement.findings[0]).steps if "healed" in s.text)
    assert healed.time_ns == ns(ms)


def test_several_nodes_and_when_it_took_effect() -> None:
    given, judgement = told(OUTLIVED, "cuts", "n1,n7", "since=9.5 proven=80")
    steps = [s for s in story.tell(given, judgement.findings[0]).steps if "odd" in s.text]
    assert [(s.time_ns, s.who) for s in steps[:2]] == [(ns(5), "n1 and n7"), (ns(80), "n1 and n7")]
    assert steps[0].text == "odd began, and took effect 4.5 ms later"
    assert steps[1].text.startswith("odd confirmed")
    (fault,) = given.faults
    assert fault_name(fault) == "odd of n1 and n7"


@pytest.mark.parametrize(("effect", "own"), [("stops", 0), ("ends", 0), ("", 0), ("cuts", 1)])
def test_whose_a_stall_is(effect: str, own: int) -> None:
    given, _ = told(f"{OUTLIVED} \n stall n1 10-100", effect, "n7,n1")
    assert len(story.own_stalls(given, given.stalls)) == own


@pytest.mark.parametrize(
    ("nodes", "more", "lanes", "since"),
    [
        ("n1", "", ["n1"], 5),
        ("n1,n2,r1", "", ["n1", "n2", "r1"], 5),
        ("n2,r1", "since=7 proven=90", ["n2", "r1"], 7),
        ("-", "", ["cluster"], 5),
    ],
)
def test_a_band_in_the_lane_of_each_node(
    nodes: str, more: str, lanes: list[str], since: float
) -> None:
    _, judgement = told(OUTLIVED, "cuts", nodes, more)
    drawn = timeline(Narrative(judgement), [], [])
    data = json.loads(drawn.json)
    (band,) = data["faults"]
    assert [data["lanes"][number]["name"] for number in band["lanes"]] == lanes
    assert (band["start"], band["since"]) == (5000, since * 1000)
    assert drawn.kinds >= {"fault"}


IN_FLIGHT = """
    1 acquire:k1 0-1
    1 write:k1 10-1610 late base=a seq=2
    2 acquire:k1 1005-1006
    2 write:k1 1009-1010 new base=a seq=1
    2 release:k1 1012-1013
    1 release:k1 1612-1613! error=not-owner"""


@pytest.mark.parametrize(
    ("fault", "title"),
    [
        ("pause n1 12-1608 effect=stops", "n1 was paused with a write to k1 under way, which"),
        ("partition n1 12-1608 effect=cuts", "n1 was cut off with a write to k1 under way, which"),
        ("partition n1 5-8 effect=cuts", "A write of n1 to k1, begun within its lease,"),
    ],
)
def test_who_had_begun_to_write_in_time_did_not_sleep_first(fault: str, title: str) -> None:
    told = history(IN_FLIGHT, f"fault {fault}", ledger=True, ttl_ms=1000)
    [incident] = story.incidents(judge(told).findings)
    said = story.incident_title(incident)
    assert said.startswith(f"{title} arrived 610 ms after ")
    assert "slept" not in said
    assert story.detail(judge(told)).count("at 1.610 s") == 1


@pytest.mark.parametrize(
    ("renewals", "late_ms"),
    [("", 82), ("1 renew:k1 160-161 ttl_ms=100", 82), ("1 renew:k1 90-91 ttl_ms=100", 0)],
    ids=["its lease ran out", "renewed when another was let in", "renewed before"],
)
def test_how_late_a_refused_write_was_by_the_promise_that_let_the_next_one_in(
    renewals: str, late_ms: float
) -> None:
    given = history(
        f"""
        1 acquire:k1 0-1 token=1 ttl_ms=100
        {renewals}
        2 acquire:k1 150-151 token=2 ttl_ms=100
        1 write:k1 181-182! late token=1 error=fenced
        2 release:k1 190-191""",
        guard="fence",
        ttl_ms=100,
    )
    [write] = story.refused_writes(given)
    assert (write.time_ns, write.late_ns) == (ns(182), ns(late_ms))
    text = words(report(given, judgement=judge(given)))
    assert ("within it" in text) == (not late_ms)
