"""Redlock as published: five independent servers, a majority, and what is left of the lease."""

from __future__ import annotations

from collections.abc import Sequence

from lockcheck.history import F
from tests.simulation.locks.base import (
    Acquired,
    Caller,
    Done,
    Grant,
    LockKind,
    Refused,
    Released,
    Unsure,
)
from tests.simulation.locks.single import NO_ANSWER, NOT_OWNER, LeaseServer
from tests.simulation.world import Ask, Call, Reply, Steps

SERVERS = 5
PART_OF_THE_LEASE = 20  # how much of it a server that is dead may cost


class MajorityLock:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._quorum = len(caller.servers) // 2 + 1

    def acquire(self, key: str) -> Steps[Acquired]:
        since_ns, secret = self._caller.clock_ns(), self._caller.secret()
        replies = yield from self._everywhere(F.ACQUIRE, key, secret)
        late = self._caller.clock_ns() - since_ns >= self._caller.ttl_ns
        if self._granted(replies) >= self._quorum and not late:
            return Grant(key, secret, since_ns)
        yield from self._everywhere(F.RELEASE, key, secret)
        return Refused("too late" if late else "no majority")

    def renew(self, grant: Grant) -> Steps[Acquired]:
        since_ns = self._caller.clock_ns()
        replies = yield from self._everywhere(F.RENEW, grant.key, grant.secret)
        if self._granted(replies) >= self._quorum:
            return Grant(grant.key, grant.secret, since_ns)
        return Refused(NOT_OWNER) if self._refused(replies) else Unsure(NO_ANSWER)

    def release(self, grant: Grant) -> Steps[Released]:
        """On all servers, those that did not grant it among them: their answer may be what was
        lost."""
        replies = yield from self._everywhere(F.RELEASE, grant.key, grant.secret)
        removed = self._granted(replies)
        if removed >= self._quorum:
            return Done(removed)
        return Refused(NOT_OWNER) if not removed and None not in replies else Unsure(NO_ANSWER)

    def _everywhere(self, f: str, key: str, secret: str) -> Steps[list[Reply | None]]:
        caller, replies = self._caller, []
        ask = Ask(f, key, secret, caller.ttl_ms)
        for server in caller.servers:
            reply = yield Call(server, ask, caller.ttl_ns // PART_OF_THE_LEASE)
            replies.append(reply)
        return replies

    def _granted(self, replies: Sequence[Reply | None]) -> int:
        return sum(1 for reply in replies if reply is not None and reply.ok)

    def _refused(self, replies: Sequence[Reply | None]) -> bool:
        no = sum(1 for reply in replies if reply is not None and not reply.ok)
        return no > len(replies) - self._quorum


class MinorityLock(MajorityLock):
    def __init__(self, caller: Caller) -> None:
        super().__init__(caller)
        self._quorum = len(caller.servers) // 2


MAJORITY = LockKind(
    "majority", "five servers, a majority of them", MajorityLock, LeaseServer, servers=SERVERS
)
MINORITY = LockKind(
    "minority",
    "five servers, and two of them are enough",
    MinorityLock,
    LeaseServer,
    servers=SERVERS,
    caught_by=("overlap",),
)
