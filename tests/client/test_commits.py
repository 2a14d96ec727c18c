"""Locks whose release commits what was written: a write is answered by what came of that."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings, Promises
from lockcheck.checker.case import Case
from lockcheck.client.recorder import Recorder
from lockcheck.client.session import Session
from lockcheck.history import Ending, EventWriter, History, Refusal, read_history
from lockcheck.servers.wire import Address, Phase, Refused, WireFailure
from lockcheck.storage.base import Ask, Served
from lockcheck.workloads.jobs import WORKLOAD as JOBS
from lockcheck.workloads.jobs import after

Failure = Refused | WireFailure
UNKNOWN = WireFailure(Phase.COMMAND, "p1", TimeoutError())
ROLLED_BACK = Refused(Refusal.GONE, "rolled back")


class Database(Lock):
    """Serves what it is asked, and fails where a test wants it to."""

    def __init__(self, _servers: tuple[Address, ...], _settings: LockSettings) -> None:
        self.asked: list[Ask] = []
        self.refusal = ""
        self.fails: Callable[[str], Failure | None] = lambda _f: None
        self.left = False

    def _maybe_fail(self, f: str) -> None:
        if failure := self.fails(f):
            raise failure

    def acquire(self, claim: Claim) -> Grant:
        return Grant(claim.key, None)

    def serve(self, grant: Grant, ask: Ask) -> Served:
        self._maybe_fail(ask.f)
        self.asked.append(ask)
        return Served(len(self.asked), self.refusal, ask.value)

    def release(self, grant: Grant) -> object:
        self._maybe_fail("release")
        return {"committed": True}

    def leave(self, grant: Grant) -> None:
        self.left = True

    def close(self) -> None: ...


def session(folder: Path, *, commits: bool = True) -> tuple[Session, Database]:
    (folder / "aims").mkdir()
    backend = Backend(
        name="database",
        summary="",
        promises=Promises(session=True, fencing=False, commits=commits),
        servers=(),
        connect=Database,
        errors=(),
        retry_ms=(0, 1),
    )
    settings = LockSettings("c1", 1000, random.Random(1))
    made = Session(
        backend=backend,
        lock=backend.connect((), settings),
        storage=None,
        settings=settings,
        recorder=Recorder(EventWriter(folder / "h.jsonl"), "c1", 0, 5, origin_ns=0, stall_ms=1e6),
        stopping=threading.Event(),
        keys=("k1",),
        think_ms=(1, 1),
        check_validity=False,
        aims=folder / "aims",
    )
    assert isinstance(made.lock, Database)
    return made, made.lock


def recorded(folder: Path) -> History:
    return read_history(folder / "h.jsonl")


def outcomes(history: History) -> list[str]:
    """In the order of the answers: what was answered, and how."""
    answers = [e for e in history.events if e.type != "invoke"]
    return [f"{e.f} {e.type}" for e in answers]


def test_a_write_is_under_way_until_the_commit_is_confirmed(tmp_path: Path) -> None:
    client, _ = session(tmp_path)
    client.locked("k1", Session.update)
    history = recorded(tmp_path)
    assert outcomes(history) == ["acquire ok", "read ok", "write ok", "release ok"]
    write, release = (next(o for o in history.operations if o.f == f) for f in ("write", "release"))
    assert write.start_ns < release.start_ns < (write.end_ns or 0) < (release.end_ns or 0)
    [hold] = history.holds
    assert (hold.ending, hold.end_ns) == (Ending.RELEASED, release.start_ns)
    [stored] = Case(history).ledger.writes
    assert (stored.hold, stored.value, stored.seq) == (hold, "v1-c1", 2)


@pytest.mark.parametrize(
    ("failing", "failure", "expected"),
    [
        ("release", ROLLED_BACK, ["acquire ok", "read ok", "write fail", "release fail"]),
        ("release", UNKNOWN, ["acquire ok", "read ok", "write info", "release info"]),
        ("write", ROLLED_BACK, ["acquire ok", "read ok", "write fail", "release ok"]),
        ("read", ROLLED_BACK, ["acquire ok", "read fail", "release ok"]),
        ("read", UNKNOWN, ["acquire ok", "read info"]),
    ],
)
def test_what_came_of_the_release_came_of_the_write(
    failing: str, failure: Failure, expected: list[str], tmp_path: Path
) -> None:
    client, database = session(tmp_path)
    database.fails = lambda f: failure if f == failing else None
    client.locked("k1", Session.update)
    assert outcomes(recorded(tmp_path)) == expected
    assert not any(write.accepted for write in Case(recorded(tmp_path)).ledger.writes)
    assert database.left == (expected[-1] == "read info")


def test_what_is_never_released_never_counts(tmp_path: Path) -> None:
    client, database = session(tmp_path)

    def section(client: Session, held: object) -> None:
        client.update(held)  # type: ignore[arg-type]
        database.fails = lambda _f: UNKNOWN
        client.read(held)  # type: ignore[arg-type]

    client.locked("k1", section)
    assert outcomes(recorded(tmp_path))[-2:] == ["read info", "write fail"]
    assert database.left


def test_where_nothing_is_committed_later_a_write_is_answered_at_once(tmp_path: Path) -> None:
    client, database = session(tmp_path, commits=False)
    client.locked("k1", Session.update)
    assert outcomes(recorded(tmp_path)) == ["acquire ok", "read ok", "write ok", "release ok"]
    database.refusal = "cas: version 1 is not the current one"
    client.locked("k1", Session.update)
    assert outcomes(recorded(tmp_path))[4:] == [
        *("acquire ok", "read fail", "lost info", "release ok"),
    ]
    assert {operation.process for operation in recorded(tmp_path).operations} == {0}


# --- jobs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("last", "following"), [(None, "job-1"), ("job-9", "job-10")])
def test_whoever_saw_the_same_job_does_the_same_next(last: str | None, following: str) -> None:
    assert after(last) == following


def test_a_job_is_looked_for_and_done(tmp_path: Path) -> None:
    client, database = session(tmp_path, commits=False)

    def serve(f: str) -> None:
        if f == "run":
            client.stopping.set()

    database.fails = serve
    JOBS.run(client)
    assert [(ask.f, ask.value, ask.base) for ask in database.asked] == [
        ("look", None, None),
        ("run", "job-1", None),
    ]
    assert outcomes(recorded(tmp_path)) == ["acquire ok", "look ok", "run ok", "release ok"]
