"""Logs as a service writes them: nothing is held against a correct one, and a mistake is found."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import settings

import lockcheck.check.loading
from lockcheck.check.recheck import recheck
from lockcheck.checker import Code, Culprit, Judgement, Verdict
from lockcheck.checker.linearizability import endless
from lockcheck.formats import ReadOptions
from lockcheck.results.story.wording.codes import note
from tests.production.day import day
from tests.production.mistakes import with_a_mistake
from tests.production.service import Lived, lived

TURNS = 150
RIGHT = settings().max_examples * 4 // 5  # `make fuzz` looks at thousands
WRONG = RIGHT // 2
LONG = 50_000  # turns: 200,000 rows, as many as come in a day
SOME = 200
SEEDS_OF_LONG_ONES = range(6)
A_LOCK = "a lock"
UNDECLARED = "a reentrant lock that is not declared as one"
ASKED = "maybe-reentrant"  # the doubt, if the log does not show it
KINDS: dict[str, tuple[dict[str, int], str]] = {  # what it is, and what its user says that it is
    A_LOCK: ({}, ""),
    "a lock that any client may release, by its user's words": ({}, "mutex"),
    "a lock that can be entered again": ({"levels": 3}, "reentrant"),
    UNDECLARED: ({"levels": 3}, ""),
    "permits": ({"permits": 2}, "semaphore"),
}
once_lived = lru_cache(SOME)(lived)  # kinds that are called otherwise are lived alike
once_mistaken = lru_cache(SOME)(with_a_mistake)
each_kind = pytest.mark.parametrize("kind", KINDS)
in_fuzz = pytest.mark.skipif(settings().max_examples < 1_000, reason="long: make fuzz")


def judged(found: Lived, folder: Path, kind: str) -> Judgement:
    return looked_at(found, folder, kind)[0]


def looked_at(found: Lived, folder: Path, kind: str) -> tuple[Judgement, int]:
    """And at how many of its operations."""
    path, model = folder / f"{found.day.seed}.log", KINDS[kind][1]
    path.write_text(found.text)
    permits = found.day.permits if model == "semaphore" else None
    asked = ReadOptions(ttl_ms=found.ttl_ms, model=model, permits=permits)
    checked = recheck(str(path), None, asked=asked, patience=endless, out=folder)
    return checked.judgement, len(checked.narrative.history.operations)


def right(kind: str, logs: int) -> Iterator[Lived]:
    """Days without a mistake whose logs prove something."""
    lives = (once_lived(day(seed, turns=TURNS, **KINDS[kind][0])) for seed in count())
    return islice((life for life in lives if life.tells), logs)


def wrong(kind: str, logs: int) -> Iterator[Lived]:
    lives = (once_mistaken(day(seed, turns=TURNS, **KINDS[kind][0])) for seed in count())
    return islice((life for life in lives if life is not None), logs)


def accused(found: Lived, folder: Path, kind: str = A_LOCK) -> str:
    """Empty if the correct log was judged ok."""
    judgement = judged(found, folder, kind)
    if judgement.verdict is Verdict.OK:
        return ""
    found_codes = [f"{each.code} of {each.key}: {note(each)}" for each in judgement.findings]
    return f"{found.day}: {(found_codes or judgement.doubts)[:2]}"


def missed(found: Lived, folder: Path, kind: str) -> str:
    """Empty if exactly the two clients, the lock and the service are named."""
    judgement, mistake = judged(found, folder, kind), found.mistake
    assert mistake is not None
    pairs = [
        {hold.process for hold in finding.holds}
        for finding in judgement.of(Code.OVERLAP)
        if finding.key == mistake.key and finding.blame.who is Culprit.SERVICE
    ]
    others = [finding.key for finding in judgement.findings if finding.key != mistake.key]
    named = any({mistake.holder, mistake.intruder} <= those for those in pairs)
    if named and not others and judgement.verdict is Verdict.VIOLATION:
        return ""
    return f"{found.day}: {mistake}, but it tells of {pairs}, {others}, {judgement.doubts}"


@each_kind
def test_a_service_that_is_right_is_not_accused(kind: str, tmp_path: Path) -> None:
    logs = list(right(kind, RIGHT if kind == A_LOCK else RIGHT // 2))
    wrong_ones = [text for life in logs if (text := accused(life, tmp_path, kind))]
    assert [each for each in wrong_ones if kind != UNDECLARED or ASKED not in each] == []
    assert len(wrong_ones) <= len(logs) // 20


@each_kind
def test_a_mistake_is_found(kind: str, tmp_path: Path) -> None:
    """Or nearly always, if a repeated release may have admitted the other client."""
    logs = list(wrong(kind, WRONG if kind == A_LOCK else WRONG // 3))
    wrong_ones = [text for life in logs if (text := missed(life, tmp_path, kind))]
    assert wrong_ones[len(logs) // 25 if kind != A_LOCK else 0 :] == []


def test_a_log_is_judged_alike_from_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [*right(A_LOCK, RIGHT // 10), *wrong(A_LOCK, WRONG // 10)]
    by_events = [looked_at(life, tmp_path, A_LOCK) for life in logs]
    monkeypatch.setattr(lockcheck.check.loading, "MANY", 0)
    by_columns = [looked_at(life, tmp_path, A_LOCK) for life in logs]
    assert [judgement for judgement, _ in by_columns] == [judgement for judgement, _ in by_events]
    fewer = [part < whole for (_, part), (_, whole) in zip(by_columns, by_events, strict=True)]
    assert sum(fewer) > len(logs) * 2 // 3  # else it shows little


@in_fuzz
@pytest.mark.parametrize("seed", SEEDS_OF_LONG_ONES)
def test_a_long_log_is_as_any(seed: int, tmp_path: Path) -> None:
    assert accused(lived(day(seed, turns=LONG)), tmp_path) == ""
