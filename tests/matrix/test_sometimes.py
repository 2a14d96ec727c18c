"""What has to happen once in a campaign: said where it never did, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.matrix.model import Cell, CellOutcome
from lockcheck.matrix.sometimes import blind_spots
from tests.matrix.cells import LATE, broken, cell, error, fine, outcome, unknown

HOLDERS = {"holders": 3}
FENCED = {"backend": "redis-fenced", "guard": "fence"}
LEASE = "no lease was seen to run out, in 2 runs under {}: what happens then is not tested"
GUARD = (
    "no late write was ever refused, in 2 runs behind a guard under {}: the guard may not be "
    "tested at all"
)


def ran(of: Cell, number: int = 2, verdict: str = "ok", **given: Any) -> CellOutcome:
    """Runs in which all went as it should, but for what is given."""
    usual = {"faults": {"pause": 2}, "counts": HOLDERS, "freed_ms": (900.0,)}
    return outcome(of, [{**fine()[0], "verdict": verdict, **usual, **given}] * number)


def test_a_campaign_in_which_all_happened_is_not_blind() -> None:
    assert blind_spots([ran(cell())]) == ()
    assert blind_spots([]) == ()
    assert blind_spots([outcome(cell(), error(5))]) == ()


# --- a lease ran out -----------------------------------------------------------------------------


@pytest.mark.parametrize("nemesis", ["pause", "pause:client", "pause:for=2s"])
def test_no_lease_ran_out(nemesis: str) -> None:
    assert blind_spots([ran(cell(nemesis=nemesis), freed_ms=())]) == (LEASE.format("pause"),)


def test_a_lease_ran_out_under_a_late_holder() -> None:
    late = broken(1, LATE, faults={"pause": 1}, counts=HOLDERS)
    quiet = ran(cell(), freed_ms=())
    assert blind_spots([outcome(cell(expect="any"), late), quiet]) == ()


@pytest.mark.parametrize(
    "of",
    [
        cell(nemesis="pause:for=500ms"),  # is over before the lease
        cell(nemesis="pause:server"),
        cell("etcd"),  # a session
        cell("own", client="./mylock", promises=("session",)),
        cell("idempotent"),  # lets all in
    ],
    ids=lambda of: of.id,
)
def test_leases_that_need_not_run_out(of: Cell) -> None:
    assert blind_spots([ran(of, freed_ms=())]) == ()


def test_the_lease_of_a_users_own_lock() -> None:
    own = cell("own", client="./mylock")
    assert blind_spots([ran(own, freed_ms=())]) == (LEASE.format("pause"),)


# --- a late write was refused --------------------------------------------------------------------


def test_no_late_write_was_refused() -> None:
    assert blind_spots([ran(cell(**FENCED))]) == (GUARD.format("pause"),)
    both = cell(**FENCED, nemesis=("partition:holder", "pause"))
    faults = {"pause": 1, "partition": 1}
    assert blind_spots([ran(both, faults=faults)]) == (GUARD.format("partition and pause"),)


def test_a_late_write_was_refused_once() -> None:
    refused = ran(cell(**FENCED), counts={**HOLDERS, "stale_writes_refused": 1}, freed_ms=())
    assert blind_spots([refused, ran(cell(**FENCED))]) == ()


def test_where_no_write_is_late_none_has_to_be_refused() -> None:
    server = cell(**FENCED, nemesis="pause:server")
    assert blind_spots([ran(server)]) == ()


# --- faults --------------------------------------------------------------------------------------


def test_a_fault_never_took() -> None:
    two = cell("etcd", ("pause:server then kill:server",))
    assert blind_spots([ran(two)]) == (
        "kill was never seen to take, in 2 runs that asked for it: it tested nothing",
    )
    assert blind_spots([ran(two), ran(two, faults={"pause": 1, "kill": 1})]) == ()


def test_what_a_seed_draws_is_not_asked_for() -> None:
    assert blind_spots([ran(cell(nemesis="all"), faults={})]) == ()
    assert blind_spots([ran(cell(nemesis="none"), faults={})]) == ()


def test_no_client_felt_a_fault() -> None:
    unfelt = ran(cell(), unfelt=("pause",))
    (only,) = blind_spots([unfelt])
    assert only == (
        "no client ever felt pause, in 2 runs in which it took: it came at the wrong time, or at "
        "the wrong place"
    )
    assert blind_spots([unfelt, ran(cell("etcd"))]) == ()


MISSED: dict[str, Any] = {"doubt_codes": ("no-holder-struck",), "verdict": "unknown"}


def test_no_holder_was_struck() -> None:
    assert blind_spots([ran(cell(), **MISSED)]) == (
        "pause:holder never struck a holder, in 2 runs in which it took: no lock was in danger",
    )
    assert blind_spots([ran(cell(), **MISSED), ran(cell(), 1)]) == ()


def test_which_of_several_missed_is_not_known() -> None:
    both = cell(nemesis=("pause", "kill:holder"))
    faults = {"pause": 1, "kill": 1}
    (only,) = blind_spots([ran(both, faults=faults, **MISSED), ran(cell())])
    assert only == (
        "one of pause:holder and kill:holder never struck a holder, in 2 runs in which it took: "
        "no lock was in danger"
    )


def test_a_fault_that_did_not_take_could_not_strike() -> None:
    (only,) = blind_spots([ran(cell("etcd"), faults={}, **MISSED)])
    assert only.startswith("pause was never seen to take")


# --- the lock, and what is expected --------------------------------------------------------------


def test_the_lock_never_changed_hands() -> None:
    alone = ran(cell(), counts={"holders": 1})
    assert blind_spots([alone, ran(cell("etcd"))]) == (
        "the lock of redis never changed hands, in 2 runs: nothing is known of how it excludes",
    )
    assert blind_spots([alone, ran(cell(), 1)]) == ()
    assert blind_spots([ran(cell(clients=1), counts={"holders": 1})]) == ()


@pytest.mark.parametrize("expect", ["violation", "violation >= 0.8", "violation == 0.5"])
def test_no_expected_violation_came(expect: str) -> None:
    of = cell("redis-naive", "none", expect)
    quiet = outcome(of, [*fine(2, counts=HOLDERS), *unknown(counts=HOLDERS)])
    assert blind_spots([quiet]) == (
        "no expected violation came, in 3 runs that expect one: the tester may be blind",
    )
    assert blind_spots([quiet, outcome(of, broken(counts=HOLDERS))]) == ()


@pytest.mark.parametrize("expect", ["violation <= 0.1", "violation < 0.1", "any", "ok"])
def test_where_none_has_to_come(expect: str) -> None:
    assert (
        blind_spots([outcome(cell(nemesis="none", expect=expect), fine(2, counts=HOLDERS))]) == ()
    )
