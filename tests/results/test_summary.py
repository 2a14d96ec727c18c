"""verdict.json: what a program wants to know of each finding."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from lockcheck.checker import judge
from lockcheck.checker.finding import Code, Definition, Verdict
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.summary import (
    MOST_EVIDENCE,
    FindingSummary,
    IncidentSummary,
    StepSummary,
    VerdictSummary,
    verdict_summary,
)
from tests.checker.dsl import history
from tests.results.made_up import deadlock, found, judgement, not_linearizable
from tests.results.test_incidents import meets_many


def summary(*args: Any, **more: Any) -> dict[str, Any]:
    told = verdict_summary(Narrative(judgement(*args, **more)))
    read: dict[str, Any] = json.loads(msgspec.json.encode(told))
    return read


def test_a_finding_with_all_that_it_stands_on() -> None:
    case = deadlock()
    [told] = summary(case.history, case.finding)["findings"]
    assert told["code"] == "deadlock"
    assert told["blame"] == "client"
    assert told["nodes"] == ["n1", "n2", "n3"]
    assert told["steps"][0].startswith("n1 held 'k1' since 0.001 s and asked for 'k2'")
    assert told["holds"][0] == {
        "node": "n1", "process": 1, "key": "k1", "start_ms": 1.0, "end_ms": 10.0, "token": None,
    }  # fmt: skip
    assert told["operations"][0] == {
        "node": "n1", "process": 1, "f": "acquire", "key": "k2", "start_ms": 10.0, "end_ms": None,
        "outcome": "none",
    }  # fmt: skip


def test_a_finding_without_holds_names_who_did_it() -> None:
    case = not_linearizable()
    [told] = summary(case.history, case.finding)["findings"]
    assert told["holds"] == []
    assert told["nodes"] == ["process 0", "process 1", "process 2", "process 3"]
    assert [o["outcome"] for o in told["operations"]] == ["ok"] * 4


def test_very_much_evidence_is_cut() -> None:
    told = history(*[f"1 write {n}-{n + 0.5} {n}" for n in range(100)])
    case = found(Code.NOT_LINEARIZABLE, told, operations=tuple(range(100)))
    [one] = summary(told, case.finding)["findings"]
    assert len(one["operations"]) == MOST_EVIDENCE


def test_both_definitions_are_there() -> None:
    told = Definition("k", "mutex", "sweep", Verdict.VIOLATION, 0, "so it is")
    read = summary(history("1 acquire 0-1"), definitions=(told,))
    assert read["definitions"] == [
        {
            "key": "k", "model": "mutex", "engine": "sweep", "linearizable": "violation",
            "overlaps": 0,
            "sentence": "The two checks disagree: no two clients held it at once, yet no order "
            "explains the answers: so it is.",
        }
    ]  # fmt: skip


def test_it_tells_what_the_report_tells() -> None:
    of = meets_many()
    narrative = Narrative(judge(of))
    told = json.loads(msgspec.json.encode(verdict_summary(narrative)))
    assert (told["schema"], told["verdict"], told["incidents_in_all"]) == (1, "violation", 1)
    assert told["detail"] == narrative.detail
    [incident] = told["incidents"]
    [(_, story)] = narrative.stories(1)
    assert incident["outcome"] == "data damaged"
    assert incident["codes"] == {"overlap": 60, "stale-write": 1, "lost-update": 60}
    assert [step["what"] for step in incident["steps"]] == [step.text for step in story.steps]
    assert (incident["blame"], incident["prevention"]) == (story.blame, story.prevention)


def test_every_field_is_documented() -> None:
    said = Path("docs/verdicts.md").read_text().partition("## verdict.json")[2]
    named = set(re.findall(r"`(\w+)`", said))
    of = (VerdictSummary, IncidentSummary, StepSummary, FindingSummary)
    assert {field for kind in of for field in kind.__struct_fields__} <= named
