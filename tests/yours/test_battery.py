"""The battery: a row for each condition, with what was found in a run of it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from lockcheck.backends import BACKENDS
from lockcheck.config import RunConfig
from lockcheck.nemesis import NO_FAULT
from lockcheck.runs.record import read_record
from lockcheck.yours.battery import CONDITIONS, Condition, trial, trials
from tests.running import LOCKCHECK, lockcheck, need
from tests.waiting import wait_for

OK, VIOLATION, USAGE, INTERRUPTED = 0, 1, 2, 130
LONG_TTL_MS = 4000


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_condition_suits_each_lock(backend: str) -> None:
    for each in trials(RunConfig(backend=backend, ttl_ms=LONG_TTL_MS, seed=1)):
        assert not each.refused
        assert each.config.time_limit_ms > 2 * LONG_TTL_MS  # else no lease runs out in it


def test_what_a_lock_has_no_place_for_is_a_row_that_says_so() -> None:
    none = Condition("failover", "its primary dies", "failover")
    refused = trial(none, RunConfig(backend="redis", seed=1))
    assert refused.mark == "not run"
    assert "primary" in refused.refused


def test_there_are_ten() -> None:
    assert len(CONDITIONS) == 10
    assert sum(each.nemesis == NO_FAULT for each in CONDITIONS.values()) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("storm", "--backend", "redis"), "unknown condition 'storm'"),
        (("crowd",), "Missing option '--backend'"),
        (("crowd", "--backend", "redis", "--ttl", "1ms"), "at least 200ms"),
        (("crowd", "--backend", "redis", "--nemesis", "pause"), "No such option '--nemesis'"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], words: str) -> None:
    refused = lockcheck("battery", *arguments)
    assert refused.returncode == USAGE
    assert words in refused.stderr


@pytest.mark.cluster
def test_a_lock_breaks_under_one_condition_and_stands_the_other(tmp_path: Path) -> None:
    need("local")
    command = ("battery", "crowd", "pause", "--backend", "redis", "--out", str(tmp_path))
    shown = lockcheck(*command, "--runtime", "local")
    assert shown.returncode == VIOLATION, shown.stdout + shown.stderr
    crowd, pause, *_ = shown.stdout.splitlines()
    assert crowd.split()[:2] == ["ok", "crowd"]
    assert pause.split()[:2] == ["violation", "pause"]
    assert pause.endswith("to blame: its holder")
    assert "1 ok, 1 violation" in shown.stdout
    assert "--guard fence" in shown.stdout
    [report] = [line.strip() for line in shown.stdout.splitlines() if "report.html" in line]
    found = read_record(Path(report).parent).codes
    assert all(f"{code} ({number})" in pause for code, number in found.items())


@pytest.mark.cluster
def test_a_fenced_lock_is_ok_and_programs_can_read_it(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "lockcheck.toml").write_text('[battery]\nbackend = "redis-fenced"\n')
    command = ("battery", "pause", "--guard", "fence", "--runtime", "local", "--json")
    shown = lockcheck(*command, cwd=tmp_path)
    assert shown.returncode == OK, shown.stdout + shown.stderr
    [pause] = json.loads(shown.stdout)
    assert pause["condition"] == pause["nemesis"] == "pause"
    assert pause["verdict"] == "ok"
    assert pause["counts"]["stale_writes_refused"] > 0
    assert "--guard fence" in pause["rerun"]


@pytest.mark.cluster
def test_ctrl_c_ends_it_with_what_there_is(tmp_path: Path) -> None:
    need("local")
    command = ["battery", "crowd", "long-work", "--backend", "redis", "--out", str(tmp_path)]
    with subprocess.Popen(
        [*LOCKCHECK, *command, "--runtime", "local"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as battery:
        assert battery.stdout is not None
        first = battery.stdout.readline()
        wait_for(lambda: len([*tmp_path.glob("2*")]) == 2, "the second run")
        battery.send_signal(signal.SIGINT)
        rest, _ = battery.communicate(timeout=60)
    assert battery.returncode == INTERRUPTED
    assert first.split()[:2] == ["ok", "crowd"]
    assert rest.splitlines()[0].startswith("cut short long-work")
