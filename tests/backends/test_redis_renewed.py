"""The watchdog of a lease: it renews what is its client's own, and tells when it is not."""

from __future__ import annotations

import time

import pytest

from lockcheck.servers.redis import RedisNode
from lockcheck.servers.wire import Address, Refused, WireFailure
from tests.backends.claims import NotedClaim, keeper_of
from tests.backends.test_locks import client
from tests.waiting import wait_for

TTL_MS = 600
LONG_MS = 60_000


def test_a_renewal_gives_a_whole_lease_and_a_release_ends_it(redis_address: Address) -> None:
    redis = RedisNode(redis_address, LONG_MS)
    lock, claim = client("redis-renewed", (redis_address,), "c1", LONG_MS), NotedClaim()
    grant = lock.acquire(claim)
    redis.call("PEXPIRE", "lock:k", LONG_MS // 2)  # as if half of it had gone by
    keeper_of(grant).extend()
    left_ms = redis.call("PTTL", "lock:k")
    assert isinstance(left_ms, int)
    assert left_ms > LONG_MS / 2
    lock.release(grant)
    assert redis.call("EXISTS", "lock:k") == 0
    with pytest.raises(Refused, match="not its own"):
        keeper_of(grant).extend()


def test_the_watchdog_renews_and_ends_with_the_hold(redis_address: Address) -> None:
    lock, claim = client("redis-renewed", (redis_address,), "c1", TTL_MS), NotedClaim()
    grant = lock.acquire(claim)
    wait_for(lambda: "renewed" in claim.told or claim.lost_something.is_set(), "it renews")
    lock.leave(grant)
    told = list(claim.told)
    wait_for(lambda: RedisNode(redis_address, LONG_MS).call("EXISTS", "lock:k") == 0, "it runs out")
    assert claim.told == told, "nothing is renewed any more"


def test_who_lost_it_is_told_and_takes_nothing_back(redis_address: Address) -> None:
    redis = RedisNode(redis_address, LONG_MS)
    lock, claim = client("redis-renewed", (redis_address,), "c1", TTL_MS), NotedClaim()
    grant = lock.acquire(claim)
    redis.call("SET", "lock:k", "another one's")
    assert claim.lost_something.wait(30)
    assert "not its own" in claim.told[-1] or "run out" in claim.told[-1]
    with pytest.raises(Refused, match="not-owner"):
        lock.release(grant)
    assert redis.call("GET", "lock:k") == "another one's"
    assert redis.call("PTTL", "lock:k") == -1, "and its lease is not touched"


def test_an_answer_has_to_come_within_what_is_left(redis_address: Address) -> None:
    redis = RedisNode(redis_address, LONG_MS)
    redis.call("PING")
    RedisNode(redis_address, LONG_MS).call("CLIENT", "PAUSE", LONG_MS, "ALL")
    began = time.monotonic()
    with pytest.raises(WireFailure, match="no answer within"):
        redis.call("PING", within_s=0.1)
    assert 0.09 <= time.monotonic() - began < LONG_MS / 1000
