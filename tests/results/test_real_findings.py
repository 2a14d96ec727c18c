"""Whatever the judges find in spoilt histories, words, page, terminal and summary can say."""

from __future__ import annotations

import contextlib
import io
from itertools import islice

import msgspec
import pytest

from lockcheck.checker import judge
from lockcheck.checker.finding import Code, Judgement
from lockcheck.cli.terminal import print_verdict
from lockcheck.history import History
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.summary import verdict_summary
from lockcheck.runs.facts import RunFacts
from tests.results import story
from tests.results.test_report import report
from tests.simulation.mutations.data_mutations import DATA_MUTATIONS
from tests.simulation.mutations.lock_mutations import LOCK_MUTATIONS
from tests.simulation.mutations.tape import LOCKS, Mutation, good_history

MUTATIONS = {**LOCK_MUTATIONS, **DATA_MUTATIONS}
SEEDS = range(3)
OF_EACH = 2  # spoilt versions of a history


@pytest.fixture(scope="module")
def good() -> list[History]:
    return [good_history(seed, lock) for seed in SEEDS for lock in LOCKS]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_what_is_found_can_be_told(mutation: Mutation, good: list[History]) -> None:
    told: set[str] = set()
    for history in good:
        for spoil in islice(mutation(history), OF_EACH):
            spoilt = spoil()
            judged = judge(spoilt)
            told |= {finding.code for finding in judged.findings}
            tell_all(spoilt, judged)
    assert MUTATIONS[mutation] in told


def tell_all(of: History, judged: Judgement) -> None:
    narrative = Narrative(judged)
    assert narrative.detail.isprintable()
    assert sum(len(i.findings) for i in narrative.incidents) == len(judged.findings)
    for _, told in narrative.stories(len(judged.findings)):
        sentences = (told.title, told.blame, told.prevention, *told.harm)
        assert all(said.strip() and "{" not in said for said in sentences)
        assert all(step.text.isprintable() and step.who for step in told.steps)
        assert len(told.steps) <= story.MOST_STEPS
        assert len(told.harm) <= len(Code)
    assert report(of, judgement=judged).count("<script") == 2
    assert narrative.detail.split()[0] in last_words(of, judged)
    msgspec.json.encode(verdict_summary(narrative))


def last_words(of: History, judged: Judgement) -> str:
    facts = RunFacts(
        run_id="r1", started_at="", plan=(), versions=(), rerun_command="", check_command=""
    )
    with contextlib.redirect_stdout(io.StringIO()) as said:
        print_verdict(Narrative(judged), None, facts)
    return said.getvalue()
