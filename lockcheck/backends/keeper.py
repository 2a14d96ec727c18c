"""A keeper: the thread that keeps a hold alive, by three renewals per lease.

Renewals of a hold go into the history; those that keep a place in a queue alive do not. The client
is notified that the hold is lost when a renewal is refused, or when a whole lease has passed by the
keeper's own clock since the last granted one. After a pause of the whole process the client may act
before its keeper notices: a risk that real clients have, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from lockcheck.backends.base import Claim, Grant, Lock
from lockcheck.servers.wire import Refused, WireFailure

RENEWALS_IN_A_LEASE = 3


class Keeper:
    """Renews a lease or session from a thread of its own."""

    def __init__(
        self, claim: Claim, extend: Callable[[float], None], ttl_s: float, since: float
    ) -> None:
        """`extend` sends one renewal, with a timeout in seconds; it raises Refused if the lease is
        gone, or WireFailure. `since`: a moment before the lease was asked for."""
        self._claim = claim
        self._extend = extend
        self._ttl_s = ttl_s
        self._interval_s = ttl_s / RENEWALS_IN_A_LEASE
        self._until = since + ttl_s
        self.holds = False  # before that it keeps a place in the queue alive
        self._one_at_a_time = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self.why_lost = ""

    def start(self) -> None:
        self._thread.start()

    def hold(self) -> None:
        """From now on it keeps a hold, whose renewals are recorded."""
        self.holds = True

    def left_s(self) -> float:
        """How long the lease is certainly still valid."""
        return max(0.0, self._until - time.monotonic())

    def renew(self) -> None:
        """Renews a hold, and records that as an operation of the keeper. Raises as `extend`."""
        renewal = self._claim.renewing()
        try:
            self.extend()
        except (Refused, WireFailure) as failure:
            renewal.failed(failure)
            raise
        renewal.granted(self.left_s() * 1000)

    def extend(self) -> None:
        """Sends a renewal without a record. Raises Refused or WireFailure."""
        with self._one_at_a_time:
            since = time.monotonic()  # before it is sent: the server may count from then on
            self._extend(min(self._interval_s, max(self.left_s(), 0.001)))
            self._until = since + self._ttl_s

    def try_to_extend(self) -> None:
        """Sends a renewal and ignores its failure. Sends none once the lease has expired by the
        keeper's own clock, as etcd's client libraries do."""
        if self.left_s():
            with suppress(Refused, WireFailure):
                self.extend()

    def stop(self) -> None:
        """Ends the thread. What it had sent has been answered or timed out then."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(self._ttl_s)

    def _keep(self) -> None:
        pause_s = max(0.0, self.left_s() - self._ttl_s + self._interval_s)
        while not self._stopping.wait(min(pause_s, self.left_s())):
            if not self.left_s():
                self._lose("its lease has run out: no renewal was granted in time")
                return
            try:
                if self.holds:
                    self.renew()
                else:
                    self.extend()
                pause_s = self._interval_s
            except Refused as refusal:
                self._lose(f"its renewal was refused: {refusal}")
                return
            except WireFailure:  # the history has the reason
                pause_s = self._interval_s / 10

    def _lose(self, why: str) -> None:
        self.why_lost = why
        self._claim.lost(why)


class Closable(Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class KeptAlive:
    """A lease or session at the server, and its keeper."""

    id: str
    keeper: Keeper
    connection: Closable  # the keeper's own, since it works on its own thread

    def stop(self) -> None:
        self.keeper.stop()
        self.connection.close()


class Kept(Protocol):
    """What a keeper keeps alive."""

    @property
    def keeper(self) -> Keeper: ...

    def stop(self) -> None: ...


K = TypeVar("K", bound=Kept)


class KeptAliveLock(Lock, Generic[K]):
    """A lock whose grants each have a keeper."""

    def __init__(self) -> None:
        self._kept: list[K] = []

    def _granted(self, claim: Claim, kept: K, token: int | None) -> Grant:
        valid_ms = kept.keeper.left_s() * 1000
        kept.keeper.hold()
        self._kept.append(kept)
        return Grant(claim.key, kept, token, valid_ms, claim.mode)

    def leave(self, grant: Grant) -> None:
        self._let_go(grant)

    def close(self) -> None:
        for kept in self._kept:
            kept.stop()

    def _let_go(self, grant: Grant) -> K:
        [kept] = [each for each in self._kept if each is grant.handle]
        kept.stop()
        self._kept.remove(kept)
        return kept
