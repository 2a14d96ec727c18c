"""The verdict in the terminal: compact, aligned, and harmless whatever the history holds."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.checker import judge
from lockcheck.checker.case import Case
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.cli.terminal import print_verdict
from lockcheck.history import History
from lockcheck.results.story.narrative import Narrative
from lockcheck.runs.facts import RunFacts
from tests.results.test_incidents import meets_many
from tests.results.test_story import NO_COUNTS, Recording, outlived_lease

REPORT = Path(
    "/a/folder/with/a/long/name/that/does/not/fit/into/one/line/of/the/terminal/report.html"
)
RERUN = (
    "lockcheck run --backend redlock --nemesis pause --time-limit 15s --out /some/where --seed 3"
)


def facts(problem: str = "") -> RunFacts:
    return RunFacts(
        run_id="r1", started_at="now", plan=(), versions=(), rerun_command=RERUN,
        check_command="lockcheck check r1", problem=problem,
    )  # fmt: skip


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")


def last_words(
    capsys: pytest.CaptureFixture[str], history: History, judgement: Judgement | None = None
) -> list[str]:
    print_verdict(Narrative(judgement or judge(history)), REPORT, facts())
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).split("\n")


@pytest.mark.usefixtures("narrow")
def test_it_fits_a_narrow_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    lines = last_words(capsys, meets_many())
    assert len(lines) <= 65
    copied = (f"report         {REPORT}", f"run again      {RERUN}")
    assert [line for line in lines if len(line) > 80] == list(copied)
    assert not any(line.endswith(" ") for line in lines)


@pytest.mark.usefixtures("narrow")
def test_what_wraps_stays_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    lines = last_words(capsys, meets_many())
    head = next(i for i, line in enumerate(lines) if line.startswith(" VIOLATION   Client c1 was"))
    assert lines[head + 1].startswith(" " * 13 + "writes lost.")
    assert lines[head + 3].startswith(
        " " * 13 + "whose fault: no one's: the limit of leases. A paused client cannot"
    )
    step = next(i for i, line in enumerate(lines) if " others  58 more holds" in line)
    assert lines[step + 1].index("came") == lines[step].index("58 more")


def test_a_log_gets_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    print_verdict(Narrative(judge(meets_many())), REPORT, facts())
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "judged         60 of 61 acknowledged writes lost (98 %), 61 writes accepted, 61" in said
    assert "1 pause injected and confirmed, 304 operations" in said


def test_words_from_a_history_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    run = Recording()
    outlived_lease(run)
    run.acquire(3000, 1, key="[red]k[/]\x1b[2J")
    run.acquire(3100, 2, key="[red]k[/]\x1b[2J")
    run.release(3200, 1, key="[red]k[/]\x1b[2J")
    run.release(3300, 2, key="[red]k[/]\x1b[2J")
    history = run.history()
    shown = judge(history)
    only = tuple(f for f in shown.findings if f.key != "k1")
    lines = last_words(capsys, history, replace(shown, findings=only))
    assert any("[red]k[/]\\x1b[2J" in line for line in lines)


def test_doubts_are_said_once_and_not_all(capsys: pytest.CaptureFixture[str]) -> None:
    doubts = tuple(Doubt(DoubtCode.RUN_UNFINISHED, reason=f"number {n}") for n in range(30))
    unknown = Judgement(Verdict.UNKNOWN, (), doubts, NO_COUNTS, case=Case(Recording().history()))
    lines = last_words(capsys, Recording().history(), unknown)
    assert sum("number 0" in line for line in lines) == 1
    assert "  and 24 more doubts in the report" in lines
    assert len(lines) < 20


def test_one_is_not_many(capsys: pytest.CaptureFixture[str]) -> None:
    run = Recording()
    run.acquire(1, 1)
    run.write(3, 1, "x", None)
    run.release(5, 1)
    said = re.sub(r"\s+", " ", " ".join(last_words(capsys, run.history())))
    assert "1 write accepted, 1 time granted, 1 holder, nothing injected, 3 operations" in said


def test_what_went_wrong_with_the_run_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    print_verdict(Narrative(judge(meets_many())), None, facts("the agent went away"))
    said = capsys.readouterr().out
    assert said.index("NOT FINISHED") < said.index("the agent went away") < said.index("VIOLATION")
