"""Each lock against real servers: who gets in, who may release, what a token is worth."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from lockcheck.backends import BACKENDS
from lockcheck.backends.base import Grant, Lock, LockSettings
from lockcheck.backends.redis.redlock import node_timeout_ms
from lockcheck.history import EventType, Refusal
from lockcheck.servers.kind import Kind
from lockcheck.servers.redis import REDIS_ERRORS, RedisNode
from lockcheck.servers.wire import Address, Phase, Refused, WireFailure, classify
from tests.backends.claims import NotedClaim
from tests.backends.servers import NOWHERE

ON_REDIS = [
    name
    for name, backend in BACKENDS.items()
    if backend.servers[0].kind == Kind("redis")
    and backend.promises.permits == 1
    and not backend.promises.waits
]
COMPARING = [name for name in ON_REDIS if name != "redis-naive"]


def client(backend: str, servers: tuple[Address, ...], owner: str, ttl_ms: int = 1000) -> Lock:
    settings = LockSettings(owner, ttl_ms, random.Random(owner))
    return BACKENDS[backend].connect(servers, settings)


@pytest.mark.parametrize("backend", ON_REDIS)
def test_one_at_a_time(backend: str, redis_address: Address) -> None:
    one, other = (client(backend, (redis_address,), owner) for owner in ("c1", "c2"))
    grant = one.acquire(NotedClaim())
    with pytest.raises(Refused, match="held"):
        other.acquire(NotedClaim())
    other.acquire(NotedClaim("another key"))
    one.release(grant)
    other.acquire(NotedClaim())


@pytest.mark.parametrize("backend", ON_REDIS)
def test_a_lease_runs_out(backend: str, redis_address: Address) -> None:
    one, other = (client(backend, (redis_address,), owner) for owner in ("c1", "c2"))
    grant = one.acquire(NotedClaim())
    assert grant.valid_ms is not None
    assert 0 < grant.valid_ms <= 1000
    RedisNode(redis_address, 1000).call("DEL", "lock:k")  # as if it had
    other.acquire(NotedClaim())


@pytest.mark.parametrize("backend", COMPARING)
def test_a_release_compares(backend: str, redis_address: Address) -> None:
    one, other = (client(backend, (redis_address,), owner) for owner in ("c1", "c2"))
    late = one.acquire(NotedClaim())
    RedisNode(redis_address, 1000).call("DEL", "lock:k")
    other.acquire(NotedClaim())
    with pytest.raises(Refused, match="not-owner"):
        one.release(late)
    with pytest.raises(Refused, match="held"):
        one.acquire(NotedClaim())


def test_a_naive_release_does_not(redis_address: Address) -> None:
    one, other = (client("redis-naive", (redis_address,), owner) for owner in ("c1", "c2"))
    late = one.acquire(NotedClaim())
    RedisNode(redis_address, 1000).call("DEL", "lock:k")
    other.acquire(NotedClaim())
    assert one.release(late) == {"removed": 1}
    assert not BACKENDS["redis-naive"].promises.checks_owner
    assert one.acquire(NotedClaim())


@pytest.mark.parametrize("backend", ["redis-fenced", "redis-renewed"])
def test_tokens_grow(backend: str, redis_address: Address) -> None:
    lock = client(backend, (redis_address,), "c1")
    tokens = []
    for _ in range(3):
        grant = lock.acquire(NotedClaim())
        tokens.append(grant.token)
        lock.release(grant)
    assert tokens == [1, 2, 3]


def test_redlock_takes_a_majority_and_no_less(redis_address: Address) -> None:
    """The same server three times would refuse itself, so one stands for a minority of five."""
    minority = client("redlock", (redis_address, NOWHERE, NOWHERE, NOWHERE, NOWHERE), "c1")
    with pytest.raises(Refused, match="no-quorum") as refused:
        minority.acquire(NotedClaim())
    assert refused.value.code is Refusal.UNAVAILABLE
    assert RedisNode(redis_address, 1000).call("GET", "lock:k") is None, "it released what it had"


def test_redlock_says_when_it_does_not_know_what_it_released(redis_address: Address) -> None:
    lock = client("redlock", (redis_address, NOWHERE, NOWHERE), "c1")
    with pytest.raises(WireFailure) as caught:
        lock.release(Grant("k", "not the secret"))
    outcome, meaning, refused = classify(BACKENDS["redlock"].errors, caught.value)
    assert (outcome, refused) == (EventType.INFO, None)
    assert "some servers" in meaning


def test_redlocks_validity_allows_for_drift(redis_address: Address) -> None:
    grant = client("redlock", (redis_address,), "c1", ttl_ms=1000).acquire(NotedClaim())
    assert grant.valid_ms is not None
    assert grant.valid_ms <= 1000 - 10 - 2


def test_redlocks_timeout_per_server_is_small_against_the_lease() -> None:
    assert [node_timeout_ms(ttl_ms) for ttl_ms in (50, 400, 1000, 60_000)] == [5, 20, 50, 50]


def test_what_was_never_sent_certainly_did_not_happen() -> None:
    with pytest.raises(WireFailure) as caught:
        RedisNode(NOWHERE, 200).call("PING")
    assert caught.value.phase is Phase.CONNECT
    assert classify(REDIS_ERRORS, caught.value)[0] is EventType.FAIL


def test_what_was_not_answered_is_unknown(redis_address: Address) -> None:
    node = RedisNode(redis_address, 100)
    with pytest.raises(WireFailure) as caught:
        node.call("BLPOP", "nothing", 5)
    assert caught.value.phase is Phase.COMMAND
    assert classify(REDIS_ERRORS, caught.value)[0] is EventType.INFO
    assert node.call("PING") == "PONG", "the late answer is not read as the next one's"


def test_what_no_row_lists_is_unknown() -> None:
    failure = WireFailure(Phase.COMMAND, "r1", RuntimeError("never seen before"))
    outcome, meaning, refused = classify(REDIS_ERRORS, failure)
    assert (outcome, refused) == (EventType.INFO, None)
    assert "not in the table" in meaning


def test_a_dead_idle_connection_is_not_an_unknown_answer(
    redis_address: Address, tmp_path: Path
) -> None:
    node = RedisNode(redis_address, 1000)
    node.call("PING")
    RedisNode(redis_address, 1000).call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert node.call("PING") == "PONG"
