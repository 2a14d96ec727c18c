"""What every lock on ZooKeeper has in common: nodes that live as long as a session of kazoo's.

The transaction that created a client's node (its czxid) is the fencing token.

- kazoo's client, but not its `Lock`, which retries silently and without end, can hang for as long
  as a client is cut off, and hides that a node could not be removed or was gone: the record would
  be a guess.
- SUSPENDED counts as lost, as kazoo's documentation asks of its users. Only a server that answers
  again reports LOST, so a client that is cut off would never learn of it. SUSPENDED is kazoo's own
  conclusion from an unanswered heartbeat, and comes before the session's timeout.
- `is_acquired` and the like do not help: after a pause of the whole process, the client works on
  until kazoo's thread has noticed. Users' clients do, too.
- A session that is lost, or whose pending calls are unknown, is ended and replaced: what kazoo has
  queued for it must not be done later.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings
from lockcheck.errors import ClusterError
from lockcheck.history import EventType, Refusal
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire import (
    NOT_WITHDRAWN,
    Address,
    ErrorRow,
    Refused,
    WireFailure,
    not_withdrawn,
)

if TYPE_CHECKING:
    from kazoo.client import KazooClient

    from lockcheck.backends.zookeeper.zookeeper_session import ZooKeeperSession

MEMBERS = 3
SERVERS = tuple(
    NodeSpec(f"z{number}", Role.SERVER, Kind("zookeeper")) for number in range(1, MEMBERS + 1)
)
ENDED_BY = "the timeout of its session, without heartbeats"
LOOK_S = 0.05  # how often a waiting client checks whether to go on
AFTER_A_FAILURE_S = 0.02
CLOSING_S = 3.0
FAIL, INFO = EventType.FAIL, EventType.INFO

# kazoo does not report what was never sent, with two exceptions: calls that were only queued when
# the session expired, or when the client was closed.
ERRORS = (
    ErrorRow(
        "command", "SessionExpiredError", FAIL, "the session expired: nothing is left", Refusal.GONE
    ),
    ErrorRow("command", "ConnectionClosedError", FAIL, "closed, so nothing was sent"),
    ErrorRow("command", "ConnectionLoss", INFO, "perhaps sent, but the connection broke"),
    ErrorRow("command", "KazooTimeoutError", INFO, "perhaps sent, but not answered in time"),
    NOT_WITHDRAWN,
)
on_zookeeper = partial(Backend, servers=SERVERS, errors=ERRORS, retry_ms=(1, 10))


@dataclass(frozen=True, slots=True)
class QueueNode:
    """A client's node, and the session that it lives in."""

    folder: str
    name: str
    czxid: int
    claim: Claim
    session: ZooKeeperSession

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}"


class SessionLock(Lock):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        self._hosts = servers
        self._ttl_s = settings.ttl_ms / 1000
        self._choices = settings.choices
        self._session: ZooKeeperSession | None = None
        self._ending: list[threading.Thread] = []

    @abstractmethod
    def _enter(self, claim: Claim, session: ZooKeeperSession, folder: str) -> QueueNode:
        """Waits until it is let in, and registers for losses. Withdraws its node if it gives up."""

    def acquire(self, claim: Claim) -> Grant:
        session, folder = self._open_session(claim), f"/lock/{claim.key}"
        try:
            session.ask(lambda client: client.ensure_path_async(folder), self._ttl_s)
        except WireFailure as failure:  # it created no node of the client's
            self._end(session)
            raise Refused(Refusal.UNAVAILABLE, f"no place to queue: {failure}") from failure
        place = self._enter(claim, session, folder)
        return Grant(claim.key, place, place.czxid, mode=claim.mode)

    def _create(
        self, claim: Claim, session: ZooKeeperSession, path: str, numbered: bool = False
    ) -> QueueNode:
        from kazoo.exceptions import NodeExistsError

        def create(client: KazooClient) -> Any:
            return client.create_async(path, ephemeral=True, sequence=numbered, include_data=True)

        try:
            created, stat = session.ask(create, self._ttl_s)
        except WireFailure as failure:
            if not isinstance(failure.cause, NodeExistsError):  # which is an answer
                self._end(session)
            raise
        folder, _, name = created.rpartition("/")
        return QueueNode(folder, name, stat.czxid, claim, session)

    def _await_change(self, claim: Claim, session: ZooKeeperSession, path: str) -> None:
        """Waits for a change of a node, or of the connection, which fires watches, too."""
        changed = threading.Event()

        def watch(client: KazooClient) -> Any:
            return client.exists_async(path, watch=lambda _event: changed.set())

        if session.ask(watch, self._ttl_s) is None:
            return
        while not changed.wait(LOOK_S) and claim.left_s() > 0:
            pass

    def release(self, grant: Grant) -> object:
        place = _place(grant)
        place.session.drop(place.claim)
        if not self._deleted(place):
            raise Refused(Refusal.NOT_OWNER)
        return {"removed": 1}

    def leave(self, grant: Grant) -> None:
        """A session cannot be left to run out, and its end would be an unrecorded release. Where a
        second lock was asked for in vain, the session has ended already."""
        if _place(grant).session is not self._session:
            return
        raise ClusterError(
            f"the storage did not answer, and the session that holds {grant.key} goes on",
            cure="the machine is overloaded, or the storage hangs: see its output.log",
        )

    def close(self) -> None:
        if self._session is not None:
            self._end(self._session)
        until = time.monotonic() + CLOSING_S
        for thread in self._ending:
            thread.join(max(0.0, until - time.monotonic()))

    def _withdraw(self, place: QueueNode, refusal: Refused) -> None:
        if place.session.over:
            return  # its node is removed with it
        try:
            self._deleted(place)
        except WireFailure as failure:
            raise not_withdrawn(place.claim.key, refusal) from failure

    def _deleted(self, place: QueueNode) -> bool:
        """Deletes the node; whether it was still there."""
        from kazoo.exceptions import NoNodeError

        try:
            place.session.ask(lambda client: client.delete_async(place.path), self._ttl_s)
        except WireFailure as failure:
            if isinstance(failure.cause, NoNodeError):
                return False
            self._end(place.session)
            raise
        return True

    def _open_session(self, claim: Claim) -> ZooKeeperSession:
        from lockcheck.backends.zookeeper.zookeeper_session import ZooKeeperSession

        if self._session is not None and self._session.over:
            self._end(self._session)
        if self._session is None:
            # Another order each time: an unreachable server costs a whole timeout.
            hosts = self._choices.sample(self._hosts, len(self._hosts))
            self._session = ZooKeeperSession(hosts, self._ttl_s)
        while not self._session.connected(LOOK_S):
            if self._session.over or claim.left_s() <= 0:
                self._end(self._session)
                raise Refused(Refusal.UNAVAILABLE, "no session: no server answered")
        return self._session

    def _end(self, session: ZooKeeperSession) -> None:
        """Ends a session in the background: kazoo is slow, and nothing depends on it."""
        if session is self._session:
            self._session = None
        ending = threading.Thread(target=session.end, daemon=True)
        ending.start()
        self._ending = [thread for thread in self._ending if thread.is_alive()] + [ending]


def _place(grant: Grant) -> QueueNode:
    assert isinstance(grant.handle, QueueNode)  # noqa: S101 - it is our own
    return grant.handle
