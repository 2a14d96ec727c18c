"""Compares the engines with all orders, over any number of small histories:

    python -m tests.checker.linearizability.agreement --histories 200000 --model fenced --leases

Prints how many stayed undecided, and the seeds of those that were decided wrong.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from random import Random

import numpy as np

from lockcheck.checker.linearizability.decide import decide
from lockcheck.checker.linearizability.keepers import as_clients
from lockcheck.checker.linearizability.models import MODELS, STORING, Model, semaphore
from lockcheck.checker.linearizability.own_order import in_turn
from lockcheck.history.table import NEVER, Ints, Table
from tests.checker.linearizability import registers
from tests.checker.linearizability.brute import OwnOrders, brute, own_orders, times_alone
from tests.checker.linearizability.brute_crowds import brute_crowd
from tests.checker.linearizability.brute_leases import brute_with_leases
from tests.checker.linearizability.drawn import drawn, some_either, some_shared
from tests.checker.linearizability.registers import maybe_spoiled

LOCKS: dict[str, Model] = {
    **{name: MODELS[name] for name in ("mutex", "owner-mutex", "fenced")},
    **{name: MODELS[name] for name in ("reentrant", "reentrant-fenced")},
    "semaphore": semaphore(2),
    "owner-semaphore": MODELS["owner-semaphore"],
    "shared": MODELS["shared"],
}
COMPARED = LOCKS | {"cas-register": MODELS["cas-register"]}


def expected_and_decided(model: Model, seed: int, *, leases: bool) -> tuple[bool, bool | None]:
    table, until = _drawn(model, seed, leases=leases)
    promised = until if leases else None
    events = Random(seed).choice((None, True, False)) if in_sequence(table) else None
    own = times_alone if events is None else own_orders(table, events=events)
    expected = by_all_orders(as_clients(table), model, promised, own)
    ordered = table if events is None else in_turn(table, events=events)
    return expected, decide(ordered, model, promised).linearizable


def _drawn(model: Model, seed: int, *, leases: bool) -> tuple[Table, Ints | None]:
    if model.operations == STORING:
        rows = maybe_spoiled(Random(seed).randrange)
        return registers.table_of(row for row in rows if row.key == rows[0].key), None
    table, until = drawn(Random(seed), leases=leases)
    table = some_either(Random(seed), table)
    return some_shared(Random(seed), table) if model.name == "shared" else table, until


def in_sequence(table: Table) -> bool:
    """Whether no process begins anything before it ended what it began before."""
    rows = np.lexsort((np.arange(len(table)), table.process))
    process, end = table.process[rows], table.end[rows]
    after = (process[1:] == process[:-1]) & (end[:-1] < NEVER)
    return not (after & (end[:-1] > table.start[rows][1:])).any()


def by_all_orders(
    table: Table, model: Model, until: Ints | None, own: OwnOrders = times_alone
) -> bool:
    if model.crowd:
        return brute_crowd(table, model, until, own)
    if until is None:
        return brute(table, model, own)
    return brute_with_leases(table, model, until, own)


def compared(
    model: Model, seeds: Iterable[int], *, leases: bool
) -> tuple[Counter[tuple[bool, bool | None]], list[int]]:
    answers, wrong = Counter[tuple[bool, bool | None]](), []
    for seed in seeds:
        expected, answer = expected_and_decided(model, seed, leases=leases)
        answers[expected, answer] += 1
        if answer is not None and answer is not expected:
            wrong.append(seed)
    return answers, wrong


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--histories", type=int, default=200_000)
    arguments.add_argument("--first", type=int, default=0, help="the first seed")
    arguments.add_argument("--model", choices=COMPARED, action="append")
    arguments.add_argument("--leases", action="store_true")
    given = arguments.parse_args()
    for name in given.model or (LOCKS if given.leases else COMPARED):
        seeds = range(given.first, given.first + given.histories)
        answers, wrong = compared(COMPARED[name], seeds, leases=given.leases)
        unsure = sum(count for (_, answer), count in answers.items() if answer is None)
        right = sum(count for (expected, _), count in answers.items() if expected)
        print(
            f"{name:>17} {given.histories:>9,} histories, {right:,} of them right:"
            f" {unsure / given.histories:.3%} undecided, {len(wrong)} wrong {wrong[:8]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
