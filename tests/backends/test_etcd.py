"""etcd's lock on a real etcd: the queue, the keeper, and what is told when a lease is gone."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest

from lockcheck.backends.base import Grant, Lock, LockSettings
from lockcheck.backends.etcd.etcd import BACKEND
from lockcheck.backends.etcd.etcd_leased import QueueKey
from lockcheck.history import EventType, Refusal
from lockcheck.servers.wire import Address, Phase, Refused, WireFailure, classify
from lockcheck.servers.wire.etcd import ETCD_ERRORS, EtcdMembers, EtcdNode, as_bytes
from tests.backends.claims import Acquiring, NotedClaim, keeper_of, queued
from tests.backends.queueing import granted_in_turn, two_give_up
from tests.backends.servers import NOWHERE, Started, clients, etcd, stopped
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SERVER = etcd
TTL_MS = 1000


@pytest.fixture
def locks(address: Address) -> Iterator[list[Lock]]:
    with clients(BACKEND.connect, address, TTL_MS, 3) as locks:
        yield locks


def node(address: Address) -> EtcdNode:
    return EtcdNode(address, 5)


def revoke(address: Address, grant: Grant) -> None:
    """As if it had run out."""
    assert isinstance(grant.handle, QueueKey)
    node(address).call("lease/revoke", {"ID": grant.handle.id})


def test_one_at_a_time_in_the_order_in_which_they_came(locks: list[Lock], key: str) -> None:
    granted_in_turn(locks, key)


def test_who_does_not_wait_is_not_queued_and_keys_do_not_mix(locks: list[Lock], key: str) -> None:
    claims = [NotedClaim(key), NotedClaim(key + "2"), NotedClaim(key[:-1])]
    grants = [lock.acquire(claim) for lock, claim in zip(locks, claims, strict=True)]
    assert all("queued" not in claim.told for claim in claims)
    for lock, grant in zip(locks, grants, strict=True):
        assert 0 < (grant.valid_ms or 0) <= TTL_MS
        assert lock.release(grant) == {"removed": 1}


def test_a_keeper_holds_it_beyond_its_lease_and_is_heard_of(locks: list[Lock], key: str) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    waiting = queued(locks[1], NotedClaim(key))
    waiting.join(2.5 * TTL_MS / 1000)
    assert waiting.is_alive()
    assert waiting.claim.told == ["queued"], "its place is kept alive, and that renews no hold"
    assert claim.told[:2] == ["renewing", "renewed"]
    assert set(claim.told) == {"renewing", "renewed"}
    locks[0].release(held)
    told = len(claim.told)
    waiting.join(10)
    assert waiting.grant
    assert waiting.claim.told == ["queued"]
    assert (waiting.grant.valid_ms or 0) > TTL_MS - 200, "it was renewed right before it was let in"
    time.sleep(TTL_MS / 1000)
    assert len(claim.told) == told, "it renews no more"
    locks[1].release(waiting.grant)


def test_a_lease_that_is_gone_is_told_and_its_release_refused(
    locks: list[Lock], address: Address, key: str
) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    revoke(address, held)
    assert claim.lost_something.wait(30)
    assert claim.told[-3:] == [
        "renewing", "not renewed: the lease is gone",
        "lost: its renewal was refused: the lease is gone",
    ]  # fmt: skip
    other = locks[1].acquire(NotedClaim(key))
    with pytest.raises(Refused, match="not-owner"):
        locks[0].release(held)
    locks[1].release(other)


def test_who_is_cut_off_is_told_when_a_lease_has_gone_by(
    server: Started, locks: list[Lock], key: str
) -> None:
    claim = NotedClaim(key)
    began = time.monotonic()
    locks[0].acquire(claim)
    with stopped(server[1]):
        assert claim.lost_something.wait(30)
        took_s = time.monotonic() - began
    assert took_s >= TTL_MS / 1000
    assert claim.told[-1] == "lost: its lease has run out: no renewal was granted in time"
    assert any("TimeoutError" in told for told in claim.told)


def test_a_waiter_whose_lease_is_gone_is_not_let_in(
    locks: list[Lock], address: Address, key: str
) -> None:
    """What etcd 3.4 did: granted on a lease that was dead already."""
    held = locks[0].acquire(NotedClaim(key))
    waiting = queued(locks[1], NotedClaim(key))
    places = node(address).call(
        "kv/range", {"key": as_bytes(f"lock/{key}/"), "range_end": as_bytes(f"lock/{key}0")}
    )["kvs"]
    [lease] = {kv["lease"] for kv in places} - {held.handle.id}  # type: ignore[attr-defined]
    node(address).call("lease/revoke", {"ID": lease})
    locks[0].release(held)
    waiting.join(30)
    assert isinstance(waiting.failure, Refused)


def test_a_wait_is_bounded_and_leaves_no_place_behind(locks: list[Lock], key: str) -> None:
    held = two_give_up(locks, key)
    locks[0].release(held)
    again = NotedClaim(key)
    locks[0].release(locks[0].acquire(again))
    assert "queued" not in again.told


def test_a_hold_that_nobody_releases_runs_out(locks: list[Lock], key: str) -> None:
    held = locks[0].acquire(NotedClaim(key))
    waiting = queued(locks[1], NotedClaim(key))
    locks[0].leave(held)
    waiting.join(30)
    assert waiting.grant
    locks[1].release(waiting.grant)


def test_a_renewal_of_a_lease_that_is_gone(locks: list[Lock], address: Address, key: str) -> None:
    held = locks[0].acquire(NotedClaim(key))
    time.sleep(0.05)
    keeper_of(held).extend()
    assert keeper_of(held).left_s() * 1000 > (held.valid_ms or 0) - 50
    revoke(address, held)
    with pytest.raises(Refused, match="lease is gone"):
        keeper_of(held).extend()


def test_close_ends_the_keepers(address: Address, key: str) -> None:
    before = threading.active_count()
    lock = BACKEND.connect((address,), LockSettings("c9", TTL_MS, random.Random(9)))
    lock.acquire(NotedClaim(key))
    lock.close()
    assert threading.active_count() <= before


def test_where_a_member_cannot_be_reached_the_next_attempt_goes_to_another(
    address: Address, key: str
) -> None:
    members = EtcdMembers((NOWHERE, address), 5)
    with pytest.raises(WireFailure) as caught:
        members.call("kv/range", {"key": as_bytes(key)})
    assert caught.value.phase is Phase.CONNECT
    assert classify(ETCD_ERRORS, caught.value)[0] is EventType.FAIL
    assert members.call("kv/range", {"key": as_bytes(key)})["header"]


def test_no_member_at_all_is_a_refusal_before_anything_was_put(key: str) -> None:
    lock = BACKEND.connect((NOWHERE,), LockSettings("c1", TTL_MS, random.Random(1)))
    with pytest.raises(Refused, match="no lease"):
        lock.acquire(NotedClaim(key))


def test_what_errors_mean(server: Started, key: str) -> None:
    address, process = server
    put = {"success": [{"request_put": {"key": as_bytes(key), "lease": 12345}}]}
    with pytest.raises(WireFailure) as caught:
        node(address).call("kv/txn", put)
    outcome, meaning, refused = classify(ETCD_ERRORS, caught.value)
    assert (outcome, meaning.partition(":")[0]) == (EventType.FAIL, "the lease is gone")
    assert refused is Refusal.GONE
    with pytest.raises(WireFailure) as caught:
        node(address).call("kv/range", {"key": "no base64"})
    assert classify(ETCD_ERRORS, caught.value)[0] is EventType.INFO
    with stopped(process), pytest.raises(WireFailure) as caught:
        EtcdNode(address, 0.2).call("kv/range", {"key": as_bytes(key)})
    assert caught.value.phase is Phase.COMMAND
    assert classify(ETCD_ERRORS, caught.value)[0] is EventType.INFO


def test_an_idle_connection_that_was_closed_is_not_an_unknown_answer(address: Address) -> None:
    one = node(address)
    ask = {"key": as_bytes("k")}
    one.call("kv/range", ask)
    one._connection.sock.shutdown(2)
    assert one.call("kv/range", ask)["header"]


def test_a_watch_hears_of_a_deletion_and_of_nothing_else(address: Address, key: str) -> None:
    one, ask = node(address), {"key": as_bytes(key)}
    revision = int(one.call("kv/put", ask)["header"]["revision"])
    assert not node(address).await_deletion(key, revision + 1, NotedClaim(patience_s=0.2).left_s)
    claim = NotedClaim()
    watching = Acquiring(Watching(address, key, revision + 1), claim)
    wait_for(watching.is_alive, "it watches")
    one.call("kv/put", ask)
    one.call("kv/deleterange", ask)
    watching.join(10)
    assert watching.grant


class Watching(Lock):
    """A watch, as if it were a lock: what is waited for is the deletion."""

    def __init__(self, address: Address, key: str, revision: int) -> None:
        self._ask = (address, key, revision)

    def acquire(self, claim: NotedClaim) -> Grant:  # type: ignore[override]
        address, key, revision = self._ask
        assert node(address).await_deletion(key, revision, claim.left_s)
        return Grant(key, None)

    def release(self, grant: Grant) -> object: ...
    def close(self) -> None: ...
