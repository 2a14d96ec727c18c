"""MariaDB's user lock on a real MariaDB: waiting for it, what ends it, and what errors mean."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator

import pytest

from lockcheck.backends.base import Lock, LockSettings
from lockcheck.backends.connection_keeper import HeldSession
from lockcheck.backends.sql.mariadb_get_lock import BACKEND
from lockcheck.history import EventType
from lockcheck.servers.mariadb import MARIADB
from lockcheck.servers.wire import Address, Phase, Refused, WireFailure, classify
from lockcheck.servers.wire.mariadb import MARIADB_ERRORS, MariadbSession
from tests.backends.claims import NotedClaim, queued
from tests.backends.queueing import two_give_up
from tests.backends.servers import NOWHERE, Started, clients, mariadb, said, stopped
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SERVER = mariadb
TTL_MS = 1000


@pytest.fixture
def admin(address: Address) -> Iterator[MariadbSession]:
    session = MariadbSession(address, 10)
    yield session
    session.close()


@pytest.fixture
def locks(address: Address) -> Iterator[list[Lock]]:
    with clients(BACKEND.connect, address, TTL_MS, 2) as locks:
        yield locks


def kill_holder(admin: MariadbSession, key: str) -> None:
    (connection,) = admin.ask("SELECT IS_USED_LOCK(%s)", key)
    admin.ask("KILL %s", connection)


def test_one_at_a_time_and_who_waits_gets_it_when_it_is_released(
    locks: list[Lock], key: str
) -> None:
    held = locks[0].acquire(first := NotedClaim(key))
    apart = locks[1].acquire(NotedClaim(key + "2"))
    locks[1].release(apart)
    waiting = queued(locks[1], NotedClaim(key))
    assert waiting.is_alive()
    assert "queued" not in first.told
    assert locks[0].release(held) == {"released": 1}
    waiting.join(10)
    assert waiting.grant
    assert waiting.grant.token is None
    assert 0 < (waiting.grant.valid_ms or 0) <= TTL_MS
    locks[1].release(waiting.grant)


def test_a_connection_that_ends_frees_it_at_once(locks: list[Lock], key: str) -> None:
    locks[0].acquire(NotedClaim(key))
    waiting = queued(locks[1], NotedClaim(key))
    locks[0].close()  # releases nothing
    waiting.join(10)
    assert waiting.grant
    locks[1].release(waiting.grant)


def test_a_connection_that_the_server_ends_is_told_at_once(
    locks: list[Lock], admin: MariadbSession, key: str
) -> None:
    held = locks[0].acquire(claim := NotedClaim(key))
    kill_holder(admin, key)
    assert claim.lost_something.wait(10)
    assert claim.told[-1] == "lost: its connection has ended"
    other = locks[1].acquire(NotedClaim(key))
    with pytest.raises(WireFailure) as caught:
        locks[0].release(held)
    assert classify(MARIADB_ERRORS, caught.value)[0] is EventType.FAIL
    locks[1].release(other)
    again = locks[0].acquire(NotedClaim(key))
    locks[0].release(again)


def test_a_silent_client_keeps_it_for_its_ttl_and_a_pinging_one_for_longer(
    locks: list[Lock], admin: MariadbSession, key: str
) -> None:
    kept = locks[1].acquire(claim := NotedClaim(key + "2"))
    held = locks[0].acquire(NotedClaim(key))
    locks[0].leave(held)
    began = time.monotonic()
    wait_for(lambda: admin.ask("SELECT IS_FREE_LOCK(%s)", key) == (1,), "it is free")
    assert time.monotonic() - began > TTL_MS / 1000
    assert set(claim.told) == {"renewing", "renewed"}
    locks[1].release(kept)


def test_who_is_not_answered_any_more_is_told_when_a_ttl_has_gone_by(
    server: Started, locks: list[Lock], key: str
) -> None:
    locks[0].acquire(claim := NotedClaim(key))
    with stopped(server[1]):
        assert claim.lost_something.wait(10)
    assert any(told.startswith("not renewed") for told in claim.told)


def test_a_wait_is_bounded_and_withdraws(locks: list[Lock], key: str) -> None:
    held = two_give_up(locks, key)
    locks[0].release(held)
    locks[0].release(locks[0].acquire(free := NotedClaim(key)))
    assert "queued" not in free.told, "who gave up holds nothing"


def test_a_waiter_whose_connection_is_gone_is_not_let_in(
    locks: list[Lock], admin: MariadbSession, key: str
) -> None:
    held = locks[0].acquire(NotedClaim(key))
    waiting = queued(locks[1], NotedClaim(key))
    assert isinstance(held.handle, HeldSession)
    (own,) = held.handle.session.ask("SELECT CONNECTION_ID()")
    (ours,) = admin.ask("SELECT CONNECTION_ID()")
    (theirs,) = admin.ask(
        "SELECT MAX(ID) FROM information_schema.PROCESSLIST WHERE ID NOT IN (%s, %s)", own, ours
    )
    admin.ask("KILL %s", theirs)
    waiting.join(10)
    assert isinstance(waiting.failure, WireFailure)
    assert classify(MARIADB_ERRORS, waiting.failure)[0] is EventType.INFO
    locks[0].release(held)


def test_what_was_not_held_is_not_released(locks: list[Lock], key: str) -> None:
    held = locks[0].acquire(NotedClaim(key))
    assert isinstance(held.handle, HeldSession)
    held.handle.session.ask("SELECT RELEASE_LOCK(%s)", key)
    with pytest.raises(Refused, match="not-owner"):
        locks[0].release(held)


def test_no_server_at_all_is_a_failure_to_connect(key: str) -> None:
    lock = BACKEND.connect((NOWHERE,), LockSettings("c1", TTL_MS, random.Random(1)))
    with pytest.raises(WireFailure) as caught:
        lock.acquire(NotedClaim(key))
    assert caught.value.phase is Phase.CONNECT
    assert classify(MARIADB_ERRORS, caught.value)[0] is EventType.FAIL


def test_it_greets_when_it_is_ready(address: Address) -> None:
    assert re.search(MARIADB.ready.answer, said(address, MARIADB.ready.ask), re.DOTALL)
