"""Consul's lock on a real Consul: turns, the session's keeper, the lock-delay, and its errors."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Iterator

import pytest

from lockcheck.backends.base import Grant, Lock, LockSettings
from lockcheck.backends.consul import BACKEND
from lockcheck.backends.keeper import KeptAlive
from lockcheck.history import EventType, Refusal
from lockcheck.servers.base import Question
from lockcheck.servers.consul import CONSUL
from lockcheck.servers.wire import Address, Phase, Refused, WireFailure, classify
from lockcheck.servers.wire.consul import CONSUL_ERRORS, ConsulMembers
from tests.backends.claims import NotedClaim, keeper_of, queued
from tests.backends.servers import NOWHERE, Started, clients, consul, said, stopped
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster
SERVER = consul
TTL_MS = 1000


@pytest.fixture
def locks(address: Address) -> Iterator[list[Lock]]:
    with clients(BACKEND.connect, address, TTL_MS, 2) as locks:
        yield locks


def members(address: Address, timeout_s: float = 5) -> ConsulMembers:
    return ConsulMembers((address,), timeout_s)


def end_session(address: Address, grant: Grant) -> None:
    """As if it had run out."""
    assert isinstance(grant.handle, KeptAlive)
    members(address).destroy_session(grant.handle.id)


def test_one_at_a_time_and_the_token_counts(locks: list[Lock], key: str) -> None:
    held = locks[0].acquire(NotedClaim(key))
    apart = locks[1].acquire(other := NotedClaim(key + "2"))
    assert "queued" not in other.told
    locks[1].release(apart)
    waiting = queued(locks[1], NotedClaim(key))
    assert waiting.is_alive()
    began = time.monotonic()
    locks[0].release(held)
    waiting.join(10)
    assert waiting.grant
    assert time.monotonic() - began < TTL_MS / 1000, "a release is no end of a session: no delay"
    assert (held.token, waiting.grant.token) == (1, 2)
    assert 0 < (waiting.grant.valid_ms or 0) <= TTL_MS
    locks[1].release(waiting.grant)


def test_a_keeper_holds_it_beyond_its_session_and_is_heard_of(locks: list[Lock], key: str) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    waiting = queued(locks[1], NotedClaim(key))
    began = time.monotonic()
    wait_for(lambda: time.monotonic() - began > 2.2 * TTL_MS / 1000, "it would have run out twice")
    assert waiting.is_alive()
    assert waiting.claim.told == ["queued"], "its session is kept alive, and that renews no hold"
    assert set(claim.told) == {"renewing", "renewed"}
    locks[0].release(held)
    waiting.join(10)
    assert waiting.grant
    locks[1].release(waiting.grant)


def test_a_session_that_is_gone_is_told_and_its_key_is_free_after_a_delay(
    locks: list[Lock], address: Address, key: str
) -> None:
    claim = NotedClaim(key)
    held = locks[0].acquire(claim)
    began = time.monotonic()
    end_session(address, held)
    other = locks[1].acquire(NotedClaim(key))
    assert time.monotonic() - began > 0.9 * TTL_MS / 1000, "the lock-delay"
    assert claim.lost_something.wait(30)
    assert claim.told[-1] == "lost: its renewal was refused: the session is gone"
    assert (other.token or 0) > (held.token or 0)
    with pytest.raises(Refused) as refused:
        locks[0].release(held)
    assert refused.value.code is Refusal.NOT_OWNER
    locks[1].release(other)


def test_a_waiter_whose_session_is_gone_is_not_let_in(
    locks: list[Lock], address: Address, key: str
) -> None:
    held = locks[0].acquire(NotedClaim(key))
    waiting = queued(locks[1], NotedClaim(key))
    one = members(address)
    own = one.open_session(10_000, 0)
    for session in one._read(one._ask("GET", "session/list")):
        if session["ID"] not in {own, held.handle.id}:  # type: ignore[attr-defined]
            one.destroy_session(session["ID"])
    locks[0].release(held)
    waiting.join(30)
    assert isinstance(waiting.failure, Refused)


def test_a_wait_is_bounded_and_leaves_no_session_behind(
    locks: list[Lock], address: Address, key: str
) -> None:
    held = locks[0].acquire(NotedClaim(key))
    with pytest.raises(Refused, match="waited too long; it is held") as refused:
        locks[1].acquire(NotedClaim(key, patience_s=0.1))
    assert refused.value.code is Refusal.HELD
    one = members(address)
    sessions = {session["ID"] for session in one._read(one._ask("GET", "session/list"))}
    assert held.handle.id in sessions  # type: ignore[attr-defined]
    locks[0].release(held)
    left = {session["ID"] for session in one._read(one._ask("GET", "session/list"))}
    assert left == sessions - {held.handle.id}  # type: ignore[attr-defined]


def test_a_renewal_of_a_session_that_is_gone(locks: list[Lock], address: Address, key: str) -> None:
    held = locks[0].acquire(NotedClaim(key))
    keeper_of(held).extend()
    end_session(address, held)
    with pytest.raises(Refused, match="session is gone") as refused:
        keeper_of(held).extend()
    assert refused.value.code is Refusal.GONE


def test_close_ends_the_keepers(address: Address, key: str) -> None:
    before = threading.active_count()
    lock = BACKEND.connect((address,), LockSettings("c9", TTL_MS, random.Random(9)))
    lock.acquire(NotedClaim(key))
    lock.close()
    assert threading.active_count() <= before


def test_no_member_at_all_is_a_refusal_before_anything_was_locked(key: str) -> None:
    lock = BACKEND.connect((NOWHERE,), LockSettings("c1", TTL_MS, random.Random(1)))
    with pytest.raises(Refused, match="no session") as refused:
        lock.acquire(NotedClaim(key))
    assert refused.value.code is Refusal.UNAVAILABLE


def test_what_errors_mean(server: Started, key: str) -> None:
    address, process = server
    with pytest.raises(Refused, match="invalid session"):
        members(address).lock(key, "3e0c6e2e-af17-0758-2303-9124463043e7")
    with pytest.raises(WireFailure) as caught:
        members(address).open_session(1, 0)  # a TTL too short
    assert classify(CONSUL_ERRORS, caught.value)[0] is EventType.INFO
    several = ConsulMembers((NOWHERE, address), 5)
    with pytest.raises(WireFailure) as caught:
        several.look(key)
    assert caught.value.phase is Phase.CONNECT
    assert classify(CONSUL_ERRORS, caught.value)[0] is EventType.FAIL
    assert several.look(key)[0] == "", "the next attempt goes to another"
    with stopped(process), pytest.raises(WireFailure) as caught:
        members(address, 0.2).look(key)
    assert caught.value.phase is Phase.COMMAND
    assert classify(CONSUL_ERRORS, caught.value)[0] is EventType.INFO


def test_it_says_that_it_is_ready_and_that_it_leads(address: Address) -> None:
    for question in (CONSUL.ready, CONSUL.leader):
        assert isinstance(question, Question)
        answer = said(address, question.ask)
        assert re.search(question.answer, answer, re.DOTALL)
