"""First come, first served, on one Redis: a queue by list, with a lease for each place in it.

A client that comes while the lock is held, or while somebody waits, gets a place at the end of the
list. The lock is given only to a client that asks for it, is first, and finds it free. Each step is
one script, and can be repeated if it was not answered.

- A place is a lease, too: its holder asks three times per lease, and so keeps it. A place that has
  expired is removed when it gets to the front, so a dead client delays those behind it for one
  lease at most. A client that was removed is told so when it asks again, and gives up.
- Nobody polls. The first in the queue is woken by the release, through a list of its own, with a
  blocking pop; and if nobody releases, everybody knows when the lease that it waits for ends. A
  lost wake-up costs time, and nothing else: only scripts decide.
- The times are the server's own, by the clock by which it lets keys expire.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings, Promises
from lockcheck.backends.redis.redis_expected import WITH_TOKEN
from lockcheck.backends.redis.redis_lock import NOW_MS, ONE_SERVER, new_secret, one_server
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
LOOK_S = 0.25  # how long it waits to be woken at most: it may have to leave
WORDS = "word:"  # and a client's name: the list by which it is woken
GONE = -1  # its place is
WAITS = 0


# KEYS: lock, queue, places (until when each is kept), fence. ARGV: who asks, TTL, prefix of words.
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

# The answer: a token; or 0, and how long nothing is to be expected; or -1.
TAKE_OR_WAIT = """
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then  -- it was, and the answer got lost
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

# A place that has expired, but was not removed yet, is kept.
TAKE = Script(f"""
{FIRST_IN_QUEUE}
if redis.call('ZSCORE', KEYS[3], ARGV[1]) then
  redis.call('ZADD', KEYS[3], now + ARGV[2], ARGV[1])
elseif redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {{{GONE}, 0}}
end
{TAKE_OR_WAIT}
""")

# Out of the queue, out of the lock; and the client that is first now is woken if the lock is free.
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
class Said:
    """What the server says to a client that asks for the lock."""

    token: int  # or WAITS, or GONE
    nothing_for_s: float  # unless it is woken before


class FairLock(Lock):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        self._node = one_server(servers, settings)
        self._settings = settings
        self._ttl_s = settings.ttl_ms / 1000

    # --- in ----------------------------------------------------------------------------------

    def acquire(self, claim: Claim) -> Grant:
        secret = new_secret(self._settings)
        since = time.monotonic()
        try:
            said = self._ask(JOIN, claim.key, secret)
            if said.token == WAITS:
                claim.queued()
                said, since = self._await_turn(claim, secret, said)
        except (Refused, WireFailure) as failure:
            self._withdraw(claim.key, secret, failure)
            raise
        valid_ms = (since + self._ttl_s - time.monotonic()) * 1000
        return Grant(claim.key, secret, said.token, valid_ms, claim.mode)

    def _await_turn(self, claim: Claim, secret: str, said: Said) -> tuple[Said, float]:
        """And from when on the final grant counts."""
        while (left_s := claim.left_s()) > 0:
            try:
                self._await_word(secret, min(left_s, said.nothing_for_s))
                since = time.monotonic()
                said = self._ask(TAKE, claim.key, secret)
            except WireFailure:  # whatever became of it: it can be asked again
                time.sleep(AFTER_A_FAILURE_S)
                continue
            if said.token == GONE:
                raise Refused(Refusal.GONE, "it was not heard of for too long, and lost its place")
            if said.token != WAITS:
                return said, since
        raise Refused(Refusal.HELD, "waited too long in the queue")

    def _await_word(self, secret: str, at_most_s: float) -> None:
        """It does not lose its place meanwhile: it asks again soon enough."""
        wait_s = min(at_most_s, self._ttl_s / 3, LOOK_S)
        self._node.call("BLPOP", WORDS + secret, f"{max(wait_s, 0.001):.3f}")

    def _ask(self, script: Script, key: str, secret: str) -> Said:
        answer = self._run(script, key, secret)
        assert isinstance(answer, list)  # noqa: S101 - it is our own script's
        token, nothing_for_ms = answer
        return Said(token, nothing_for_ms / 1000)

    # --- out ---------------------------------------------------------------------------------

    def release(self, grant: Grant) -> object:
        if not (removed := self._run(LEAVE, grant.key, str(grant.handle))):
            raise Refused(Refusal.NOT_OWNER)
        return {"removed": removed}

    def close(self) -> None:
        self._node.close()

    def _withdraw(self, key: str, secret: str, why: Refused | WireFailure) -> None:
        """Nothing to do if nothing was sent."""
        if isinstance(why, WireFailure) and why.phase is Phase.CONNECT:
            return
        try:
            self._run(LEAVE, key, secret)
        except WireFailure as failure:
            raise not_withdrawn(key, why) from failure

    def _run(self, script: Script, key: str, secret: str) -> object:
        keys = [f"lock:{key}", f"queue:{key}", f"places:{key}", f"fence:{key}"]
        return self._node.run(script, keys, [secret, self._settings.ttl_ms, WORDS])


BACKEND = Backend(
    name="redis-fair",
    summary="one Redis, a queue by list with a lease for each place, and a token from INCR",
    promises=Promises(session=False, fencing=True, fair=True, waits=True),
    servers=ONE_SERVER,
    connect=FairLock,
    errors=(NOT_WITHDRAWN, *REDIS_ERRORS),
    retry_ms=(1, 10),
    expected=WITH_TOKEN,
)
