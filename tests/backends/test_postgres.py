"""PostgreSQL's locks on a real server: its session, what ends it, and what errors mean."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from lockcheck.backends.base import Backend, Grant, Lock, LockSettings
from lockcheck.backends.sql import idempotent, optimistic, postgres_advisory, postgres_row
from lockcheck.history import EventType
from lockcheck.servers.wire import Address, Phase, Refused, WireFailure, classify
from lockcheck.servers.wire.postgres import POSTGRES_ERRORS, PostgresSession
from lockcheck.storage import open_storage
from lockcheck.storage.base import Ask, Guard
from tests.backends.claims import Acquiring, NotedClaim
from tests.backends.servers import NOWHERE, postgres
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SERVER = postgres
SHORT_MS, LONG_MS = 1000, 60_000  # longer than any test: nothing runs out


@pytest.fixture
def sessions(address: Address) -> Iterator[list[PostgresSession]]:
    opened = [PostgresSession(address, 10) for _ in range(2)]
    yield opened
    for session in opened:
        session.close()


@pytest.fixture
def open_two(address: Address) -> Iterator[Callable[[Backend, int], list[Lock]]]:
    opened: list[Lock] = []

    def two(backend: Backend, ttl_ms: int) -> list[Lock]:
        settings = [LockSettings(f"c{n}", ttl_ms, random.Random(n)) for n in range(2)]
        opened.extend(backend.connect((address,), each) for each in settings)
        return opened

    yield two
    for lock in opened:
        lock.close()


@pytest.fixture
def locks(open_two: Callable[[Backend, int], list[Lock]]) -> list[Lock]:
    return open_two(postgres_advisory.BACKEND, LONG_MS)


def read(lock: Lock, grant: Grant) -> str | None:
    return lock.serve(grant, Ask("read", grant.key, 0)).value


def write(lock: Lock, grant: Grant, value: str) -> str:
    return lock.serve(grant, Ask("write", grant.key, 0, value=value)).refusal


def remembered(address: Address, key: str) -> list[tuple[str | None, bool]]:
    """What was written, and whether it was accepted."""
    storage = open_storage("postgres", address, Guard.NONE)
    memory = [(ask.value, not ask.refusal) for ask in storage.ledger() if ask.key == key]
    storage.close()
    return memory


def acquired_soon(lock: Lock, claim: NotedClaim) -> Grant:
    """When the server has noticed that its holder is gone: it says good-bye before it cleans up.
    On a busy machine it may have no answer in time either."""
    granted: list[Grant] = []

    def is_granted() -> bool:
        with suppress(Refused, WireFailure):
            granted.append(lock.acquire(claim))
        return bool(granted)

    wait_for(is_granted, "the server lets the next one in")
    return granted[0]


def meaning(failure: WireFailure) -> EventType:
    return classify(POSTGRES_ERRORS, failure)[0]


def backend_of(session: PostgresSession) -> int:
    return int(session.ask("SELECT pg_backend_pid()")[0][0] or 0)


# --- the session ---------------------------------------------------------------------------------


def test_what_is_given_is_never_read_as_sql(sessions: list[PostgresSession]) -> None:
    given = "'; DROP TABLE x; --\\"
    assert sessions[0].ask("SELECT $1, $2::int + 1, $3", given, 41, None) == [(given, "42", None)]


def test_an_error_of_a_statement_leaves_the_session_alive(sessions: list[PostgresSession]) -> None:
    with pytest.raises(WireFailure) as caught:
        sessions[0].ask("SELECT 1 / 0")
    assert type(caught.value.cause).__name__ == "DivisionByZero"
    assert meaning(caught.value) is EventType.INFO  # not in the table
    assert sessions[0].ask("SELECT 1") == [("1",)]


def test_what_cannot_be_reached_was_not_asked() -> None:
    with pytest.raises(WireFailure) as caught:
        PostgresSession(NOWHERE, 1)
    assert caught.value.phase is Phase.CONNECT
    assert meaning(caught.value) is EventType.FAIL


def test_a_server_that_ends_the_session_is_heard(sessions: list[PostgresSession]) -> None:
    one, other = sessions
    assert not one.ended()
    other.ask("SELECT pg_terminate_backend($1)", backend_of(one))
    wait_for(one.ended, "the end is heard")
    with pytest.raises(WireFailure) as caught:
        one.ask("SELECT 1")
    assert caught.value.phase is Phase.CONNECT


def test_no_answer_in_time_is_unknown_and_ends_the_session(
    sessions: list[PostgresSession],
) -> None:
    with pytest.raises(WireFailure) as caught:
        sessions[0].ask("SELECT pg_sleep(60)", timeout_s=0.05)
    assert (caught.value.phase, meaning(caught.value)) == (Phase.COMMAND, EventType.INFO)
    assert sessions[0].over


@pytest.mark.parametrize("read_before", [True, False])
def test_a_transaction_that_was_idle_for_too_long_was_rolled_back(
    sessions: list[PostgresSession], monkeypatch: pytest.MonkeyPatch, read_before: bool
) -> None:
    """Whether that is read before the next statement is sent, or as the answer to it."""
    one, other = sessions
    own = backend_of(one)
    one.ask("SET idle_in_transaction_session_timeout = 10")
    one.ask("BEGIN")
    ended = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"
    wait_for(lambda: other.ask(ended, own) == [("0",)], "the server ends it")
    if not read_before:
        monkeypatch.setattr(one, "ended", lambda: one._was_terminated)  # beside an earlier answer
    with pytest.raises(WireFailure) as caught:
        one.ask("COMMIT")
    assert meaning(caught.value) is EventType.FAIL


def test_a_lock_that_is_held_was_not_granted(sessions: list[PostgresSession]) -> None:
    for session in sessions:
        session.ask("SET lock_timeout = 20")
    sessions[0].ask("SELECT pg_advisory_lock(7)")
    with pytest.raises(WireFailure) as caught:
        sessions[1].ask("SELECT pg_advisory_lock(7)")
    assert meaning(caught.value) is EventType.FAIL


# --- the advisory lock ---------------------------------------------------------------------------


def test_an_advisory_lock_excludes_and_its_tokens_grow(locks: list[Lock], key: str) -> None:
    one, other = locks
    held = one.acquire(NotedClaim(key))
    with pytest.raises(Refused, match="held"):
        other.acquire(NotedClaim(key))
    elsewhere = other.acquire(NotedClaim(f"{key}/2"))
    assert one.release(held) == {"removed": 1}
    again = other.acquire(NotedClaim(key))
    assert (held.token or 0) < (elsewhere.token or 0) < (again.token or 0)
    assert 0 < (again.valid_ms or 0) <= LONG_MS


def test_a_lock_that_was_taken_without_a_token_is_given_back(
    locks: list[Lock], sessions: list[PostgresSession], key: str
) -> None:
    for n in range(2):  # so that there is a sequence, and more in it than its least value
        locks[0].acquire(NotedClaim(f"{key}/{n}"))
    [(last,)] = sessions[0].ask("SELECT last_value FROM lockcheck_token")
    sessions[0].ask(f"ALTER SEQUENCE lockcheck_token MAXVALUE {last}")
    with pytest.raises(WireFailure):
        locks[0].acquire(NotedClaim(key))
    sessions[0].ask("ALTER SEQUENCE lockcheck_token NO MAXVALUE")
    acquired_soon(locks[1], NotedClaim(key))


def test_a_session_that_could_not_be_prepared_is_not_used(
    locks: list[Lock], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, failing = PostgresSession.prepare, [WireFailure(Phase.COMMAND, "p1", OSError())]

    def prepared(session: PostgresSession, script: str) -> None:
        if failing:
            raise failing.pop()
        scripts.append(script)
        prepare(session, script)

    scripts: list[str] = []
    monkeypatch.setattr(PostgresSession, "prepare", prepared)
    with pytest.raises(WireFailure):
        locks[0].acquire(NotedClaim(key))
    locks[0].acquire(NotedClaim(key))
    assert scripts == [postgres_advisory.PREPARE]


def test_who_is_gone_holds_it_no_longer(locks: list[Lock], key: str) -> None:
    locks[0].acquire(NotedClaim(key))
    locks[0].close()
    acquired_soon(locks[1], NotedClaim(key))


def test_a_session_that_the_server_ends_is_lost_at_once(
    locks: list[Lock], address: Address, key: str
) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    ending = PostgresSession(address, 10)
    ending.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    )
    ending.close()
    assert claim.lost_something.wait(30)
    with pytest.raises(WireFailure) as caught:
        locks[0].release(held)
    assert meaning(caught.value) is EventType.FAIL
    locks[0].release(acquired_soon(locks[0], NotedClaim(key)))


def test_a_server_that_answers_no_ping_has_lost_it(
    open_two: Callable[[Backend, int], list[Lock]], key: str
) -> None:
    claim = NotedClaim(key)
    lock, _ = open_two(postgres_advisory.BACKEND, SHORT_MS)
    held = acquired_soon(lock, claim)
    backend = backend_of(held.handle.session)  # type: ignore[attr-defined]
    os.kill(backend, signal.SIGSTOP)
    try:
        assert claim.lost_something.wait(30)
    finally:
        os.kill(backend, signal.SIGCONT)
    acquired_soon(lock, NotedClaim(key))


def test_a_lock_that_nobody_releases_is_let_go_after_its_time(
    open_two: Callable[[Backend, int], list[Lock]], key: str
) -> None:
    one, other = open_two(postgres_advisory.BACKEND, SHORT_MS)
    began = time.monotonic()
    one.leave(acquired_soon(one, NotedClaim(key)))
    assert time.monotonic() - began >= SHORT_MS / 1000
    acquired_soon(other, NotedClaim(key))


@pytest.mark.parametrize(("ttl_ms", "seconds"), [(200, 1), (1000, 1), (2001, 2), (10_000, 5)])
def test_silence_is_counted_in_seconds_and_is_no_shorter_than_the_ttl(
    ttl_ms: int, seconds: int
) -> None:
    assert postgres_advisory.seconds_of_silence(ttl_ms) == seconds
    assert seconds * postgres_advisory.PROBES * 1000 >= ttl_ms


# --- the row -------------------------------------------------------------------------------------


def test_what_is_written_under_the_row_counts_when_it_is_released(
    open_two: Callable[[Backend, int], list[Lock]], address: Address, key: str
) -> None:
    one, other = open_two(postgres_row.BACKEND, LONG_MS)
    held = one.acquire(NotedClaim(key))
    assert read(one, held) is None
    waiting = Acquiring(other, NotedClaim(key))
    assert write(one, held, "a") == ""
    assert remembered(address, key) == []
    assert waiting.grant is None
    assert one.release(held) == {"committed": True}
    waiting.join(30)
    assert waiting.grant
    assert read(other, waiting.grant) == "a"
    assert remembered(address, key) == [("a", True)]


def test_a_holder_of_whom_nothing_was_heard_is_rolled_back(
    open_two: Callable[[Backend, int], list[Lock]], address: Address, key: str
) -> None:
    one, other = open_two(postgres_row.BACKEND, LONG_MS)
    late = one.acquire(claim := NotedClaim(key))
    write(one, late, "late")
    assert claim.told == ["renewing", "renewed"]
    session = late.handle.data.session  # type: ignore[attr-defined]
    session.ask("SET idle_in_transaction_session_timeout = 50")
    other.acquire(NotedClaim(key))
    with pytest.raises(WireFailure) as caught:
        one.release(late)
    assert meaning(caught.value) is EventType.FAIL
    with pytest.raises(Refused, match="rolled back"):
        write(one, late, "later still")
    assert remembered(address, key) == []


def test_a_statement_that_is_refused_is_undone_and_the_row_stays_locked(
    open_two: Callable[[Backend, int], list[Lock]], address: Address, key: str
) -> None:
    lock, other = open_two(postgres_row.BACKEND, LONG_MS)
    held = lock.acquire(claim := NotedClaim(key))
    write(lock, held, "a")
    held.handle.data.session.ask("SET TRANSACTION READ ONLY")  # type: ignore[attr-defined]
    assert write(lock, held, "b").startswith("undone: cannot execute")
    assert claim.told[-1] == "renewed"
    waiting = Acquiring(other, NotedClaim(key))
    assert waiting.grant is None
    assert lock.release(held) == {"committed": True}
    waiting.join(30)
    assert waiting.grant
    assert remembered(address, key) == [("a", True)]


def test_a_commit_that_rolls_back_is_none(sessions: list[PostgresSession]) -> None:
    sessions[0].ask("BEGIN")
    with pytest.raises(WireFailure):
        sessions[0].ask("SELECT 1 / 0")
    with pytest.raises(WireFailure) as caught:
        sessions[0].commit()
    assert meaning(caught.value) is EventType.FAIL


# --- no lock -------------------------------------------------------------------------------------


def test_of_two_who_read_the_same_version_one_writes(
    open_two: Callable[[Backend, int], list[Lock]], address: Address, key: str
) -> None:
    one, other = open_two(optimistic.BACKEND, LONG_MS)
    first, second = one.acquire(NotedClaim(key)), other.acquire(NotedClaim(key))
    assert read(one, first) is read(other, second) is None
    assert write(other, second, "b") == ""
    assert write(one, first, "a").startswith("cas: version")
    assert read(one, first) == "b"
    assert write(one, first, "c") == ""
    assert remembered(address, key) == [("b", True), ("a", False), ("c", True)]


def test_of_two_who_do_the_same_job_the_first_one_wins(
    open_two: Callable[[Backend, int], list[Lock]], key: str
) -> None:
    def do(lock: Lock, grant: Grant, job: str, of: int) -> str:
        return lock.serve(grant, Ask("run", key, of, value=job)).refusal

    one, other = open_two(idempotent.BACKEND, LONG_MS)
    first, second = one.acquire(NotedClaim(key)), other.acquire(NotedClaim(key))
    assert one.serve(first, Ask("look", key, 1)).value is None
    assert do(other, second, "job-1", 2) == ""
    assert do(one, first, "job-1", 1) == "done already, by process 2"
    assert do(one, first, "job-2", 1) == ""
    assert other.serve(second, Ask("look", key, 2)).value == "job-2"
