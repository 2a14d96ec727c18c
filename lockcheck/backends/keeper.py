"""A keeper: the thread that keeps a hold alive, three times a lease, for as long as it can.

Each renewal of a hold goes into the history; what keeps a place in a queue alive renews no hold,
and does not. When a renewal is refused, or when a lease has gone by since the last that was
granted, by its own clock, the hold is lost and the client is told. After a pause of the whole
process it wakes together with the client, who may be quicker: that is the client's risk, and
nothing is done here to make it smaller.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from lockcheck.backends.base import Claim, Grant, Lock
from lockcheck.servers.wire import Refused, WireFailure

RENEWALS_IN_A_LEASE = 3


class Keeper:
    """`extend` is one renewal, with at most so many seconds to be answered; it raises Refused
    where the lease is gone, and WireFailure. `since`: before the lease was asked for."""

    def __init__(
        self, claim: Claim, extend: Callable[[float], None], ttl_s: float, since: float
    ) -> None:
        self._claim = claim
        self._extend = extend
        self._ttl_s = ttl_s
        self._interval_s = ttl_s / RENEWALS_IN_A_LEASE
        self._until = since + ttl_s
        self.holds = False  # until then it keeps a place alive
        self._one_at_a_time = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self.why_lost = ""

    def start(self) -> None:
        self._thread.start()

    def hold(self) -> None:
        """From now on it keeps a hold."""
        self.holds = True

    def left_s(self) -> float:
        """For how long it may still believe in the lease."""
        return max(0.0, self._until - time.monotonic())

    def renew(self) -> None:
        """Of a hold: an operation of the keeper's, whichever thread asks for it."""
        renewal = self._claim.renewing()
        try:
            self.extend()
        except (Refused, WireFailure) as failure:
            renewal.failed(failure)
            raise
        renewal.granted(self.left_s() * 1000)

    def extend(self) -> None:
        """The same, where nothing is held yet, or somebody else writes it down."""
        with self._one_at_a_time:
            since = time.monotonic()  # before it is sent: the server may have begun to count then
            self._extend(min(self._interval_s, max(self.left_s(), 0.001)))
            self._until = since + self._ttl_s

    def try_to_extend(self) -> None:
        """Where it makes no difference yet whether the lease is gone. Once it has run out by one's
        own clock it is renewed no more, as etcd's own client libraries have it."""
        if self.left_s():
            with suppress(Refused, WireFailure):
                self.extend()

    def stop(self) -> None:
        """It sends nothing more, and what it had sent is answered, or too late."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(self._ttl_s)

    def _keep(self) -> None:
        pause_s = max(0.0, self.left_s() - self._ttl_s + self._interval_s)
        while not self._stopping.wait(min(pause_s, self.left_s())):
            if not self.left_s():
                self._tell("its lease has run out: no renewal was granted in time")
                return
            try:
                if self.holds:
                    self.renew()
                else:
                    self.extend()
                pause_s = self._interval_s
            except Refused as refusal:
                self._tell(f"its renewal was refused: {refusal}")
                return
            except WireFailure:  # the renewal says why
                pause_s = self._interval_s / 10

    def _tell(self, why: str) -> None:
        self.why_lost = why
        self._claim.lost(why)


class Closable(Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class KeptAlive:
    """A lease or session at the server, and what keeps it alive there."""

    id: str
    keeper: Keeper
    connection: Closable  # the keeper's own: it works on its own thread

    def stop(self) -> None:
        self.keeper.stop()
        self.connection.close()


class KeptAliveLock(Lock):
    """Each of its grants is kept alive by a keeper of its own."""

    def __init__(self) -> None:
        self._kept: list[KeptAlive] = []

    def _granted(self, claim: Claim, kept: KeptAlive, token: int) -> Grant:
        kept.keeper.hold()
        self._kept.append(kept)
        return Grant(claim.key, kept, token, kept.keeper.left_s() * 1000, claim.mode)

    def renew(self, grant: Grant) -> Grant:
        keeper = _kept(grant).keeper
        keeper.extend()
        return replace(grant, valid_ms=keeper.left_s() * 1000)

    def leave(self, grant: Grant) -> None:
        self._let_go(grant)

    def close(self) -> None:
        for kept in self._kept:
            kept.stop()

    def _let_go(self, grant: Grant) -> KeptAlive:
        kept = _kept(grant)
        kept.stop()
        self._kept.remove(kept)
        return kept


def _kept(grant: Grant) -> KeptAlive:
    assert isinstance(grant.handle, KeptAlive)  # noqa: S101 - it is our own
    return grant.handle
