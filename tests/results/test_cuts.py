"""Who was cut off from whom, in words: each pair once, and alike ones together."""

from __future__ import annotations

import json

import pytest

from lockcheck.checker import judge
from lockcheck.results.report.timeline import timeline
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.story.steps.cuts import cut_apart
from tests.checker.dsl import history
from tests.results import story
from tests.results.test_effects import OUTLIVED


def both_ways(*pairs: str) -> str:
    of_it = [pair.split("-") for pair in pairs]
    return ",".join(f"{a}>{b},{b}>{a}" for a, b in of_it)


@pytest.mark.parametrize(
    ("struck", "links", "words"),
    [
        ("n1", "", ""),
        ("n1", both_ways("n1-r1", "n1-r2"), "n1 from r1 and r2"),
        ("n1", "n1>r1,n1>r2", "n1 to r1 and r2"),
        ("n1", "r1>n1,r2>n1", "r1 and r2 to n1"),
        ("r1,n1", both_ways("r1-r2", "r1-n2", "n1-r2"), "r1 from n2 and r2; n1 from r2"),
        (  # two servers and their clients from the others
            "r1,r2,n1,n2",
            both_ways("r1-r3", "r2-r3", "n1-r3", "n2-r3"),
            "r1, r2, n1 and n2 from r3",
        ),
        (  # around a ring
            "r1,r2,r3,r4,r5",
            both_ways("r3-r1", "r1-r4", "r2-r4", "r5-r2", "r3-r5"),
            "r1 from r3 and r4; r2 from r4 and r5; r3 from r5",
        ),
    ],
)
def test_who_was_cut_off_from_whom(struck: str, links: str, words: str) -> None:
    told = f"links={links}" if links else ""
    (fault,) = history(f"fault odd {struck} 5-120 effect=cuts {told}").faults
    assert cut_apart(fault) == words


def test_it_is_told_and_drawn() -> None:
    links = both_ways("r1-r2", "r1-n1")
    given = history(OUTLIVED, f"fault odd r1 5-120 effect=cuts links={links}", ttl_ms=100)
    judgement = judge(given)
    steps = story.tell(given, judgement.findings[0]).steps
    assert any(s.text.startswith("odd began: r1 from n1 and r2, confirmed") for s in steps)
    # it was not struck itself
    assert "(odd of r1)" in story.tell(given, judgement.findings[0]).blame
    (band,) = json.loads(timeline(Narrative(judgement), [], []).json)["faults"]
    assert band["apart"] == "r1 from n1 and r2"
