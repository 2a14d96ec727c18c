"""etcd's lock without a queue, on a real etcd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lockcheck.backends.base import Lock
from lockcheck.backends.etcd.etcd_leased import QueueKey
from lockcheck.backends.etcd.etcd_txn import BACKEND
from lockcheck.servers.wire import Address, Refused
from lockcheck.servers.wire.etcd import EtcdNode
from tests.backends.claims import NotedClaim
from tests.backends.servers import clients, etcd
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SERVER = etcd


@pytest.fixture
def locks(address: Address, ttl_ms: int) -> Iterator[list[Lock]]:
    with clients(BACKEND.connect, address, ttl_ms, 2) as locks:
        yield locks


def leases(address: Address) -> set[str]:
    said = EtcdNode(address, 5).call("lease/leases", {})
    return {lease["ID"] for lease in said.get("leases", [])}


def test_one_at_a_time_and_nobody_waits(locks: list[Lock], address: Address, key: str) -> None:
    claim, before = NotedClaim(key), leases(address)
    held = locks[0].acquire(claim)
    for _ in range(3):
        with pytest.raises(Refused, match="held"):
            locks[1].acquire(NotedClaim(key))
    assert isinstance(held.handle, QueueKey)
    assert leases(address) - before == {held.handle.id}, "who is refused leaves none behind"
    assert locks[0].release(held) == {"removed": 1}
    again = locks[1].acquire(NotedClaim(key))
    assert (again.token or 0) > (held.token or 0)
    locks[1].release(again)
    assert "queued" not in claim.told
    assert not leases(address) - before


@pytest.mark.parametrize("ttl_ms", [2000])
def test_a_keeper_holds_it_and_tells_when_the_lease_is_gone(
    locks: list[Lock], address: Address, key: str
) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    wait_for(lambda: claim.told.count("renewed") > 1, "it is renewed")
    with pytest.raises(Refused, match="held"):
        locks[1].acquire(NotedClaim(key))
    assert isinstance(held.handle, QueueKey)
    EtcdNode(address, 5).call("lease/revoke", {"ID": held.handle.id})
    assert claim.lost_something.wait(30)
    other = locks[1].acquire(NotedClaim(key))
    with pytest.raises(Refused, match="not-owner"):
        locks[0].release(held)
    locks[1].release(other)
