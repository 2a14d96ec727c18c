"""Locks on ZooKeeper with a queue of ephemeral nodes, which ZooKeeper numbers.

A client without a rival of a lower number holds the lock; each other client watches the last rival
before it, and looks again when that one is gone. The steps are those of `kazoo.recipe.lock.Lock`.
"""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lockcheck.backends.base import Claim, Mode
from lockcheck.backends.zookeeper.zookeeper_nodes import AFTER_A_FAILURE_S, QueueNode, SessionLock
from lockcheck.history import Refusal
from lockcheck.servers.wire import Refused, WireFailure

if TYPE_CHECKING:
    from lockcheck.backends.zookeeper.zookeeper_session import ZooKeeperSession

NUMBER = re.compile(r"\d{10}$")


class QueueLock(SessionLock):
    @abstractmethod
    def _kind(self, mode: Mode) -> str:
        """The kind of a client's node: a part of its name, before the number."""

    @abstractmethod
    def _rivals(self, mode: Mode) -> tuple[str, ...]:
        """The kinds of nodes that a client waits for, if their numbers are lower than its own."""

    def _enter(self, claim: Claim, session: ZooKeeperSession, folder: str) -> QueueNode:
        name = f"{self._choices.getrandbits(128):032x}{self._kind(claim.mode)}"
        place = self._create(claim, session, f"{folder}/{name}", numbered=True)
        try:
            self._await_turn(place)
        except Refused as refusal:
            self._withdraw(place, refusal)
            raise
        return place

    def _await_turn(self, place: QueueNode) -> None:
        claim, session = place.claim, place.session
        queued = False
        while claim.left_s() > 0:
            seen = session.changes
            try:
                predecessor = self._predecessor(place)
                if predecessor is None:
                    if session.holds(claim, seen):
                        return
                    continue  # the connection was gone for a while: look again
                if not queued:
                    claim.queued()
                    queued = True
                self._await_change(claim, session, f"{place.folder}/{predecessor}")
            except WireFailure as failure:  # a read: nothing was changed
                if session.over:
                    raise Refused(Refusal.GONE, "its session expired while it waited") from failure
                time.sleep(AFTER_A_FAILURE_S)
        raise Refused(Refusal.HELD, "waited too long in the queue")

    def _predecessor(self, place: QueueNode) -> str | None:
        names = place.session.ask(
            lambda client: client.get_children_async(place.folder), self._ttl_s
        )
        if place.name not in names:
            raise Refused(Refusal.GONE, "its session expired while it waited")
        return predecessor(place.name, names, self._rivals(place.claim.mode))


def predecessor(name: str, names: Iterable[str], rivals: tuple[str, ...]) -> str | None:
    """The rival with the highest number below that of `name`."""
    own = _number(name)
    before = [
        (number, each)
        for each in names
        if (number := _number(each)) and number < own and NUMBER.sub("", each).endswith(rivals)
    ]
    return max(before)[1] if before else None


def _number(name: str) -> str:
    found = NUMBER.search(name)
    return found[0] if found else ""
