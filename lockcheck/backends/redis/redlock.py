"""Redlock as published: a majority of independent servers, and what is left of the TTL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings, Promises
from lockcheck.backends.expected import LIMIT, SHORT, Expected, forgotten
from lockcheck.backends.expected_usual import MAJORITY_CUT
from lockcheck.backends.redis.redis_expected import (
    CUT_OFF,
    JUMPS_MEET_HOLDERS,
    LOOKS_WHEN_CUT_OFF,
    WITHOUT_TOKEN,
    in_turn,
)
from lockcheck.backends.redis.redis_lock import RELEASE_IF_OWN, new_secret
from lockcheck.history import EventType, Refusal
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.redis import REDIS_ERRORS, RedisNode
from lockcheck.servers.wire import Address, ErrorRow, Phase, Refused, WireFailure

CLOCK_DRIFT_FACTOR = 0.01
CLOCK_DRIFT_EXTRA_MS = 2.0  # the precision with which Redis expires a key, and a little
BY_THE_WALL = ("--check-validity", "--lease-clock", "wall")


def node_timeout_ms(ttl_ms: int) -> float:
    """5 to 50 ms: small against the TTL, so that a dead server does not use up the lease."""
    return min(50.0, max(5.0, ttl_ms / 20))


class PartialReleaseError(Exception):
    """Some servers did not confirm that they removed the lock."""


class Redlock(Lock):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        timeout_ms = node_timeout_ms(settings.ttl_ms)
        self._nodes = [RedisNode(server, timeout_ms) for server in servers]
        self._settings = settings
        self._quorum = len(servers) // 2 + 1

    def acquire(self, claim: Claim) -> Grant:
        """Asks each server in turn; a majority grants, if some of the TTL is left."""
        ttl_ms = self._settings.ttl_ms
        secret = new_secret(self._settings)
        began = self._settings.now_s()
        answers = [self._set(node, claim.key, secret) for node in self._nodes]
        elapsed_ms = (self._settings.now_s() - began) * 1000
        drift_ms = ttl_ms * CLOCK_DRIFT_FACTOR + CLOCK_DRIFT_EXTRA_MS
        valid_ms = ttl_ms - elapsed_ms - drift_ms
        if answers.count("OK") >= self._quorum and valid_ms > 0:
            return Grant(claim.key, secret, valid_ms=valid_ms)
        list(self._release_everywhere(claim.key, secret))
        raise self._refused(answers, valid_ms)

    def _set(self, node: RedisNode, key: str, secret: str) -> str:
        try:
            reply = node.call("SET", f"lock:{key}", secret, "NX", "PX", self._settings.ttl_ms)
        except WireFailure as failure:
            return str(failure)
        return "held" if reply is None else "OK"

    def _refused(self, answers: list[str], valid_ms: float) -> Refused:
        if answers.count("OK") >= self._quorum:
            late = f"too late: {valid_ms:.0f} ms of validity left"
            return Refused(Refusal.UNAVAILABLE, late)
        failures = [answer for answer in answers if answer not in ("OK", "held")]
        if len(failures) > len(answers) - self._quorum:
            return Refused(Refusal.UNAVAILABLE, f"no-quorum: {'; '.join(failures)}")
        return Refused(Refusal.HELD)

    def release(self, grant: Grant) -> object:
        """Releases on all servers: those that did not confirm the grant may have granted it."""
        answers = list(self._release_everywhere(grant.key, str(grant.handle)))
        failures = [answer for answer in answers if isinstance(answer, WireFailure)]
        removed = sum(1 for answer in answers if answer == 1)
        if removed >= self._quorum:
            return {"removed": removed}
        if failures or removed:
            cause = PartialReleaseError(f"removed on {removed}")
            raise WireFailure(Phase.COMMAND, "; ".join(map(str, failures)) or "a minority", cause)
        raise Refused(Refusal.NOT_OWNER)

    def _release_everywhere(self, key: str, secret: str) -> Iterator[object]:
        for node in self._nodes:
            try:
                yield node.run(RELEASE_IF_OWN, [f"lock:{key}"], [secret])
            except WireFailure as failure:
                yield failure

    def close(self) -> None:
        for node in self._nodes:
            node.close()


SERVERS = tuple(NodeSpec(f"r{n}", Role.SERVER, Kind("redis")) for n in range(1, 6))

BACKEND = Backend(
    name="redlock",
    summary=f"{len(SERVERS)} independent Redis, a majority, as published",
    promises=Promises(session=False, fencing=False),
    servers=SERVERS,
    independent=True,
    connect=Redlock,
    errors=(
        ErrorRow("command", "PartialReleaseError", EventType.INFO, "released on some servers only"),
        *REDIS_ERRORS,
    ),
    retry_ms=(5, 50),
    expected=(
        *WITHOUT_TOKEN,
        Expected("kill:server", "ok", SHORT),  # the others go on
        *in_turn("majority"),
        CUT_OFF,
        LOOKS_WHEN_CUT_OFF,
        *MAJORITY_CUT,
        # Three of five servers forget their grants; the other three still know the holder.
        forgotten("clock:majority,jump=+30s", JUMPS_MEET_HOLDERS),
        Expected("clock:minority,jump=+30s,when=schedule", "ok", SHORT),
        # By its own clock half of the lease is left when it is over.
        Expected(
            "clock:client,for=5s,drift=0.5",
            "violation",
            (*BY_THE_WALL, "--think", "1500ms", "--clients", "2", LIMIT, "30s"),
            findings=("overlap",),
            blame="holder",
        ),
        # The lock's allowance for drifting clocks covers it.
        Expected("clock:holder,drift=0.995", "ok", (*BY_THE_WALL, *SHORT)),
    ),
)

REDLOCK_3 = replace(
    BACKEND,
    name="redlock-3",
    summary="Redlock on 3, as many run it",
    servers=SERVERS[:3],
    expected=WITHOUT_TOKEN,
)
