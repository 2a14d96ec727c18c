"""ZooKeeper's shared lock on a real server: readers together, writers alone, in their order."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from lockcheck.backends.base import Grant, LockSettings, Mode
from lockcheck.backends.zookeeper.zookeeper_queue import predecessor
from lockcheck.backends.zookeeper.zookeeper_rw import ZooKeeperSharedLock
from lockcheck.servers.wire import Address
from tests.backends.claims import NotedClaim, queued
from tests.backends.servers import clients, zookeeper

pytestmark = pytest.mark.cluster
SERVER = zookeeper


@pytest.fixture
def locks(address: Address, ttl_ms: int) -> Iterator[list[ZooKeeperSharedLock]]:
    with clients(ZooKeeperSharedLock, address, ttl_ms, 4) as locks:
        yield locks


def reading(key: str) -> NotedClaim:
    return NotedClaim(key, mode=Mode.SHARED)


def test_readers_together_writers_alone_and_nobody_is_passed_by(
    locks: list[ZooKeeperSharedLock], key: str
) -> None:
    one, other, writer, late = locks
    first, second = one.acquire(reading(key)), other.acquire(reading(key))
    assert first.mode is second.mode is Mode.SHARED
    writing = queued(writer, NotedClaim(key))
    reads_late = queued(late, reading(key))
    one.release(first)
    assert writing.is_alive(), "there is a reader still"
    other.release(second)
    writing.join(30)
    assert writing.grant
    assert writing.grant.mode is Mode.EXCLUSIVE
    assert reads_late.is_alive(), "it came after the writer"
    writer.release(writing.grant)
    reads_late.join(30)
    assert reads_late.grant
    tokens = [grant.token or 0 for grant in (first, second, writing.grant, reads_late.grant)]
    assert tokens == sorted(set(tokens))
    late.release(reads_late.grant)


def test_all_readers_behind_a_writer_are_let_in_at_once(
    locks: list[ZooKeeperSharedLock], key: str
) -> None:
    held: Grant = locks[0].acquire(NotedClaim(key))
    readers = [queued(lock, reading(key)) for lock in locks[1:]]
    locks[0].release(held)
    for reader in readers:
        reader.join(30)
        assert reader.grant
    for reader in readers:
        assert reader.grant
        reader.lock.release(reader.grant)


@pytest.mark.parametrize(
    ("mode", "before"),
    [(Mode.SHARED, "b-write-0000000002"), (Mode.EXCLUSIVE, "c-read-0000000003")],
)
def test_whom_it_waits_for(mode: Mode, before: str) -> None:
    lock = ZooKeeperSharedLock((("127.0.0.1", 1),), LockSettings("c1", 10_000, random.Random(1)))
    queue = ["a-read-0000000001", "b-write-0000000002", "c-read-0000000003", "x-write-0000000009"]
    own = f"own{lock._kind(mode)}0000000004"
    assert predecessor(own, [*queue, own], lock._rivals(mode)) == before
