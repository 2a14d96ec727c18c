"""Consul's lock, as its own client library does it: a key that a session acquires.

A client opens a session with a TTL, kept alive by renewals, and acquires the key with it; while
another client holds it, a blocking query reports changes. The key's lock index, which counts its
acquisitions, is the fencing token: the key is never deleted, so the index never restarts.

- Consul ends a session no sooner than its TTL after the last renewal, and in fact after twice that;
  then it grants the key to no client for the lock-delay. A client relies on the TTL only.
- The lock-delay is one TTL, as in Consul's own client, where both are 15 s.
- Sessions have no health checks. With the usual one, that of the server's node, the locks of all
  clients of a server would be lost when it dies.
- A transaction acquires the key: its answer has the lock index of this very step.
- No queue: the first to ask gets the key. A waiting client asks again after each change.
"""

from __future__ import annotations

import time

from lockcheck.backends.base import Backend, Claim, Grant, LockSettings, Promises
from lockcheck.backends.expected import SHORT, Expected
from lockcheck.backends.expected_usual import DISK_FAILS
from lockcheck.backends.keeper import Keeper, KeptAlive, KeptAliveLock
from lockcheck.history import Refusal
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire import NOT_WITHDRAWN, Address, Refused, WireFailure, not_withdrawn
from lockcheck.servers.wire.consul import CONSUL_ERRORS, ConsulMembers

MEMBERS = 3
AFTER_A_FAILURE_S = 0.02  # until the next member is asked for the same
LOOK_S = 0.5  # the longest blocking query: then the client checks whether to go on
DELAYED_S = 0.05  # between two attempts during the lock-delay, whose end no query reports


class ConsulLock(KeptAliveLock[KeptAlive]):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        super().__init__()
        self._servers = servers
        self._ttl_ms = settings.ttl_ms
        self._choices = settings.choices
        self._members = self._new_members()

    def _new_members(self) -> ConsulMembers:
        first = self._choices.randrange(len(self._servers))
        return ConsulMembers(self._servers, self._ttl_ms / 1000, first)

    def acquire(self, claim: Claim) -> Grant:
        session = self._open_session(claim)
        session.keeper.start()
        try:
            token = self._await_turn(claim, session)
        except (Refused, WireFailure) as failure:
            session.stop()
            withdrawn = self._withdraw(session)
            if isinstance(failure, Refused) and not withdrawn:
                raise not_withdrawn(claim.key, failure) from failure
            raise
        return self._granted(claim, session, token)

    def _open_session(self, claim: Claim) -> KeptAlive:
        since, keeping = time.monotonic(), self._new_members()
        try:
            opened = self._members.open_session(self._ttl_ms, lock_delay_ms=self._ttl_ms)
        except WireFailure as failure:  # it holds nothing, even if it was opened
            raise Refused(Refusal.UNAVAILABLE, f"no session: {failure}") from failure
        keeper = Keeper(
            claim,
            lambda timeout_s: keeping.renew_session(opened, timeout_s),
            self._ttl_ms / 1000,
            since,
        )
        return KeptAlive(opened, keeper, keeping)

    def _await_turn(self, claim: Claim, session: KeptAlive) -> int:
        """Returns the token. The acquiring transaction itself checks that the session is alive."""
        seen, queued, why = 0, False, ""
        while not session.keeper.why_lost and claim.left_s() > 0:
            try:
                holder, seen = self._members.look(_path(claim.key), seen, LOOK_S)
            except WireFailure:  # a read: another member can answer as well
                seen = 0
                time.sleep(AFTER_A_FAILURE_S)
                continue
            if not holder:
                try:
                    return self._members.lock(_path(claim.key), session.id)
                except Refused as refusal:
                    why, seen = str(refusal), 0
                    time.sleep(DELAYED_S if "lock delay" in why else 0)
            if not queued:
                claim.queued()
                queued = True
        if session.keeper.why_lost:
            raise Refused(Refusal.GONE, session.keeper.why_lost)
        raise Refused(Refusal.HELD, f"waited too long; {why or 'it is held'}")

    def release(self, grant: Grant) -> object:
        session = self._let_go(grant)
        self._members.unlock(_path(grant.key), session.id)
        self._withdraw(session)  # only to tidy up: it holds nothing any more
        return {"released": 1}

    def close(self) -> None:
        super().close()
        self._members.close()

    def _withdraw(self, session: KeptAlive) -> bool:
        """Destroys a session, which frees its locks; whether that was confirmed."""
        for _ in range(len(self._members)):
            try:
                self._members.destroy_session(session.id)
            except WireFailure:
                continue
            return True
        return False


def _path(key: str) -> str:
    return f"lock/{key}"


BACKEND = Backend(
    name="consul",
    summary=f"{MEMBERS} servers, sessions with TTL and lock-delay that acquire a key",
    promises=Promises(session=True, fencing=True, renews=True, waits=True, lapses_after=3),
    servers=tuple(
        NodeSpec(f"n{number}", Role.SERVER, Kind("consul")) for number in range(1, MEMBERS + 1)
    ),
    connect=ConsulLock,
    errors=(NOT_WITHDRAWN, *CONSUL_ERRORS),
    retry_ms=(1, 10),
    ended_by="the session's TTL: twice that after its last renewal, and then the lock-delay, a TTL",
    expected=(
        Expected("none", "ok", SHORT),
        # The session lapses while its client is stopped.
        Expected("pause", "violation", findings=("overlap", "stale-write"), blame="holder"),
        Expected("pause", "ok", guard="fence"),
        Expected("kill:holder", "ok", SHORT),
        # A client that is cut off believes in the TTL; Consul waits three times as long.
        Expected("partition:holder", "ok", SHORT),
        # After the end of a leader, sessions that could not be renewed have to lapse first. That
        # takes as long as the fault, so there has to be time between two of them.
        Expected("kill:server,gap=3s", "ok"),
        Expected("kill:leader,gap=3s", "ok"),
        *DISK_FAILS,
    ),
)
