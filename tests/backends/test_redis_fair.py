"""A fair queue on one Redis: whose turn it is, and what becomes of those who are gone."""

from __future__ import annotations

import pytest

from lockcheck.backends.redis.redis_fair import GONE, JOIN, TAKE, WAITS, FairLock
from lockcheck.servers.redis import RedisNode
from lockcheck.servers.wire import Address, Refused
from tests.backends.claims import Acquiring, NotedClaim, queued
from tests.backends.test_locks import client
from tests.waiting import wait_for

LONG_MS = 60_000  # no lease runs out while a slow machine thinks


@pytest.fixture
def redis(redis_address: Address) -> RedisNode:
    return RedisNode(redis_address, LONG_MS)


def fair(server: Address, owner: str) -> FairLock:
    lock = client("redis-fair", (server,), owner, LONG_MS)
    assert isinstance(lock, FairLock)
    return lock


def waiting(server: Address, owner: str) -> Acquiring:
    return queued(fair(server, owner), NotedClaim())


def places(redis: RedisNode) -> list[str]:
    found = redis.call("LRANGE", "queue:k", 0, -1)
    assert isinstance(found, list)
    return found


def let_run_out(redis: RedisNode, place: str) -> None:
    redis.call("ZADD", "places:k", 1, place)


def granted(one: Acquiring) -> int:
    one.join(30)
    assert one.grant is not None, one.failure
    assert one.grant.token is not None
    return one.grant.token


def test_first_come_first_served(redis_address: Address) -> None:
    holder = fair(redis_address, "c0")
    grant = holder.acquire(NotedClaim())
    line = [waiting(redis_address, f"c{n}") for n in range(1, 4)]
    holder.release(grant)
    tokens = []
    for one in line:
        tokens.append(granted(one))
        assert one.grant is not None
        one.lock.release(one.grant)
    assert tokens == [2, 3, 4]
    assert line[0].claim.told == ["queued"]
    late = NotedClaim()
    holder.acquire(late)
    assert late.told == [], "who finds it free does not wait"


def test_who_comes_while_somebody_waits_stands_behind(
    redis_address: Address, redis: RedisNode
) -> None:
    one, other = fair(redis_address, "c1"), fair(redis_address, "c2")
    one._ask(JOIN, "k", "holds")
    one._ask(JOIN, "k", "waits")
    redis.call("DEL", "lock:k")
    assert other._ask(JOIN, "k", "comes").token == WAITS, "it is free, but not for everybody"
    assert one._ask(TAKE, "k", "waits").token == 2
    assert places(redis) == ["comes"]


def test_a_grant_whose_answer_got_lost_is_told_again(redis_address: Address) -> None:
    lock = fair(redis_address, "c1")
    assert lock._ask(JOIN, "k", "mine").token == 1
    assert lock._ask(TAKE, "k", "mine").token == 1


def test_the_lease_of_a_dead_holder_ends_without_a_release(
    redis_address: Address, redis: RedisNode
) -> None:
    gone = fair(redis_address, "c1")
    grant = gone.acquire(NotedClaim())
    one = waiting(redis_address, "c2")
    redis.call("PEXPIRE", "lock:k", 1)
    assert granted(one) == 2
    with pytest.raises(Refused, match="not-owner"):
        gone.release(grant)


def test_the_dead_hold_up_nobody_and_lose_their_places(
    redis_address: Address, redis: RedisNode
) -> None:
    lock = fair(redis_address, "c1")
    lock._ask(JOIN, "k", "holds")
    lock._ask(JOIN, "k", "dead")
    let_run_out(redis, "dead")
    one = waiting(redis_address, "c2")
    redis.call("DEL", "lock:k")  # nobody is told
    assert granted(one) == 2
    assert lock._ask(TAKE, "k", "dead").token == GONE
    assert places(redis) == []


def test_who_was_late_but_not_passed_keeps_its_place(
    redis_address: Address, redis: RedisNode
) -> None:
    lock = fair(redis_address, "c1")
    for name in ("holds", "late", "next"):
        lock._ask(JOIN, "k", name)
    let_run_out(redis, "late")
    redis.call("DEL", "lock:k")
    assert lock._ask(TAKE, "k", "late").token == 2
    assert places(redis) == ["next"]


def test_who_gives_up_leaves_the_queue(redis_address: Address, redis: RedisNode) -> None:
    holder = fair(redis_address, "c0")
    grant = holder.acquire(NotedClaim())
    impatient, patient = (waiting(redis_address, owner) for owner in ("c1", "c2"))
    impatient.claim.leaving.set()
    impatient.join(30)
    assert str(impatient.failure) == "waited too long in the queue"
    wait_for(lambda: len(places(redis)) == 1, "one is left")
    holder.release(grant)
    assert granted(patient) == 2


def test_who_is_thrown_out_while_it_waits_is_refused(
    redis_address: Address, redis: RedisNode
) -> None:
    fair(redis_address, "c0").acquire(NotedClaim())
    one = waiting(redis_address, "c1")
    redis.call("DEL", "places:k")
    one.join(30)
    assert isinstance(one.failure, Refused)
    assert "its place in the queue expired" in str(one.failure)
