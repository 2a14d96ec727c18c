"""Plans that are drawn: the same for the same seed, each of them a run that makes sense."""

from __future__ import annotations

from itertools import islice

import pytest
from msgspec import structs

from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.hunting.drawing import CLIENTS, LEASES_MS, Drawing
from lockcheck.hunting.shrinking import fits

BASE = RunConfig(backend="redis-fenced", seed=7)


def drawn(base: RunConfig = BASE, *fixed: str, number: int = 30) -> list[RunConfig]:
    return list(islice(Drawing(base, fixed).plans(), number))


def test_they_differ_and_all_make_sense() -> None:
    plans = drawn()
    assert all(map(fits, plans))
    assert {plan.clients for plan in plans} == {*CLIENTS}
    assert {plan.ttl_ms for plan in plans} == {*LEASES_MS}
    assert len({plan.nemesis for plan in plans}) > 20
    assert {1, 2, 3} <= {len(plan.nemesis) for plan in plans}
    assert any(" then " in plan.nemesis[0] for plan in plans), "as `all` draws them"


def test_the_seed_fixes_them() -> None:
    assert drawn() == drawn()
    assert drawn(structs.replace(BASE, seed=8)) != drawn()


def test_what_is_given_is_kept() -> None:
    base = structs.replace(BASE, nemesis=("pause:holder",), ttl_ms=700, guard="fence")
    plans = drawn(base, "nemesis", "ttl_ms")
    assert {(plan.nemesis, plan.ttl_ms) for plan in plans} == {(("pause:holder",), 700)}
    assert {plan.guard for plan in plans} == {"fence"}
    assert len({plan.clients for plan in plans}) > 1


def test_a_lock_that_fits_nothing_is_refused_with_the_reason() -> None:
    with pytest.raises(UserError, match="nosuch"):
        drawn(structs.replace(BASE, nemesis=("nosuch",)), "nemesis")
