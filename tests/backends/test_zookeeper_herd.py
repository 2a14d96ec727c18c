"""ZooKeeper's lock without a queue, on a real server: everybody wakes, one is let in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from lockcheck.backends.zookeeper.zookeeper_herd import BACKEND, HerdLock
from lockcheck.backends.zookeeper.zookeeper_nodes import QueueNode
from lockcheck.history import EventType
from lockcheck.servers.wire import Address, Refused, WireFailure, classify
from tests.backends.claims import Acquiring, NotedClaim
from tests.backends.servers import Started, clients, stopped, zookeeper
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SERVER = zookeeper


@pytest.fixture
def locks(address: Address, ttl_ms: int) -> Iterator[list[HerdLock]]:
    with clients(HerdLock, address, ttl_ms, 3) as locks:
        yield locks


def watchers(lock: HerdLock, key: str) -> int:
    """How many watch the node."""
    assert lock._session is not None
    said = str(lock._session.client.command(b"wchp"))
    _, found, after = said.partition(f"/lock/{key}/held\n")
    waiting = iter(after.split("\n") if found else ())
    return sum(1 for _ in iter(lambda: next(waiting, "").startswith("\t"), False))


def test_all_wake_up_and_one_is_let_in(locks: list[HerdLock], key: str) -> None:
    held = locks[0].acquire(NotedClaim(key))
    waiting = [Acquiring(lock, NotedClaim(key)) for lock in locks[1:]]
    wait_for(lambda: watchers(locks[0], key) == 2, "both watch the same node")
    assert locks[0].release(held) == {"removed": 1}
    first = wait_for(lambda: [each for each in waiting if each.grant], "one of them has it")
    [one] = first
    wait_for(lambda: watchers(locks[0], key) == 1, "the other one has tried, and watches again")
    assert one.grant
    assert (one.grant.token or 0) > (held.token or 0)
    one.lock.release(one.grant)
    [other] = [each for each in waiting if each is not one]
    other.join(30)
    assert other.grant
    assert (other.grant.token or 0) > (one.grant.token or 0)
    assert "queued" not in one.claim.told + other.claim.told, "nobody had a place"
    other.lock.release(other.grant)


def test_a_wait_is_bounded(locks: list[HerdLock], key: str) -> None:
    held = locks[0].acquire(NotedClaim(key))
    with pytest.raises(Refused, match="waited too long"):
        locks[1].acquire(NotedClaim(key, patience_s=0.2))
    locks[0].release(held)


@pytest.mark.parametrize("ttl_ms", [2000])
def test_who_is_cut_off_is_told_and_its_late_release_takes_nothing(
    server: Started, locks: list[HerdLock], key: str
) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    with stopped(server[1]):
        assert claim.lost_something.wait(30)
        with pytest.raises(WireFailure):
            locks[0].release(held)
    assert claim.told[-1] == "lost: its session is SUSPENDED"
    next_one = locks[1].acquire(NotedClaim(key))
    with pytest.raises(WireFailure):
        locks[0].release(held)
    assert isinstance(next_one.handle, QueueNode)
    assert locks[1].release(next_one) == {"removed": 1}


def test_kazoos_next_session_releases_nothing_of_the_last_one(
    server: Started, locks: list[HerdLock], key: str
) -> None:
    """When a session has expired, kazoo begins another one by itself."""
    held = locks[0].acquire(claim := NotedClaim(key))
    session = locks[0]._session
    assert session is not None
    host, port = server[0]
    twin = KazooClient(f"{host}:{port}", client_id=session.client.client_id)
    twin.start()
    twin.stop()  # and with it the session that both were in
    assert claim.lost_something.wait(30)
    wait_for(lambda: session.over and session.client.connected, "kazoo has another session")
    other = locks[1].acquire(NotedClaim(key))
    with pytest.raises(WireFailure) as caught:
        locks[0].release(held)
    assert classify(BACKEND.errors, caught.value)[0] is EventType.FAIL
    assert locks[1].release(other) == {"removed": 1}
