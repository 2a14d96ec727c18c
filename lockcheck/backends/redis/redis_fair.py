"""First come, first served, on one Redis: a queue by list, with a lease for each place in it.

A client that comes while the lock is held, or while others wait, gets a place at the end of the
list. The lock is given only to a client that asks for it, is first, and finds it free. Each step is
one script, and can be repeated if it was not answered.

- A place is a lease, too: its client asks three times per lease, and so keeps it. An expired place
  is removed when it gets to the front, so a dead client delays those behind it for one lease at
  most. A client whose place was removed learns so when it asks again, and gives up.
- Clients do not poll. A release wakes the first in the queue through a list of its own (a blocking
  pop); without a release each client knows when the lease that it waits for ends. A lost wake-up
  costs time and nothing else: only scripts decide.
- The times are the server's own, by the clock by which it expires keys.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from lockcheck.backends.base import Claim, Grant, Lock, LockSettings, Promises
from lockcheck.backends.redis.redis_expected import WITH_TOKEN
from lockcheck.backends.redis.redis_lock import NOW_MS, new_secret, on_one_redis, one_server
from lockcheck.history import Refusal
from lockcheck.servers.redis import REDIS_ERRORS, Script
from lockcheck.servers.wire import (
    NOT_WITHDRAWN,
    Address,
    Phase,
    Refused,
    WireFailure,
    not_withdrawn,
)

AFTER_A_FAILURE_S = 0.02
LOOK_S = 0.25  # the longest wait to be woken: the client may have to leave
WAKE = "word:"  # the prefix of the list by which a client is woken; its name follows
GONE = -1  # the place has expired and was removed
WAITS = 0


# KEYS: lock, queue, places (by the end of each), fence. ARGV: the asking client, TTL, WAKE.
FIRST_IN_QUEUE = f"""
{NOW_MS}
local function first()
  local place = redis.call('LINDEX', KEYS[2], 0)
  while place do
    local kept = redis.call('ZSCORE', KEYS[3], place)
    if kept and tonumber(kept) > now then return place, tonumber(kept) end
    redis.call('LPOP', KEYS[2])
    redis.call('ZREM', KEYS[3], place)
    place = redis.call('LINDEX', KEYS[2], 0)
  end
end
"""

# The answer: a token; or 0, and how long nothing will change; or -1.
TAKE_OR_WAIT = """
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then  -- granted before, but the answer got lost
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {tonumber(redis.call('GET', KEYS[4])), 0}
end
local place, kept = first()
if not holder and (place == ARGV[1] or not place) then
  redis.call('LREM', KEYS[2], 1, ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
  redis.call('DEL', ARGV[3] .. ARGV[1])
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return {redis.call('INCR', KEYS[4]), 0}
end
return {0, holder and redis.call('PTTL', KEYS[1]) or kept - now}
"""

JOIN = Script(f"""
{FIRST_IN_QUEUE}
local waiting = first()
if waiting or redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('RPUSH', KEYS[2], ARGV[1])
  redis.call('ZADD', KEYS[3], now + ARGV[2], ARGV[1])
end
{TAKE_OR_WAIT}
""")

# An expired place that was not removed yet is kept.
TAKE = Script(f"""
{FIRST_IN_QUEUE}
if redis.call('ZSCORE', KEYS[3], ARGV[1]) then
  redis.call('ZADD', KEYS[3], now + ARGV[2], ARGV[1])
elseif redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {{{GONE}, 0}}
end
{TAKE_OR_WAIT}
""")

# Leaves the queue and the lock, and wakes the client that is first now if the lock is free.
LEAVE = Script(f"""
{FIRST_IN_QUEUE}
redis.call('LREM', KEYS[2], 1, ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
local removed = 0
if redis.call('GET', KEYS[1]) == ARGV[1] then removed = redis.call('DEL', KEYS[1]) end
local place = first()
if place and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('RPUSH', ARGV[3] .. place, 'come')
  redis.call('PEXPIRE', ARGV[3] .. place, ARGV[2])
end
return removed
""")


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer to a client that asks for the lock."""

    token: int  # or WAITS, or GONE
    nothing_for_s: float  # how long nothing will change, unless the client is woken


class FairLock(Lock):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        self._node = one_server(servers, settings)
        self._settings = settings
        self._ttl_s = settings.ttl_ms / 1000

    def acquire(self, claim: Claim) -> Grant:
        secret = new_secret(self._settings)
        since = time.monotonic()
        try:
            answer = self._ask(JOIN, claim.key, secret)
            if answer.token == WAITS:
                claim.queued()
                answer, since = self._await_turn(claim, secret, answer)
        except (Refused, WireFailure) as failure:
            self._withdraw(claim.key, secret, failure)
            raise
        valid_ms = (since + self._ttl_s - time.monotonic()) * 1000
        return Grant(claim.key, secret, answer.token, valid_ms, claim.mode)

    def _await_turn(self, claim: Claim, secret: str, answer: Answer) -> tuple[Answer, float]:
        """Returns the grant, and the moment from which its lease counts."""
        while (left_s := claim.left_s()) > 0:
            try:
                self._await_wake(secret, min(left_s, answer.nothing_for_s))
                since = time.monotonic()
                answer = self._ask(TAKE, claim.key, secret)
            except WireFailure:  # each step can be repeated
                time.sleep(AFTER_A_FAILURE_S)
                continue
            if answer.token == GONE:
                raise Refused(Refusal.GONE, "its place in the queue expired")
            if answer.token != WAITS:
                return answer, since
        raise Refused(Refusal.HELD, "waited too long in the queue")

    def _await_wake(self, secret: str, at_most_s: float) -> None:
        """Returns soon enough to ask again before its place expires."""
        wait_s = min(at_most_s, self._ttl_s / 3, LOOK_S)
        self._node.call("BLPOP", WAKE + secret, f"{max(wait_s, 0.001):.3f}")

    def _ask(self, script: Script, key: str, secret: str) -> Answer:
        reply = self._run(script, key, secret)
        assert isinstance(reply, list)  # noqa: S101 - it is our own script's
        token, nothing_for_ms = reply
        return Answer(token, nothing_for_ms / 1000)

    def release(self, grant: Grant) -> object:
        if not (removed := self._run(LEAVE, grant.key, str(grant.handle))):
            raise Refused(Refusal.NOT_OWNER)
        return {"removed": removed}

    def close(self) -> None:
        self._node.close()

    def _withdraw(self, key: str, secret: str, why: Refused | WireFailure) -> None:
        """Leaves the queue, unless nothing was sent."""
        if isinstance(why, WireFailure) and why.phase is Phase.CONNECT:
            return
        try:
            self._run(LEAVE, key, secret)
        except WireFailure as failure:
            raise not_withdrawn(key, why) from failure

    def _run(self, script: Script, key: str, secret: str) -> object:
        keys = [f"lock:{key}", f"queue:{key}", f"places:{key}", f"fence:{key}"]
        return self._node.run(script, keys, [secret, self._settings.ttl_ms, WAKE])


BACKEND = on_one_redis(
    name="redis-fair",
    summary="one Redis, a queue by list with a lease for each place, and a token from INCR",
    promises=Promises(session=False, fencing=True, fair=True, waits=True),
    connect=FairLock,
    errors=(NOT_WITHDRAWN, *REDIS_ERRORS),
    retry_ms=(1, 10),
    expected=WITH_TOKEN,
)
