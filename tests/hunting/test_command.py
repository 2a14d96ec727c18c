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
    assert "--out" not in again
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


@pytest.mark.cluster
@pytest.mark.long
def test_a_hunt_ends_with_what_it_found(tmp_path: Path) -> None:
    need("local")
    fixed = ("--think", "1500ms", "--ttl", "1s", "--clients", "3", "--nemesis", "none")
    options = ("--time-limit", "4s", "--seed", "3", "--time", "2m", "--no-shrink")
    done = lockcheck("hunt", "--backend", "redis-naive", *fixed, *options, cwd=tmp_path)
    assert done.returncode == BROKEN, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    [found] = [line for line in lines if line.startswith("found")]
    assert "blamed on the client" in found
    [page] = [line.split(maxsplit=1)[1] for line in lines if line.startswith("page")]
    assert Path(page).is_file()
    kept = list(tmp_path.glob("results/hunt-*/trials/*"))
    assert len(kept) == 1, "only the one that broke"


@pytest.mark.cluster
def test_a_hunt_that_finds_nothing_ends_in_time(tmp_path: Path) -> None:
    need("local")
    options = ("--time-limit", "2s", "--time", "1s", "--nemesis", "none")
    done = lockcheck("hunt", "--backend", "redis-fenced", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing in 1 run" in done.stdout
