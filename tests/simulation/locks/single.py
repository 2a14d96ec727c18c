"""One server with leases, as on a single Redis: set if absent, compare and delete."""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.history import F
from lockcheck.history.event import NS_PER_MS
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
from tests.simulation.world import Ask, Call, Reply, Steps, World

NOT_OWNER = "not-owner"
NO_ANSWER = "no answer in time"


@dataclass(slots=True)
class Lease:
    secret: str
    until_ns: int  # by the server's wall clock


class LeaseServer:
    """A lease is over when its time is; the token counts up with each grant, in the same step."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.leases: dict[str, Lease] = {}
        self.tokens: dict[str, int] = {}

    def handle(self, ask: Ask, wall_ns: int) -> Reply:
        if ask.f == F.ACQUIRE:
            return self.acquire(ask, wall_ns)
        return self.renew(ask, wall_ns) if ask.f == F.RENEW else self.release(ask, wall_ns)

    def acquire(self, ask: Ask, wall_ns: int) -> Reply:
        if self.held(ask.key, wall_ns) is not None:
            return Reply(ok=False, why="held")
        self.leases[ask.key] = Lease(ask.secret, self.end_of(ask, wall_ns))
        return Reply(ok=True, token=self.next_token(ask.key))

    def renew(self, ask: Ask, wall_ns: int) -> Reply:
        lease = self.held(ask.key, wall_ns)
        if lease is None or lease.secret != ask.secret:
            return Reply(ok=False, why=NOT_OWNER)
        lease.until_ns = self.end_of(ask, wall_ns)
        return Reply(ok=True)

    def release(self, ask: Ask, wall_ns: int) -> Reply:
        lease = self.held(ask.key, wall_ns)
        if lease is None or lease.secret != ask.secret:
            return Reply(ok=False, why=NOT_OWNER)
        del self.leases[ask.key]
        return Reply(ok=True)

    def held(self, key: str, wall_ns: int) -> Lease | None:
        lease = self.leases.get(key)
        return lease if lease is not None and wall_ns <= lease.until_ns else None

    def end_of(self, ask: Ask, wall_ns: int) -> int:
        return wall_ns + ask.ttl_ms * NS_PER_MS

    def next_token(self, key: str) -> int:
        self.tokens[key] = self.tokens.get(key, 0) + 1
        return self.tokens[key]

    def forget(self) -> None:
        self.leases.clear()
        self.tokens.clear()


class SingleLock:
    blind = False
    with_token = False

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        (self._server,) = caller.servers

    def acquire(self, key: str) -> Steps[Acquired]:
        since_ns, secret = self._caller.clock_ns(), self._caller.secret()
        reply = yield self._call(F.ACQUIRE, key, secret)
        if reply is None:
            return Unsure(NO_ANSWER)
        if not reply.ok:
            return Refused(reply.why)
        return Grant(key, secret, since_ns, reply.token if self.with_token else None)

    def renew(self, grant: Grant) -> Steps[Acquired]:
        since_ns = self._caller.clock_ns()
        reply = yield self._call(F.RENEW, grant.key, grant.secret)
        if reply is None:
            return Unsure(NO_ANSWER)
        if not reply.ok:
            return Refused(reply.why)
        return Grant(grant.key, grant.secret, since_ns, grant.token)

    def release(self, grant: Grant) -> Steps[Released]:
        reply = yield self._call(F.RELEASE, grant.key, grant.secret)
        if reply is None:
            return Unsure(NO_ANSWER)
        if self.blind:
            return Done(removed=int(reply.ok), blind=True)
        return Done(removed=1) if reply.ok else Refused(reply.why)

    def _call(self, f: str, key: str, secret: str) -> Call:
        caller = self._caller
        return Call(self._server, Ask(f, key, secret, caller.ttl_ms), caller.ttl_ns)


class FencedLock(SingleLock):
    with_token = True


SINGLE = LockKind("single", "one server, leases", SingleLock, LeaseServer)
FENCED = LockKind("fenced", "one server, leases, a token", FencedLock, LeaseServer, fencing=True)
