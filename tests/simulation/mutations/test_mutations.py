"""Good histories, spoilt in one place each: caught every time, by the judge for it.

A mutation lists all its spoilt versions of a history that are effective: those after which, by the
definition of the anomaly, there is one. What makes it so is said with each. The histories are of
locks with tokens, one with a queue (its acquires take their time) and one without (a client asks
again and again, and so shows signs of life), and of clients that renew and run jobs.
"""

from __future__ import annotations

from random import Random

import pytest

from lockcheck.checker import Verdict, judge
from lockcheck.history import History
from tests.simulation.mutations.data_mutations import DATA_MUTATIONS
from tests.simulation.mutations.lock_mutations import LOCK_MUTATIONS
from tests.simulation.mutations.tape import LOCKS, Mutation, good_history

MUTATIONS = {**LOCK_MUTATIONS, **DATA_MUTATIONS}
SEEDS = range(40)
OF_EACH = 3  # spoilt versions of a history, drawn from all that there are


@pytest.fixture(scope="module")
def good() -> list[History]:
    return [good_history(seed, lock) for seed in SEEDS for lock in LOCKS]


def test_they_are_good(good: list[History]) -> None:
    for history in good:
        judgement = judge(history)
        assert (judgement.verdict, judgement.findings) == (Verdict.OK, ())


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_it_is_always_caught(mutation: Mutation, good: list[History]) -> None:
    code, random, spoilt = MUTATIONS[mutation], Random(0).random, 0
    for history in good:
        effective = list(mutation(history))
        for _ in range(OF_EACH if effective else 0):
            number = int(random() * len(effective))
            judgement = judge(effective[number]())
            terms = history.terms
            assert judgement.of(code), f"{terms.backend}, seed {terms.seed}, version {number}"
            spoilt += 1
    assert spoilt > OF_EACH * len(SEEDS) // 2, "it was hardly ever effective"
