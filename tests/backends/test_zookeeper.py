"""ZooKeeper's lock on a real server: the queue, the session, and what is told when it is gone."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from lockcheck.backends.base import Lock, LockSettings
from lockcheck.backends.zookeeper.zookeeper import BACKEND, CONTENDER, ZooKeeperLock
from lockcheck.backends.zookeeper.zookeeper_nodes import QueueNode
from lockcheck.backends.zookeeper.zookeeper_queue import predecessor
from lockcheck.backends.zookeeper.zookeeper_session import ZooKeeperSession
from lockcheck.errors import ClusterError
from lockcheck.history import EventType
from lockcheck.servers.wire import Address, Phase, Refused, WireFailure, classify
from tests.backends.claims import NotedClaim, queued
from tests.backends.queueing import granted_in_turn, two_give_up
from tests.backends.servers import NOWHERE, Started, clients, stopped, zookeeper
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SERVER = zookeeper
TTL_MS = 1000


def connect(address: Address, owner: str) -> ZooKeeperLock:
    return ZooKeeperLock((address,), LockSettings(owner, TTL_MS, random.Random(owner)))


@pytest.fixture
def locks(address: Address) -> Iterator[list[ZooKeeperLock]]:
    with clients(ZooKeeperLock, address, TTL_MS, 3) as locks:
        yield locks


@pytest.fixture
def other(address: Address) -> Iterator[ZooKeeperSession]:
    """Somebody else's session, who may do to nodes what the lock's clients do not."""
    session = ZooKeeperSession([address], 10)
    assert session.connected(30)
    yield session
    session.end()


def test_one_at_a_time_in_the_order_in_which_they_came(
    locks: list[ZooKeeperLock], key: str
) -> None:
    granted_in_turn(locks, key)


def test_who_does_not_wait_is_not_queued_and_keys_do_not_mix(
    locks: list[ZooKeeperLock], key: str
) -> None:
    claims = [NotedClaim(key), NotedClaim(key + "2"), NotedClaim(key[:-1])]
    for lock, claim in zip(locks, claims, strict=True):
        assert lock.acquire(claim).valid_ms is None
    assert all("queued" not in claim.told for claim in claims)


def test_heartbeats_hold_it_beyond_its_timeout_and_are_heard_of(
    locks: list[ZooKeeperLock], key: str
) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    waiting = queued(locks[1], NotedClaim(key))
    waiting.join(2.5 * TTL_MS / 1000)
    assert waiting.is_alive()
    assert claim.told.count("renewed") >= 4
    assert set(claim.told) == {"renewing", "renewed"}
    assert waiting.claim.told == ["queued"], "who only waits holds nothing that is renewed"
    locks[0].release(held)
    waiting.join(10)
    assert waiting.grant
    locks[1].release(waiting.grant)


def test_who_is_cut_off_is_told_before_anybody_else_is_let_in(
    server: Started, locks: list[ZooKeeperLock], key: str
) -> None:
    claim = NotedClaim(key)
    began = time.monotonic()
    held = locks[0].acquire(claim)
    with stopped(server[1]):
        assert claim.lost_something.wait(30)
        took_s = time.monotonic() - began
        with pytest.raises(WireFailure) as caught:
            locks[0].release(held)
    assert took_s < 1.2 * TTL_MS / 1000, "heartbeats go every third, and wait as long"
    assert claim.told[-1] == "lost: its session is SUSPENDED"
    answers = [told for told in claim.told if "renewed" in told]
    assert len(answers) == claim.told.count("renewing"), "the one under way has failed"
    assert classify(BACKEND.errors, caught.value)[0] is EventType.INFO
    wait_for(lambda: waits_for_nobody(locks[1], key), "the session that was given up is over")
    locks[0].release(locks[0].acquire(NotedClaim(key)))


def waits_for_nobody(lock: Lock, key: str) -> bool:
    claim = NotedClaim(key)
    lock.release(lock.acquire(claim))
    return "queued" not in claim.told


def test_a_session_that_is_over_is_told_and_another_one_begun(
    locks: list[ZooKeeperLock], key: str
) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    assert isinstance(held.handle, QueueNode)
    held.handle.session.end()
    assert claim.lost_something.wait(30)
    with pytest.raises(WireFailure) as caught:
        locks[0].release(held)
    assert classify(BACKEND.errors, caught.value)[0] is EventType.FAIL
    again = locks[0].acquire(NotedClaim(key))
    assert isinstance(again.handle, QueueNode)
    assert again.handle.session is not held.handle.session
    locks[0].release(again)


def test_a_node_that_is_gone_cannot_be_released(
    locks: list[ZooKeeperLock], other: ZooKeeperSession, key: str
) -> None:
    held = locks[0].acquire(NotedClaim(key))
    assert isinstance(held.handle, QueueNode)
    other.client.delete(held.handle.path)
    with pytest.raises(Refused, match="not-owner"):
        locks[0].release(held)


def test_a_waiter_whose_node_is_gone_is_not_let_in(
    locks: list[ZooKeeperLock], other: ZooKeeperSession, key: str
) -> None:
    held = locks[0].acquire(NotedClaim(key))
    waiting = queued(locks[1], NotedClaim(key))
    [name] = set(other.client.get_children(f"/lock/{key}")) - {held.handle.name}  # type: ignore[attr-defined]
    other.client.delete(f"/lock/{key}/{name}")
    locks[0].release(held)
    waiting.join(30)
    assert isinstance(waiting.failure, Refused)


def test_a_wait_is_bounded_and_leaves_no_place_behind(
    locks: list[ZooKeeperLock], other: ZooKeeperSession, key: str
) -> None:
    held = two_give_up(locks, key)
    assert len(other.client.get_children(f"/lock/{key}")) == 1
    locks[0].release(held)


def break_the_connection(lock: ZooKeeperLock) -> None:
    assert lock._session is not None
    lock._session.client._connection._socket.shutdown(socket.SHUT_RDWR)


def test_a_broken_connection_ends_a_hold_and_keeps_a_place(
    locks: list[ZooKeeperLock], key: str
) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    waiting = queued(locks[1], NotedClaim(key))
    session = locks[1]._session
    assert session is not None
    break_the_connection(locks[1])
    wait_for(lambda: session.changes and session.client.connected, "it is connected again")
    break_the_connection(locks[0])
    assert claim.lost_something.wait(30)
    assert waiting.is_alive()
    assert locks[0].release(held) == {"removed": 1}, "the session went on, after all"
    waiting.join(10)
    assert waiting.grant
    assert waiting.claim.told[0] == "queued"
    assert not waiting.claim.lost_something.is_set(), "that was before it held anything"
    locks[1].release(waiting.grant)


def test_nobody_there_is_a_refusal_before_anything_was_asked(key: str) -> None:
    lock = connect(NOWHERE, "c1")
    with pytest.raises(Refused, match="no session"):
        lock.acquire(NotedClaim(key, patience_s=0.5))
    lock.close()


def test_a_server_that_cannot_be_reached_is_passed_by(server: Started, key: str) -> None:
    lock = ZooKeeperLock(
        (NOWHERE, server[0], NOWHERE), LockSettings("c1", TTL_MS, random.Random(1))
    )
    lock.release(lock.acquire(NotedClaim(key)))
    lock.close()


def test_close_ends_its_threads(server: Started, key: str) -> None:
    before = threading.active_count()
    lock = connect(server[0], "c9")
    lock.acquire(NotedClaim(key))
    lock.close()
    wait_for(lambda: threading.active_count() <= before, "kazoo's threads are gone")


@pytest.mark.parametrize(
    ("name", "names", "before"),
    [
        ("a__lock__0000000003", ["b__lock__0000000001", "c__lock__0000000002"], 1),
        ("a__lock__0000000001", ["b__lock__0000000002"], None),
        ("z__lock__0000000010", ["a__lock__0000000009", "stranger"], 0),
    ],
)
def test_the_one_right_before(name: str, names: list[str], before: int | None) -> None:
    assert predecessor(name, [*names, name], (CONTENDER,)) == (
        None if before is None else names[before]
    )


def test_what_errors_mean() -> None:
    from kazoo.exceptions import ConnectionLoss, OperationTimeoutError, SessionExpiredError

    outcomes = [
        classify(BACKEND.errors, WireFailure(Phase.COMMAND, "z1", cause()))[0]
        for cause in (ConnectionLoss, SessionExpiredError, OperationTimeoutError)
    ]
    assert outcomes == [EventType.INFO, EventType.FAIL, EventType.INFO]


def test_a_hold_is_left_only_with_its_session(locks: list[ZooKeeperLock], key: str) -> None:
    """As after a request for a second lock that was not answered, which ended the session."""
    grant, session = locks[0].acquire(NotedClaim(key)), locks[0]._session
    assert session is not None
    with pytest.raises(ClusterError, match="the session that holds"):
        locks[0].leave(grant)
    locks[0]._end(session)
    locks[0].leave(grant)
