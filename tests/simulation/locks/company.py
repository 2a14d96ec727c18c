"""One server that lets in more than one: readers together, whoever holds it again, n permits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

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
from tests.simulation.locks.single import NO_ANSWER, NOT_OWNER
from tests.simulation.world import Ask, Call, Reply, Steps, World

PERMITS = 2


@dataclass(slots=True)
class Entry:
    """One grant: a reader's, a permit, or one level of whoever entered again."""

    secret: str
    owner: str
    shared: bool
    until_ns: int  # by the server's wall clock


class CompanyServer:
    """A lease for each grant. Whoever enters again is given a fresh one for all its levels."""

    def __init__(self, _world: World, *, permits: int = 1) -> None:
        self._permits = permits
        self._entries: dict[str, list[Entry]] = {}

    def handle(self, ask: Ask, wall_ns: int) -> Reply:
        entries = self._entries.setdefault(ask.key, [])
        entries[:] = [entry for entry in entries if wall_ns <= entry.until_ns]
        own = next((entry for entry in entries if entry.secret == ask.secret), None)
        until_ns = wall_ns + ask.ttl_ms * NS_PER_MS
        if ask.f == F.ACQUIRE:
            return self._acquire(entries, ask, until_ns)
        if own is None:
            return Reply(ok=False, why=NOT_OWNER)
        if ask.f == F.RENEW:
            own.until_ns = until_ns
        else:
            entries.remove(own)
        return Reply(ok=True)

    def _acquire(self, entries: list[Entry], ask: Ask, until_ns: int) -> Reply:
        if not self._may_join(entries, ask):
            return Reply(ok=False, why="held")
        for entry in entries:
            if entry.owner == ask.owner:
                entry.until_ns = until_ns
        entries.append(Entry(ask.secret, ask.owner, ask.shared, until_ns))
        return Reply(ok=True)

    def _may_join(self, entries: list[Entry], ask: Ask) -> bool:
        if len(entries) < self._permits:
            return True
        return all(entry.owner == ask.owner or (entry.shared and ask.shared) for entry in entries)

    def forget(self) -> None:
        self._entries.clear()


class CompanyLock:
    """An owner is who it is from its first level to its last: after an answer that never came it
    is somebody else, or it would be let in to what it can no longer know that it holds."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        (self._server,) = caller.servers
        self._levels: dict[str, list[str]] = {}  # by key: the secrets of what it holds

    def acquire(self, key: str) -> Steps[Acquired]:
        return self._ask_for(key, shared=False)

    def acquire_shared(self, key: str) -> Steps[Acquired]:
        return self._ask_for(key, shared=True)

    def _ask_for(self, key: str, *, shared: bool) -> Steps[Acquired]:
        since_ns, secret = self._caller.clock_ns(), self._caller.secret()
        levels = self._levels.setdefault(key, [])
        reply = yield self._call(F.ACQUIRE, key, secret, (levels or [secret])[0], shared=shared)
        if reply is None:
            levels.clear()
            return Unsure(NO_ANSWER)
        if not reply.ok:
            return Refused(reply.why)
        levels.append(secret)
        return Grant(key, secret, since_ns)

    def renew(self, grant: Grant) -> Steps[Acquired]:
        since_ns = self._caller.clock_ns()
        reply = yield self._call(F.RENEW, grant.key, grant.secret)
        if reply is None:
            self._levels[grant.key].clear()
            return Unsure(NO_ANSWER)
        if not reply.ok:
            return Refused(reply.why)
        return Grant(grant.key, grant.secret, since_ns)

    def release(self, grant: Grant) -> Steps[Released]:
        levels = self._levels[grant.key]
        if grant.secret in levels:
            levels.remove(grant.secret)
        reply = yield self._call(F.RELEASE, grant.key, grant.secret)
        if reply is None:
            levels.clear()
            return Unsure(NO_ANSWER)
        return Done(removed=1) if reply.ok else Refused(reply.why)

    def _call(
        self, f: str, key: str, secret: str, owner: str = "", *, shared: bool = False
    ) -> Call:
        ask = Ask(f, key, secret, self._caller.ttl_ms, owner=owner, shared=shared)
        return Call(self._server, ask, self._caller.ttl_ns)


COMPANY = (
    LockKind("readers", "one server, leases, shared", CompanyLock, CompanyServer, shared=True),
    LockKind("nested", "one server, a lease, entered again", CompanyLock, CompanyServer, levels=3),
    LockKind(
        "permits",
        "one server, leases, permits",
        CompanyLock,
        partial(CompanyServer, permits=PERMITS),
        permits=PERMITS,
    ),
)
