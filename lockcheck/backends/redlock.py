"""Redlock as published: five independent servers, a majority, and what is left of the TTL."""

from __future__ import annotations

import time
from collections.abc import Iterator

from lockcheck.backends.base import Backend, ErrorRow, Grant, LockSettings, Promises, Refused
from lockcheck.backends.redis_server import REDIS_ERRORS, redis_server
from lockcheck.backends.redis_single import RELEASE_IF_OWN
from lockcheck.history import EventType
from lockcheck.redis_node import RedisNode
from lockcheck.wire import Address, Phase, WireFailure

SERVERS = 5
CLOCK_DRIFT_FACTOR = 0.01
CLOCK_DRIFT_EXTRA_MS = 2.0  # the precision with which Redis expires a key, and a little


def node_timeout_ms(ttl_ms: int) -> float:
    """Small against the TTL, so that a dead server does not eat up the lease: 5 to 50 ms."""
    return min(50.0, max(5.0, ttl_ms / 20))


class PartialReleaseError(Exception):
    """Some servers did not say whether they removed the lock."""


class Redlock:
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        timeout_ms = node_timeout_ms(settings.ttl_ms)
        self._nodes = [RedisNode(server, timeout_ms) for server in servers]
        self._settings = settings
        self._quorum = len(servers) // 2 + 1

    def acquire(self, key: str) -> Grant:
        """Each server in turn, a majority, and only while some of the TTL is left."""
        ttl_ms = self._settings.ttl_ms
        secret = f"{self._settings.owner}:{self._settings.choices.getrandbits(160):040x}"
        began = time.monotonic()
        answers = [self._set(node, key, secret) for node in self._nodes]
        elapsed_ms = (time.monotonic() - began) * 1000
        drift_ms = ttl_ms * CLOCK_DRIFT_FACTOR + CLOCK_DRIFT_EXTRA_MS
        valid_ms = ttl_ms - elapsed_ms - drift_ms
        if answers.count("OK") >= self._quorum and valid_ms > 0:
            return Grant(secret, valid_ms=valid_ms)
        list(self._release_everywhere(key, secret))
        raise Refused(self._why_not(answers, valid_ms))

    def _set(self, node: RedisNode, key: str, secret: str) -> str:
        try:
            reply = node.call("SET", f"lock:{key}", secret, "NX", "PX", self._settings.ttl_ms)
        except WireFailure as failure:
            return str(failure)
        return "held" if reply is None else "OK"

    def _why_not(self, answers: list[str], valid_ms: float) -> str:
        if answers.count("OK") >= self._quorum:
            return f"too late: {valid_ms:.0f} ms of validity left"
        failures = [answer for answer in answers if answer not in ("OK", "held")]
        if len(failures) > len(answers) - self._quorum:
            return f"no-quorum: {'; '.join(failures)}"
        return "held"

    def release(self, key: str, grant: Grant) -> object:
        """On all servers, those that did not grant it among them: their answer may be what was
        lost."""
        answers = list(self._release_everywhere(key, grant.secret))
        failures = [answer for answer in answers if isinstance(answer, WireFailure)]
        removed = sum(1 for answer in answers if answer == 1)
        if removed >= self._quorum:
            return {"removed": removed}
        if failures or removed:
            cause = PartialReleaseError(f"removed on {removed}")
            raise WireFailure(Phase.COMMAND, "; ".join(map(str, failures)) or "a minority", cause)
        raise Refused("not-owner")

    def _release_everywhere(self, key: str, secret: str) -> Iterator[object]:
        for node in self._nodes:
            try:
                yield node.run(RELEASE_IF_OWN, [f"lock:{key}"], [secret])
            except WireFailure as failure:
                yield failure

    def close(self) -> None:
        for node in self._nodes:
            node.close()


BACKEND = Backend(
    name="redlock",
    summary=f"{SERVERS} independent Redis, a majority, as published",
    promises=Promises(lease=True, fencing=False),
    servers=tuple(redis_server(f"r{number}") for number in range(1, SERVERS + 1)),
    connect=Redlock,
    errors=(
        ErrorRow("command", "PartialReleaseError", EventType.INFO, "released on some servers only"),
        *REDIS_ERRORS,
    ),
    retry_ms=(5, 50),
)
