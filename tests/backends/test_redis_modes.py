"""Locks on one Redis that more than one may hold, or one more than once; and leases of theirs."""

from __future__ import annotations

import pytest

from lockcheck.backends.base import Grant, Lock, Mode
from lockcheck.backends.redis.redis_semaphore import PERMITS
from lockcheck.servers.redis import RedisNode
from lockcheck.servers.wire import Address, Refused
from tests.backends.claims import NotedClaim
from tests.backends.test_locks import client
from tests.waiting import wait_for

LONG_MS = 60_000  # no lease runs out while a slow machine thinks
SHORT_MS = 50


def clients(backend: str, server: Address, number: int, ttl_ms: int = LONG_MS) -> list[Lock]:
    return [client(backend, (server,), f"c{n}", ttl_ms) for n in range(1, number + 1)]


def is_refused(lock: Lock, mode: Mode = Mode.EXCLUSIVE) -> bool:
    try:
        lock.acquire(NotedClaim(mode=mode))
    except Refused:
        return True
    return False


def in_the_end(lock: Lock, mode: Mode = Mode.EXCLUSIVE) -> None:
    wait_for(lambda: not is_refused(lock, mode), "a lease is over, and it is granted")


def releases_too_late(lock: Lock, grant: Grant) -> None:
    with pytest.raises(Refused, match="not-owner"):
        lock.release(grant)


# --- shared and exclusive ------------------------------------------------------------------------


def test_readers_together_and_writers_alone(redis_address: Address) -> None:
    reader, other, writer = clients("redis-rw", redis_address, 3)
    one, two = (lock.acquire(NotedClaim(mode=Mode.SHARED)) for lock in (reader, other))
    assert (one.mode, two.mode) == (Mode.SHARED, Mode.SHARED)
    assert is_refused(writer)
    reader.release(one)
    assert is_refused(writer), "one reader is left"
    other.release(two)
    alone = writer.acquire(NotedClaim())
    assert is_refused(reader, Mode.SHARED)
    assert is_refused(other)
    writer.release(alone)
    assert not is_refused(reader, Mode.SHARED)


def test_each_reader_has_a_lease_of_its_own(redis_address: Address) -> None:
    [late] = clients("redis-rw", redis_address, 1, SHORT_MS)
    [_, lasting, writer] = clients("redis-rw", redis_address, 3)
    gone = late.acquire(NotedClaim(mode=Mode.SHARED))
    kept = lasting.acquire(NotedClaim(mode=Mode.SHARED))
    assert is_refused(writer)
    lasting.release(kept)
    in_the_end(writer)
    releases_too_late(late, gone)


def test_a_writers_lease_ends_for_readers_too(redis_address: Address) -> None:
    [late] = clients("redis-rw", redis_address, 1, SHORT_MS)
    [_, reader] = clients("redis-rw", redis_address, 2)
    gone = late.acquire(NotedClaim())
    in_the_end(reader, Mode.SHARED)
    releases_too_late(late, gone)


# --- entered again -------------------------------------------------------------------------------


def test_it_is_free_when_it_was_left_as_often_as_entered(redis_address: Address) -> None:
    one, other = clients("redis-reentrant", redis_address, 2)
    grants = [one.acquire(NotedClaim()) for _ in range(3)]
    for grant in grants:
        assert is_refused(other)
        assert one.release(grant) == {"removed": 1}
    taken = other.acquire(NotedClaim())
    releases_too_late(one, grants[0])
    other.release(taken)


def test_entering_again_gives_a_whole_lease(redis_address: Address) -> None:
    [short] = clients("redis-reentrant", redis_address, 1, 20_000)
    short.acquire(NotedClaim())
    redis = RedisNode(redis_address, LONG_MS)
    redis.call("PEXPIRE", "lock:k", 10_000)  # as if half of it had gone by
    short.acquire(NotedClaim())
    left_ms = redis.call("PTTL", "lock:k")
    assert isinstance(left_ms, int)
    assert left_ms > 10_000


def test_whose_count_nobody_knows_goes_on_as_another(redis_address: Address) -> None:
    [lock] = clients("redis-reentrant", redis_address, 1)
    lock.leave(lock.acquire(NotedClaim()))
    assert is_refused(lock), "it would be let into a hold that it cannot leave"


# --- permits -------------------------------------------------------------------------------------


def test_as_many_as_there_are_permits_and_no_more(redis_address: Address) -> None:
    *holders, late = clients("redis-semaphore", redis_address, PERMITS + 1)
    grants = [lock.acquire(NotedClaim()) for lock in holders]
    assert is_refused(late)
    holders[1].release(grants[1])
    taken = late.acquire(NotedClaim())
    assert is_refused(holders[1])
    releases_too_late(holders[1], grants[1])
    late.release(taken)


def test_a_permit_comes_back_when_its_lease_is_over(redis_address: Address) -> None:
    [late] = clients("redis-semaphore", redis_address, 1, SHORT_MS)
    [_, *others] = clients("redis-semaphore", redis_address, PERMITS + 1)
    gone = late.acquire(NotedClaim())
    for lock in others:
        in_the_end(lock)
    releases_too_late(late, gone)
    assert is_refused(late)
