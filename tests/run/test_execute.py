"""A run without the command line: it works on any thread, and reports typed notes."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lockcheck
from lockcheck.config import RunConfig
from lockcheck.run.notes import Judged, LiveState, Note, Planned, Ready, Stop, Stopping
from tests.running import need, stopped_clients, traces_of

pytestmark = pytest.mark.cluster
HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def config(out: Path, **more: object) -> RunConfig:
    asked = {"backend": "redis", "seed": 7, "runtime": "local", "time_limit_ms": 2000}
    return RunConfig(out=str(out), **(asked | more))  # type: ignore[arg-type]


def test_it_runs_on_any_thread_and_shows_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    need("local")
    before = [signal.getsignal(number) for number in HANDLED]
    with ThreadPoolExecutor(max_workers=1) as pool:
        outcome = pool.submit(lockcheck.execute, config(tmp_path, nemesis=("none",))).result()
    assert [signal.getsignal(number) for number in HANDLED] == before
    assert outcome.exit_code in (0, 3), outcome.error
    assert outcome.store.report.exists()
    assert traces_of(outcome.store.run_id, "local") == []
    assert capfd.readouterr() == ("", "")


def test_a_run_that_fails_on_a_thread_heals_and_cleans_up(tmp_path: Path) -> None:
    need("local")
    notes: list[Note] = []

    def watch(note: Note) -> None:
        notes.append(note)
        if stopped_clients():  # as a bug in a watcher, or in lockcheck, while a fault is injected
            raise lockcheck.LockcheckError("no more")

    asked = config(tmp_path, nemesis=("pause",), ttl_ms=20_000, time_limit_ms=60_000)
    with ThreadPoolExecutor(max_workers=1) as pool:
        outcome = pool.submit(lockcheck.execute, asked, watch).result()
    assert str(outcome.error) == "no more"
    assert traces_of(outcome.store.run_id, "local") == []
    assert not stopped_clients()
    assert [type(note) for note in notes[:2]] == [Planned, Ready]


def test_the_watcher_is_given_notes_on_the_thread_of_the_run(tmp_path: Path) -> None:
    need("local")
    notes: list[Note] = []
    threads: set[threading.Thread] = set()

    def watch(note: Note) -> None:
        notes.append(note)
        threads.add(threading.current_thread())

    outcome = lockcheck.execute(config(tmp_path, nemesis=("none",)), watch)
    planned, ready, *live, stopping, judged = notes
    assert isinstance(planned, Planned)
    assert ("--seed", "7") in planned.rows
    assert isinstance(ready, Ready)
    assert ready.nodes == 7
    assert stopping == Stopping(Stop.TIME_LIMIT)
    assert judged == Judged(lockcheck.read_record(outcome.store.folder))
    states = [note for note in live if isinstance(note, LiveState)]
    assert states == live
    assert states[-1].acquisitions > 0
    assert threads == {threading.current_thread()}
