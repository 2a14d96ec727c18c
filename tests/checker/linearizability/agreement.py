"""Compares the engines with all orders, over any number of small histories of locks:

    python -m tests.checker.linearizability.agreement --histories 200000 --model fenced --leases

Prints how many stayed undecided, and the seeds of those that were decided wrong.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from random import Random

from lockcheck.checker.linearizability.decide import decide
from lockcheck.checker.linearizability.keepers import as_clients
from lockcheck.checker.linearizability.models import MODELS, Model, semaphore
from lockcheck.history.table import Ints, Table
from tests.checker.linearizability.brute import brute
from tests.checker.linearizability.brute_crowds import brute_crowd
from tests.checker.linearizability.brute_leases import brute_with_leases
from tests.checker.linearizability.drawn import drawn, some_either, some_shared

LOCKS: dict[str, Model] = {
    **{name: MODELS[name] for name in ("mutex", "owner-mutex", "fenced")},
    **{name: MODELS[name] for name in ("reentrant", "reentrant-fenced")},
    "semaphore": semaphore(2),
    "owner-semaphore": MODELS["owner-semaphore"],
    "shared": MODELS["shared"],
}


def expected_and_decided(model: Model, seed: int, *, leases: bool) -> tuple[bool, bool | None]:
    table, until = drawn(Random(seed), leases=leases)
    table = some_either(Random(seed), table)
    if model.name == "shared":
        table = some_shared(Random(seed), table)
    expected = by_all_orders(as_clients(table), model, until if leases else None)
    return expected, decide(table, model, until if leases else None).linearizable


def by_all_orders(table: Table, model: Model, until: Ints | None) -> bool:
    if model.crowd:
        return brute_crowd(table, model, until)
    return brute(table, model) if until is None else brute_with_leases(table, model, until)


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
    arguments.add_argument("--model", choices=LOCKS, action="append")
    arguments.add_argument("--leases", action="store_true")
    given = arguments.parse_args()
    for name in given.model or LOCKS:
        seeds = range(given.first, given.first + given.histories)
        answers, wrong = compared(LOCKS[name], seeds, leases=given.leases)
        unsure = sum(count for (_, answer), count in answers.items() if answer is None)
        right = sum(count for (expected, _), count in answers.items() if expected)
        print(
            f"{name:>17} {given.histories:>9,} histories, {right:,} of them right:"
            f" {unsure / given.histories:.3%} undecided, {len(wrong)} wrong {wrong[:8]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
