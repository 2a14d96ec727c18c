"""A keeper alone: when it renews, what it tells, and when it gives up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from lockcheck.backends.etcd.etcd_lock_service import TrustingKeeper
from lockcheck.backends.keeper import Keeper
from lockcheck.history import Refusal
from lockcheck.servers.wire import Phase, Refused, WireFailure
from tests.backends.claims import NotedClaim
from tests.waiting import wait_for

TTL_S = 0.9  # a third of it outlasts what a busy machine stands still


class Lease:
    """Granted, refused, or not answered, as a test wants it."""

    def __init__(self) -> None:
        self.asked = 0
        self.timeouts_s: list[float] = []
        self.failure: Refused | WireFailure | None = None
        self.slow_s = 0.0

    def extend(self, timeout_s: float) -> None:
        self.asked += 1
        self.timeouts_s.append(timeout_s)
        time.sleep(min(self.slow_s, timeout_s))
        if self.failure:
            raise self.failure


@pytest.fixture
def lease() -> Lease:
    return Lease()


@pytest.fixture
def claim() -> NotedClaim:
    return NotedClaim()


@pytest.fixture
def keeper(lease: Lease, claim: NotedClaim) -> Iterator[Keeper]:
    keeper = Keeper(claim, lease.extend, TTL_S, time.monotonic())
    keeper.start()
    yield keeper
    keeper.stop()


def test_it_keeps_a_hold_alive(keeper: Keeper, lease: Lease, claim: NotedClaim) -> None:
    keeper.holds = True
    wait_for(lambda: lease.asked >= 4, "it renews beyond a lease")
    assert keeper.left_s() > 0
    assert set(claim.told) == {"renewing", "renewed"}


def test_a_place_is_kept_alive_too_and_that_renews_no_hold(
    keeper: Keeper, lease: Lease, claim: NotedClaim
) -> None:
    wait_for(lambda: lease.asked >= 2, "it extends")
    assert claim.told == []


def test_a_refusal_ends_it(keeper: Keeper, lease: Lease, claim: NotedClaim) -> None:
    keeper.holds, lease.failure = True, Refused(Refusal.GONE)
    assert claim.lost_something.wait(30)
    assert claim.told == ["renewing", "not renewed: gone", "lost: its renewal was refused: gone"]
    assert lease.asked == 1


def test_without_an_answer_it_tries_again_until_the_lease_is_over(
    keeper: Keeper, lease: Lease, claim: NotedClaim
) -> None:
    began = time.monotonic()
    keeper.holds = True
    lease.failure = WireFailure(Phase.COMMAND, "e1", TimeoutError("slow"))
    lease.slow_s = TTL_S
    assert claim.lost_something.wait(30)
    assert time.monotonic() - began >= 0.9 * TTL_S
    assert claim.told[-1] == "lost: its lease has run out: no renewal was granted in time"
    assert lease.asked >= 2
    assert max(lease.timeouts_s) <= TTL_S / 3 + 1e-9, "or one server that hangs would cost it all"


def test_one_that_failed_is_made_up_for(keeper: Keeper, lease: Lease, claim: NotedClaim) -> None:
    lease.failure = WireFailure(Phase.CONNECT, "e1", ConnectionRefusedError())
    wait_for(lambda: lease.asked >= 2, "it tries again")
    lease.failure = None
    wait_for(lambda: lease.asked >= 5, "it goes on beyond a lease")
    assert not claim.lost_something.is_set()


def test_a_lease_runs_from_before_it_was_asked_for(lease: Lease, claim: NotedClaim) -> None:
    keeper = Keeper(claim, lease.extend, 10, time.monotonic() - 4)
    assert 5 < keeper.left_s() <= 6
    lease.slow_s = 0.2
    keeper.extend()
    assert keeper.left_s() <= 9.8


def test_stopped_it_sends_nothing_more(keeper: Keeper, lease: Lease) -> None:
    keeper.stop()
    asked = lease.asked
    time.sleep(TTL_S)
    assert lease.asked == asked
    assert all(thread is not keeper._thread for thread in threading.enumerate())


def test_one_that_takes_the_servers_word_tells_of_a_loss_only_when_it_holds(
    lease: Lease, claim: NotedClaim
) -> None:
    keeper = TrustingKeeper(claim, lease.extend, TTL_S, time.monotonic())
    keeper.start()
    wait_for(lambda: lease.asked >= 2, "it keeps a place alive")
    lease.failure = Refused(Refusal.GONE, "the lease is gone")
    wait_for(lambda: not keeper.left_s(), "its lease has run out")
    assert claim.told == []
    keeper.hold()
    assert claim.lost_something.wait(30)
    assert claim.told == [
        "renewing", "not renewed: the lease is gone",
        "lost: its renewal was refused: the lease is gone",
    ]  # fmt: skip
    keeper.stop()
