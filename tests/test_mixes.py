"""Right locks under three faults at once, drawn from all that there are: a short selection."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from lockcheck import nemesis
from lockcheck.nemesis import FAULTS, parse_nemesis
from lockcheck.nemesis.drawing import applicable
from lockcheck.run.resolve import resolve
from tests.running import need
from tests.tools.mixes import (
    AT_ONCE,
    OF_SEVERAL,
    RESTARTS,
    RIGHT,
    UNPROVEN,
    Mix,
    accepted_because,
    mixes,
    try_mix,
)

MANY = list(mixes(300))
FEWEST_KINDS = 3  # pause, partition and kill apply anywhere


def test_every_fault_is_drawn_alone_and_together() -> None:
    plans = [resolve(mix.config()).faults for mix in MANY[: len(RIGHT)]]
    able = {n for n, kind in FAULTS.items() for plan in plans if [*applicable(kind, plan)]}
    assert len(able) >= FEWEST_KINDS
    for number in (1, AT_ONCE):
        texts = (text for mix in MANY if len(mix.faults) == number for text in mix.faults)
        assert {text.partition(":")[0] for text in texts} == able
    assert Counter(mix.backend for mix in MANY).keys() == RIGHT.keys()
    restarted = {(mix.backend, mix.faults[0]) for mix in MANY if len(mix.faults) == 2}
    assert restarted == {(backend, words) for backend in RIGHT for words in RESTARTS}


def test_they_can_be_run_and_are_the_same_again() -> None:
    assert [resolve(mix.config()) for mix in MANY]
    assert list(mixes(300)) == MANY
    assert all(parse_nemesis(text) for mix in MANY for text in mix.faults)


def test_the_accepted_reasons_are_those_that_faults_give() -> None:
    sources = "".join(path.read_text() for path in Path(nemesis.__file__).parent.rglob("*.py"))
    for pattern in (UNPROVEN | OF_SEVERAL).values():
        for words in pattern.split("|"):
            assert re.search(words, sources), words


@pytest.mark.parametrize(
    ("faults", "code", "text", "accepted"),
    [
        (("kill",), "few-grants", "", True),
        (("kill",), "machine-stalled", "", True),
        (("kill",), "check-crashed", "", False),
        (("kill",), "maybe-released", "", False),
        (("clock",), "maybe-released", "", True),
        (("kill",), "fault-unproven", "r1 had no process to kill", True),
        (("kill",), "fault-unproven", "r1 still answers", False),
        (("clock",), "fault-unproven", "r1 does not report its uptime", False),
        (("clock", "kill"), "fault-unproven", "r1 does not report its uptime", True),
    ],
)
def test_which_doubts_are_accepted(
    faults: tuple[str, ...], code: str, text: str, *, accepted: bool
) -> None:
    assert bool(accepted_because(Mix(1, "etcd", faults), code, text)) is accepted


THREE_AT_ONCE = [mix for mix in MANY if len(mix.faults) == AT_ONCE]
SELECTED = [next(mix for mix in THREE_AT_ONCE if mix.backend == name) for name in RIGHT]
SHORT = ("redis-fenced", "zookeeper")  # of a lease and of a session; the others take long


@pytest.mark.cluster
@pytest.mark.parametrize(
    "mix",
    [
        pytest.param(mix, marks=[] if mix.backend in SHORT else pytest.mark.long, id=mix.backend)
        for mix in SELECTED
    ],
)
def test_a_right_lock_is_not_accused(mix: Mix, tmp_path: Path) -> None:
    need("local", *resolve(mix.config()).kinds)
    assert try_mix(mix, "local", tmp_path).wrong == []
