"""What every lock with a queue has to do, for the tests of each."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from lockcheck.backends.base import Grant, Lock
from lockcheck.history import Refusal
from lockcheck.servers.wire import Refused
from tests.backends.claims import NotedClaim, queued


def granted_in_turn(locks: Sequence[Lock], key: str) -> None:
    """To three, in the order in which they came."""
    held = locks[0].acquire(NotedClaim(key))
    second, third = (queued(lock, NotedClaim(key)) for lock in locks[1:])
    time.sleep(0.1)
    assert second.is_alive()
    assert third.is_alive()
    assert locks[0].release(held) == {"removed": 1}
    second.join(10)
    assert second.grant
    assert third.is_alive()
    locks[1].release(second.grant)
    third.join(10)
    assert third.grant
    tokens = [grant.token or 0 for grant in (held, second.grant, third.grant)]
    assert tokens == sorted(set(tokens)), "a later holder's is greater"
    assert locks[2].release(third.grant) == {"removed": 1}


def two_give_up(locks: Sequence[Lock], key: str) -> Grant:
    """One out of patience, the other since it leaves; what the first of three was granted."""
    held = locks[0].acquire(NotedClaim(key))
    with pytest.raises(Refused, match="waited too long") as refused:
        locks[1].acquire(NotedClaim(key, patience_s=0.2))
    assert refused.value.code is Refusal.HELD
    waiting = queued(locks[-1], leaving := NotedClaim(key))
    leaving.leaving.set()
    waiting.join(10)
    assert isinstance(waiting.failure, Refused)
    return held
