"""etcd's own lock service on a real etcd: who waits there, who is let in, and what is told."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from lockcheck.backends.base import Lock, LockSettings
from lockcheck.backends.etcd.etcd_leased import QueueKey
from lockcheck.backends.etcd.etcd_lock_service import BACKEND
from lockcheck.history import EventType
from lockcheck.servers.wire import Address, Refused, WireFailure, classify
from lockcheck.servers.wire.etcd import EtcdNode, as_bytes
from tests.backends.claims import NotedClaim, queued
from tests.backends.queueing import granted_in_turn, two_give_up
from tests.backends.servers import Started, clients, etcd, said, stopped
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SERVER = etcd
short = pytest.mark.parametrize("ttl_ms", [2000])  # the others outlast any stall of a machine


@pytest.fixture
def locks(address: Address, ttl_ms: int) -> Iterator[list[Lock]]:
    with clients(BACKEND.connect, address, ttl_ms, 3) as locks:
        yield locks


def places(address: Address, key: str) -> dict[str, str]:
    """The lease of each key in the queue."""
    ask = {"key": as_bytes(f"lock/{key}/"), "range_end": as_bytes(f"lock/{key}0")}
    found = EtcdNode(address, 5).call("kv/range", ask).get("kvs", [])
    return {kv["key"]: kv["lease"] for kv in found}


def revoke(address: Address, lease: str) -> None:
    """As if it had run out."""
    EtcdNode(address, 5).call("lease/revoke", {"ID": lease})


def test_one_at_a_time_in_the_order_in_which_they_came(
    locks: list[Lock], address: Address, key: str
) -> None:
    granted_in_turn(locks, key)
    assert places(address, key) == {}


@short
def test_a_keeper_holds_it_and_keeps_a_place_and_is_heard_of(locks: list[Lock], key: str) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    waiting = queued(locks[1], NotedClaim(key))
    wait_for(lambda: claim.told.count("renewed") > 1, "it is renewed")
    assert waiting.is_alive()
    assert waiting.claim.told == ["queued"], "its place is kept alive, and that renews no hold"
    assert set(claim.told) - {"queued"} == {"renewing", "renewed"}, "who looks late sees its place"
    locks[0].release(held)
    waiting.join(10)
    assert waiting.grant
    assert (waiting.grant.valid_ms or 0) > 0
    wait_for(lambda: "renewed" in waiting.claim.told, "the hold is renewed")
    locks[1].release(waiting.grant)


@short
def test_a_waiter_whose_lease_is_gone_is_let_in_by_etcd_3_4_and_by_no_later_one(
    locks: list[Lock], address: Address, key: str
) -> None:
    held = locks[0].acquire(NotedClaim(key))
    waiting = queued(locks[1], NotedClaim(key))
    assert isinstance(held.handle, QueueKey)
    [dead] = set(places(address, key).values()) - {held.handle.id}
    revoke(address, dead)
    wait_for(lambda: len(places(address, key)) == 1, "its key is gone")
    assert waiting.is_alive(), "it is the server that says so, or does not"
    locks[0].release(held)
    waiting.join(30)
    assert not waiting.is_alive()
    if b'"etcdserver":"3.4.' not in said(address, b"GET /version HTTP/1.0\r\n\r\n"):
        assert isinstance(waiting.failure, Refused)
        assert "session is expired" in str(waiting.failure)
        assert waiting.claim.told == ["queued"]
        return
    assert waiting.grant, "granted on a lease that is dead"
    other = locks[2].acquire(NotedClaim(key))
    assert (other.token or 0) > (waiting.grant.token or 0), "a guard tells them apart"
    assert waiting.claim.lost_something.wait(30), "its next renewal is refused"
    with pytest.raises(WireFailure) as caught:
        locks[1].release(waiting.grant)
    assert classify(BACKEND.errors, caught.value)[0] is EventType.INFO
    locks[2].release(other)


def test_a_wait_is_bounded_and_leaves_no_place_behind(
    locks: list[Lock], address: Address, key: str
) -> None:
    held = two_give_up(locks, key)
    assert isinstance(held.handle, QueueKey)
    assert set(places(address, key).values()) == {held.handle.id}
    locks[0].release(held)


@short
def test_a_hold_whose_lease_is_gone_is_told_and_its_release_unknown(
    locks: list[Lock], address: Address, key: str
) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    assert isinstance(held.handle, QueueKey)
    revoke(address, held.handle.id)
    assert claim.lost_something.wait(30)
    with pytest.raises(WireFailure) as caught:
        locks[0].release(held)
    outcome, meaning, _ = classify(BACKEND.errors, caught.value)
    assert outcome is EventType.INFO
    assert "gone already" in meaning


@short
def test_who_is_cut_off_in_the_queue_has_gone_when_nobody_can_say_so(
    server: Started, locks: list[Lock], key: str
) -> None:
    """Its call was ended, its lease could not be revoked: it may yet be let in."""
    held = locks[0].acquire(NotedClaim(key))
    waiting = queued(locks[1], leaving := NotedClaim(key))
    with stopped(server[1]):
        leaving.leaving.set()
        waiting.join(30)
    assert isinstance(waiting.failure, WireFailure)
    assert classify(BACKEND.errors, waiting.failure)[0] is EventType.INFO
    locks[0].leave(held)


def test_close_ends_the_keepers(address: Address, key: str) -> None:
    before = threading.active_count()
    lock = BACKEND.connect((address,), LockSettings("c9", 10_000, random.Random(9)))
    lock.acquire(NotedClaim(key))
    lock.close()
    assert threading.active_count() <= before
