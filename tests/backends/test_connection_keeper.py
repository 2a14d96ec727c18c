"""A keeper of what lasts as long as a connection: a pair of sockets in place of a server's."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from lockcheck.backends.connection_keeper import ConnectionKeeper
from lockcheck.servers.wire import Phase, WireFailure
from tests.backends.claims import NotedClaim
from tests.waiting import wait_for

TTL_S = 0.3


class Pair:
    """A connection whose other end is a test's."""

    def __init__(self) -> None:
        self.own, self.other = socket.socketpair()
        self.pings: list[float] = []
        self.is_answered = True
        self.over = False
        self.heard = 0

    def fileno(self) -> int:
        return self.own.fileno()

    def ended(self) -> bool:
        try:
            said = self.own.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return self.over
        self.heard += len(said)
        self.over = self.over or not said
        return self.over

    def ping(self, timeout_s: float) -> None:
        self.pings.append(timeout_s)
        if not self.is_answered:
            self.over = True
            raise WireFailure(Phase.COMMAND, "p1", TimeoutError())


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.own.close()
    pair.other.close()


def kept(pair: Pair, ttl_s: float = TTL_S) -> tuple[ConnectionKeeper, NotedClaim]:
    claim = NotedClaim()
    keeper = ConnectionKeeper(claim, pair, ttl_s, time.monotonic())
    keeper.start()
    return keeper, claim


def test_pings_are_renewals_and_are_answered_within_a_ttl_of_the_last_one(pair: Pair) -> None:
    keeper, claim = kept(pair)
    wait_for(lambda: len(pair.pings) > 3, "it pings")
    keeper.stop()
    assert claim.told[:4] == ["renewing", "renewed"] * 2
    assert max(pair.pings) + keeper._interval_s <= TTL_S
    assert not claim.lost_something.is_set()


def test_it_is_lost_at_once_when_the_other_end_closes_it(pair: Pair) -> None:
    keeper, claim = kept(pair, ttl_s=3600)
    pair.other.close()
    assert claim.lost_something.wait(30)
    assert claim.told == ["lost: its connection has ended"]
    keeper.stop()


def test_what_is_said_is_no_end(pair: Pair) -> None:
    keeper, claim = kept(pair, ttl_s=3600)
    pair.other.send(b"x" * 100)
    wait_for(lambda: pair.heard == 100, "it has listened to all that is said")
    keeper.stop()
    assert claim.told == []


def test_a_ping_without_an_answer_ends_it(pair: Pair) -> None:
    pair.is_answered = False
    keeper, claim = kept(pair)
    assert claim.lost_something.wait(30)
    assert claim.told[0] == "renewing"
    assert claim.told[1].startswith("not renewed")
    assert claim.told[2] == "lost: its connection has ended"
    keeper.stop()


def test_stopping_wakes_it(pair: Pair) -> None:
    keeper, _claim = kept(pair, ttl_s=3600)
    began = time.monotonic()
    keeper.stop()
    assert time.monotonic() - began < 60
    assert not keeper._thread.is_alive()
