"""The locks on a primary that fails over, against real Sentinels."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from lockcheck.backends import BACKENDS
from lockcheck.backends.base import Grant, Lock, LockSettings
from lockcheck.history import EventType, Refusal
from lockcheck.servers.redis import REDIS_ERRORS, RedisNode
from lockcheck.servers.redis_primary import PRIMARY, RedisPrimary
from lockcheck.servers.wire import Address, Phase, Refused, WireFailure, classify
from tests.backends.claims import NotedClaim
from tests.backends.redis_cluster import Cluster, redis_cluster
from tests.backends.servers import NOWHERE, stopped
from tests.waiting import wait_for

LONG_MS = 60_000  # no lease runs out, and no deadline is met, while a slow machine thinks


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with redis_cluster(tmp_path) as cluster:
        yield cluster


def client(backend: str, servers: tuple[Address, ...], owner: str, ttl_ms: int = LONG_MS) -> Lock:
    settings = LockSettings(owner, ttl_ms, random.Random(owner))
    return BACKENDS[backend].connect(servers, settings)


def test_after_a_failover_the_new_primary_is_found(cluster: Cluster) -> None:
    one, other = (client("redis-failover", cluster.contact, owner) for owner in ("c1", "c2"))
    grant = one.acquire(NotedClaim())
    with pytest.raises(Refused, match="held"):
        other.acquire(NotedClaim())
    one.release(grant)
    [old] = cluster.leaders()
    assert old is cluster.replicated[0]
    old.kill()

    keys = map(str, count())  # each once: nobody knows what became of one that was not answered
    later = wait_for(lambda: _asked(other, next(keys)), "a replica is promoted, and found")
    assert later is not None
    with pytest.raises(Refused, match="held"):
        wait_for(lambda: _asked(one, later.key), "the other one finds it, too")
    assert other.release(later) == {"removed": 1}
    wait_for(cluster.leaders, "the last replica follows the new primary")
    old.start_again()
    role = RedisNode(old.address, LONG_MS, role="slave")
    wait_for(lambda: _answers(role), "the old one comes back, and is made a replica")
    assert old not in cluster.leaders()


def _asked(lock: Lock, key: str) -> Grant | None:
    try:
        return lock.acquire(NotedClaim(key))
    except WireFailure:
        return None


def _answers(node: RedisNode) -> bool:
    try:
        return node.call("PING") == "PONG"
    except WireFailure:
        return False


def test_a_grant_that_no_replica_has_is_taken_back(cluster: Cluster) -> None:
    lock = client("redis-wait", cluster.contact, "c1", ttl_ms=4000)
    lock.release(lock.acquire(NotedClaim()))
    primary, *replicas = cluster.replicated
    with ExitStack() as silent:
        for replica in replicas:
            silent.enter_context(stopped(replica.process))
        with pytest.raises(Refused, match="taken back: 0 replicas have it") as refused:
            lock.acquire(NotedClaim())
        assert refused.value.code is Refusal.UNAVAILABLE
        assert RedisNode(primary.address, LONG_MS).call("GET", "lock:k") is None


# --- what went wrong -----------------------------------------------------------------------------


def outcome(failure: WireFailure) -> tuple[Phase, EventType, str]:
    failed = classify(REDIS_ERRORS, failure)
    return failure.phase, failed.outcome, failed.error


def test_without_sentinels_nothing_was_sent() -> None:
    with pytest.raises(WireFailure) as caught:
        RedisPrimary((NOWHERE, NOWHERE), LONG_MS).call("PING")
    phase, certain, why = outcome(caught.value)
    assert (phase, certain) == (Phase.CONNECT, EventType.FAIL)
    assert "no Sentinel names a primary" in why


def test_a_replica_is_no_primary_and_takes_no_writes(redis_address: Address) -> None:
    node = RedisNode(redis_address, LONG_MS)
    node.call("REPLICAOF", *NOWHERE)
    with pytest.raises(WireFailure) as caught:
        node.call("SET", "k", "v")
    assert outcome(caught.value)[:2] == (Phase.COMMAND, EventType.FAIL)
    with pytest.raises(WireFailure) as caught:
        RedisNode(redis_address, LONG_MS, role=PRIMARY).call("SET", "k", "v")
    phase, certain, why = outcome(caught.value)
    assert (phase, certain) == (Phase.CONNECT, EventType.FAIL)
    assert "no primary any more" in why


def test_what_belongs_to_a_call_is_not_asked_on_another_connection(redis_address: Address) -> None:
    node = RedisNode(redis_address, LONG_MS)
    node.call("SET", "k", "v")
    assert node.call_next("WAIT", 0, 1) == 0
    node.close()
    with pytest.raises(WireFailure) as caught:
        node.call_next("WAIT", 0, 1)
    assert caught.value.phase is Phase.CONNECT
