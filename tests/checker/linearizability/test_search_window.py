"""A part that has no order whatever was before proves that the whole has none."""

from __future__ import annotations

from random import Random

import pytest

from lockcheck.checker.linearizability.answer import endless
from lockcheck.checker.linearizability.keepers import as_clients
from lockcheck.checker.linearizability.models import MODELS, OWNER_MUTEX, Model
from lockcheck.checker.linearizability.search.search import search
from lockcheck.checker.linearizability.search.window import SIZES, window
from tests.checker.dsl import ns, table
from tests.checker.linearizability.agreement import LOCKS
from tests.checker.linearizability.drawn import drawn, some_shared


@pytest.mark.parametrize("leases", [False, True])
@pytest.mark.parametrize(
    "model", [pytest.param(model, id=name) for name, model in LOCKS.items() if model.owners]
)
def test_a_part_that_has_no_order_is_a_part_of_what_has_none(model: Model, leases: bool) -> None:
    refuted = 0
    for seed in range(300):
        whole, until = drawn(Random(seed), leases=leases)
        whole = as_clients(whole)
        if model.name == "shared":
            whole = some_shared(Random(seed), whole)
        promised = until if leases else None
        right = search(whole, model, until=promised).linearizable
        for size in (3, 5):
            last_ns = int(whole.start[-1]) if len(whole) else 0
            part = window(whole, promised, last_ns, size)
            if part is None:
                continue
            right_here = search(part.table, model, until=part.until).linearizable
            assert right_here or not right, seed
            refuted += not right_here
    assert refuted > (0 if model.crowd else 5)


@pytest.mark.parametrize("name", ["owner-mutex", "fenced", "reentrant"])
def test_two_at_once_are_found_after_any_number_of_unknowns(name: str) -> None:
    """So many grants may have come and gone that there are too many ways to try."""
    lines, clients = [], 30
    for turn in range(1200):
        now, client = 10 * turn, turn % clients
        lines.append(f"{client} acquire {max(0, now - 60)}-{now}{'?' if turn % 4 == 0 else ''}")
        lines.append(f"{client} release {now + 5}-{now + 6}{'?' if turn % 3 == 0 else ''}")
    lines += ["98 acquire 13000-13001", "99 acquire 13002-13003", "98 release 13004-13005"]
    whole = table(*lines)
    answer = search(whole, MODELS[name], patience=endless)
    assert answer.linearizable is False
    assert {int(whole.start[row]) for row in answer.rows} <= {ns(13000), ns(13002), ns(13004)}
    assert answer.stuck_on in answer.rows


def test_all_there_is_is_no_part() -> None:
    short = table("0 acquire 1-2", "0 release 3-4")
    assert window(short, None, 9, SIZES[0]) is None
    assert search(short, OWNER_MUTEX).linearizable
