"""Whatever the judges may say one day: words, page, terminal and summary can say it too."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import TypeVar

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockcheck.checker.finding import (
    Blame,
    Code,
    Culprit,
    Definition,
    Finding,
    Judgement,
    Verdict,
)
from lockcheck.cli.terminal import print_verdict
from lockcheck.history import History
from lockcheck.results import story
from lockcheck.results.facts import RunFacts
from lockcheck.results.summary import verdict_summary
from tests.checker.dsl import history
from tests.results.made_up import judgement, somebody_elses
from tests.results.test_report import report

T = TypeVar("T")

LINES = """
    1 acquire 0-2 token=4 ttl_ms=100
    1 renew 50-51
    2 acquire 40-41!
    2 acquire 120-130 token=3 ttl_ms=100
    1 write 131-132 a base=b seq=1
    1 cas 133-134! [1,2]
    1 add 135-136? 7
    2 run 137-138 job-1
    2 write 140-141 b seq=2
    1 release 150-151 = {"removed": 1, "blind": true}
    1 read 152-153 = b
    2 release 160-190
    3 acquire:j 161-162
    3 run 163-164 job-1
    3 acquire:k 170-
    fault pause n1 60-110
    fault kill n2 150-
    stall n2 100-120"""
OURS = history(LINES, backend="redis", workload="register", ttl_ms=100)
GUARDED = history(LINES, backend="redis", workload="register", guard="fence", permits=2)
ELSEWHERE = somebody_elses(history(LINES))
NO_LOCK = somebody_elses(history("1 write 0-1 a", "2 read 2-3 = b", "2 cas 4-5 [1]", "1 x 6-9?"))
TEXTS = st.sampled_from(["", "k", "[red]x[/]", "a sentence", "</script>", "é\u202e\x1b[2J\ud800"])
TIMES = st.integers(-(10**12), 10**15) | st.sampled_from([0, 120_000_000])


def some(items: Sequence[T], most: int = 6) -> st.SearchStrategy[tuple[T, ...]]:
    if not items:
        return st.just(())
    return st.lists(st.sampled_from(items), max_size=most).map(tuple)


def perhaps(items: Sequence[T]) -> st.SearchStrategy[T | None]:
    return st.none() | st.sampled_from(items) if items else st.none()


def blames(of: History) -> st.SearchStrategy[Blame]:
    return st.builds(
        Blame,
        who=st.sampled_from(Culprit),
        by_ns=TIMES,
        promised_until_ns=st.none() | TIMES,
        fault=perhaps(of.faults),
        stalls=some(of.stalls),
        release=perhaps(of.operations),
        released_by=perhaps(of.holds),
    )


def findings(of: History) -> st.SearchStrategy[Finding]:
    return st.builds(
        Finding,
        code=st.sampled_from(Code),
        key=TEXTS,
        time_ns=TIMES,
        effect=st.sampled_from(Verdict),
        holds=some(of.holds),
        operations=some(of.operations, most=20),
        length_ns=TIMES,
        blame=blames(of),
        note=TEXTS,
        steps=some(["", "a sentence", "process 1 read", "[bold]"], most=40),
        otherwise=TEXTS,
    )


def definitions() -> st.SearchStrategy[Definition]:
    overlaps = st.none() | st.integers(0, 3)
    verdicts = st.sampled_from(Verdict)
    return st.builds(Definition, TEXTS, TEXTS, TEXTS, verdicts, overlaps, TEXTS)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), of=st.sampled_from([OURS, GUARDED, ELSEWHERE, NO_LOCK]))
def test_any_finding_can_be_told(data: st.DataObject, of: History) -> None:
    told = sorted(data.draw(st.lists(findings(of), max_size=6)), key=lambda f: f.time_ns)
    compared = tuple(data.draw(st.lists(definitions(), max_size=4)))
    judged = judgement(of, *told, definitions=compared)
    for incident in story.incidents(told):
        telling = story.tell_incident(of, incident)
        assert telling.title.strip()
        assert telling.blame.strip()
        assert telling.prevention.strip()
        assert all(step.text.isprintable() and step.who for step in telling.steps)
        assert len(telling.steps) <= story.MOST_STEPS
        assert len(telling.harm) <= len(Code)
    assert sum(len(i.findings) for i in story.incidents(told)) == len(told)
    assert story.headline(of, judged).isprintable()
    page = report(of, judgement=judged)
    assert page.count("<script") == 2
    assert "\x1b" not in page
    assert "\x1b" not in last_words(of, judged)
    msgspec.json.encode(verdict_summary(judged))


def last_words(of: History, judged: Judgement) -> str:
    facts = RunFacts(
        run_id="r1", started_at="", plan=(), versions=(), rerun_command="", check_command=""
    )
    with contextlib.redirect_stdout(io.StringIO()) as said:
        print_verdict(of, judged, None, facts)
    return said.getvalue()
