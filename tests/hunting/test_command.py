"""`lockcheck shrink` and `lockcheck hunt`, with real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import lockcheck, need

BROKEN, USAGE = 1, 2
LATE = ("--backend", "redis-naive", "--nemesis", "none", "--think", "1500ms", "--seed", "3")


@pytest.mark.cluster
@pytest.mark.long
def test_a_run_that_broke_is_made_smaller(tmp_path: Path) -> None:
    need("local")
    run = lockcheck("run", *LATE, "--clients", "3", "--time-limit", "4s", cwd=tmp_path)
    assert run.returncode == BROKEN, run.stdout + run.stderr
    done = lockcheck("shrink", "latest", "--tries", "1/2", cwd=tmp_path)
    assert done.returncode == BROKEN, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("breaks  1 of") and "3 clients" in line for line in lines)
    [again] = [line for line in lines if line.startswith("run again")]
    assert "--clients 2" in again
    [page] = [line.split(maxsplit=1)[1] for line in lines if line.startswith("page")]
    assert Path(page).is_file()
    assert not list(tmp_path.glob("results/matrix-*")), "it is no campaign"


def test_a_run_without_a_violation_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "results" / "locks" / "history.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text('{"time":0,"process":1,"type":"invoke","f":"acquire","key":"k"}\n')
    (log.parent / "config.json").write_text('{"backend": "redis", "seed": 1}')
    refused = lockcheck("shrink", "locks", cwd=tmp_path)
    assert refused.returncode == USAGE
    assert "has no violation" in refused.stderr


@pytest.mark.parametrize("tries", ["3/2", "0/1", "all"])
def test_tries_are_some_of_some(tries: str, tmp_path: Path) -> None:
    refused = lockcheck("shrink", "latest", "--tries", tries, cwd=tmp_path)
    assert refused.returncode == USAGE
    assert "two of three" in refused.stderr
