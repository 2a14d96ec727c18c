"""`lockcheck matrix` as a user runs it: real runs, cut short, gone on with, in shards."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest
from junitparser import JUnitXml

from lockcheck.checker import CHECKS
from lockcheck.matrix.folder import Folder, campaigns_in
from tests.running import LOCKCHECK, lockcheck, need
from tests.waiting import wait_for
from tests.yours.test_your_lock import CAREFUL

OK, BROKEN, USAGE, UNKNOWN, FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130
FILE = """
[matrix]
seeds = 1
thresholds = ["violations(redis::none) == 0", "max ungranted < 60s"]

[matrix.run]
runtime = "local"
time-limit = "6s"

[[matrix.row]]
backend = "redis"
nemesis = ["none", "pause"]
expect = "any"

[[matrix.row]]
backend = "redis-naive"
nemesis = "pause"
expect = "EXPECTED"
"""


def written(folder: Path, expected: str = "violation") -> Path:
    (folder / "lockcheck.toml").write_text(FILE.replace("EXPECTED", expected))
    return folder


def only(folder: Path) -> Folder:
    [found] = campaigns_in(folder / "results")
    return found


def test_what_would_run_is_listed(tmp_path: Path) -> None:
    listed = lockcheck("matrix", "--list", cwd=written(tmp_path))
    assert listed.returncode == OK, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [
        "redis::none",
        "redis::pause",
        "redis-naive::pause",
        "3",
    ]
    assert not (tmp_path / "results").exists()
    chosen = lockcheck("matrix", "--list", "-k", "naive", "--seeds", "4", cwd=tmp_path).stdout
    assert "4 runs" in chosen
    assert "redis::none" not in chosen


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no.toml",), "there is no no.toml"),
        (("-k", "zebra"), "chooses no cell"),
        (("--shard", "5/4"), "--shard 5/4"),
        (("--backend", "redis"), "--backend goes with --own"),
        (("--last-failed",), "no campaign of lockcheck.toml that has ended"),
        (("--baseline", "no.toml"), "no.toml"),
    ],
)
def test_what_cannot_be_done_is_an_error_with_its_cure(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    done = lockcheck("matrix", *arguments, cwd=written(tmp_path))
    assert done.returncode == USAGE, done.stderr
    assert words in done.stderr
    assert "cure:" in done.stderr or "no.toml" in done.stderr
    assert not (tmp_path / "results").exists()


def test_other_commands_leave_the_table_alone(tmp_path: Path) -> None:
    listed = lockcheck("list", "backends", cwd=written(tmp_path))
    assert listed.returncode == OK, listed.stderr


@pytest.mark.cluster
def test_it_is_carried_out_cut_short_and_gone_on_with(tmp_path: Path) -> None:
    need("local")
    written(tmp_path)
    with subprocess.Popen([*LOCKCHECK, "matrix"], cwd=tmp_path, stdout=subprocess.DEVNULL) as begun:
        wait_for(lambda: list(tmp_path.glob("results/*/trials/*/result.json")), "one is done")
        begun.send_signal(signal.SIGINT)
        assert begun.wait(60) == INTERRUPTED
    folder = only(tmp_path)
    assert not folder.finished
    done = lockcheck("matrix", "--report-dir", "reports", cwd=tmp_path)
    assert done.returncode == OK, done.stdout + done.stderr
    assert "it goes on where it was cut short" in done.stderr
    assert only(tmp_path) == folder  # the same one
    assert "3 of 3 cells as expected" in done.stdout
    assert done.stdout.count("✓") == 2
    suite = JUnitXml.fromfile(str(tmp_path / "reports" / "junit.xml"))
    assert suite.failures == 0
    naive = next(tmp_path.glob("reports/trials/redis-naive-pause-1/*/report.html"))
    assert "Violation" in naive.read_text()
    lines = (tmp_path / "reports" / "results.ndjson").read_text().splitlines()
    assert {json.loads(line)["trial"] for line in lines} == {
        "redis::none[1]",
        "redis::pause[1]",
        "redis-naive::pause[1]",
    }


@pytest.mark.cluster
def test_a_violation_that_was_not_expected_fails_it_and_is_news(tmp_path: Path) -> None:
    need("local")
    first = lockcheck("matrix", "-k", "naive", cwd=written(tmp_path))
    assert first.returncode == OK, first.stdout + first.stderr
    written(tmp_path, "ok")  # as if a bug had been put in since
    second = lockcheck("matrix", "-k", "naive", cwd=tmp_path)
    assert second.returncode == BROKEN
    assert "1 violation: redis-naive::pause" in second.stdout
    new = [line for line in second.stdout.splitlines() if line.startswith("new ")]
    assert any("overlap" in line and "redis-naive" in line for line in new), second.stdout
    last = lockcheck("matrix", "--last-failed", "--list", cwd=tmp_path)
    assert [line.split()[0] for line in last.stdout.splitlines()] == ["redis-naive::pause", "1"]
    newest, oldest = campaigns_in(tmp_path / "results")
    compared = lockcheck("compare", str(oldest.path), str(newest.path))
    assert compared.returncode == OK, compared.stderr
    known = "\n".join(
        f'[[known]]\ncode = "{code}"\nbackend = "redis-naive"\nuntil = 2999-12-31\nwhy = "a ticket"'
        for code in CHECKS  # the next run may find others than the last
    )
    (tmp_path / "known.toml").write_text(known)
    third = lockcheck("matrix", "-k", "naive", "--baseline", "known.toml", cwd=tmp_path)
    assert third.returncode == OK, third.stdout + third.stderr


@pytest.mark.cluster
@pytest.mark.long
def test_shards_are_merged_to_the_same_page(tmp_path: Path) -> None:
    need("local")
    written(tmp_path)
    for number in (1, 2):
        out = ("--out", f"shard{number}")
        done = lockcheck("matrix", "--shard", f"{number}/2", *out, cwd=tmp_path)
        assert done.returncode == OK, done.stdout + done.stderr
    shards = [str(next(tmp_path.glob(f"shard{n}/matrix-*"))) for n in (1, 2)]
    merged = lockcheck("merge", *shards, cwd=tmp_path)
    assert merged.returncode == OK, merged.stdout + merged.stderr
    assert "3 of 3 cells as expected" in merged.stdout
    whole = only(tmp_path)
    for outcome in whole.outcomes():
        for result in outcome.results:
            assert (whole.path / result.report).exists()
    half = lockcheck("merge", shards[0], "--out", "half", cwd=tmp_path)
    assert "1 run of 3 are in none of them" in half.stderr
    assert half.returncode == UNKNOWN


@pytest.mark.cluster
def test_a_run_that_fails_is_an_error_and_the_others_go_on(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "locks.py").write_text(CAREFUL)
    (tmp_path / "lockcheck.toml").write_text(
        '[client.far]\nclient = "locks:lock"\nservers = "redis=127.0.0.1:9"\n'
        + FILE.replace("EXPECTED", "violation").replace(
            'backend = "redis"\n', 'backend = ["far", "redis"]\n'
        )
    )
    done = lockcheck("matrix", "-k", "::none", cwd=tmp_path)
    assert done.returncode == FAILED, done.stdout + done.stderr
    of_trials = re.findall(r"^ *\d/2 ([a-z ]+?) +[\d.]+ s", done.stdout, re.MULTILINE)
    assert sorted(of_trials) == ["as expected", "error"], done.stdout
    assert "127.0.0.1:9" in done.stdout
