"""The sweep over locks, and the search beside it: named tiny histories, and good ones of which
something is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lockcheck.checker.linearizability.answer import Answer
from lockcheck.checker.linearizability.decide import decide
from lockcheck.checker.linearizability.models import MODELS, Model, semaphore
from lockcheck.checker.linearizability.sweep.sweep import MOST_EVIDENCE, NEEDS_SEARCH, sweep
from lockcheck.history.table import NOTHING, Op, Table
from tests.checker.dsl import leased, table
from tests.checker.linearizability.locks import many_turns

FINE = Answer(True, "sweep")
OWNED = ("owner-mutex", "reentrant", "fenced", "reentrant-fenced")
LOCKS = ("mutex", *OWNED)


def judged(lines: str, model: Model) -> Answer:
    return sweep(table(lines), model).get(NOTHING, FINE)


# name: history, the models that accept it, those that reject it
HISTORIES: dict[str, tuple[str, str, str]] = {
    "nothing": ("", "mutex owner-mutex reentrant fenced reentrant-fenced semaphore", ""),
    "one after the other": (
        "0 acquire 1-2 token=1\n0 release 4-5\n1 acquire 3-6 token=2\n1 release 8-9",
        "mutex owner-mutex reentrant fenced reentrant-fenced semaphore",
        "",
    ),
    "two at once": (
        "0 acquire 1-2 token=1\n1 acquire 3-4 token=2\n0 release 5-6\n1 release 7-8",
        "semaphore",
        "mutex owner-mutex reentrant fenced reentrant-fenced",
    ),
    "three at once": (
        "0 acquire 1-2\n1 acquire 3-4\n2 acquire 5-6\n0 release 7-8",
        "",
        "mutex owner-mutex reentrant semaphore",
    ),
    "a moment is enough, and equal times are concurrent": (
        "0 acquire 1-2 token=1\n0 release 5-9\n1 acquire 3-5 token=2",
        "mutex owner-mutex reentrant fenced reentrant-fenced",
        "",
    ),
    "never released": (
        "0 acquire 1-2 token=1\n1 acquire 3-4 token=2",
        "semaphore",
        "mutex owner-mutex reentrant fenced reentrant-fenced",
    ),
    "released by another": (
        "0 acquire 1-2 token=1\n1 release 3-4\n1 acquire 5-6 token=2",
        "mutex semaphore",
        "owner-mutex reentrant fenced reentrant-fenced",
    ),
    "released without an acquire": (
        "0 release 1-2",
        "",
        "mutex semaphore owner-mutex reentrant fenced reentrant-fenced",
    ),
    "released twice": (
        "0 acquire 1-2\n0 release 3-4\n0 release 5-6",
        "",
        "mutex semaphore owner-mutex reentrant fenced",
    ),
    "renewed in time": (
        "0 acquire 1-2\n0 renew 3-4\n0 release 5-6\n1 acquire 7-8",
        "mutex semaphore owner-mutex reentrant fenced reentrant-fenced",
        "",
    ),
    "renewed after the release": (
        "0 acquire 1-2\n0 release 3-4\n0 renew 5-6",
        "",
        "mutex semaphore owner-mutex reentrant fenced reentrant-fenced",
    ),
    "renewed while another has it": (
        "0 acquire 1-2\n1 renew 3-4\n0 release 5-6",
        "mutex semaphore",
        "owner-mutex reentrant fenced reentrant-fenced",
    ),
    "entered again": (
        "0 acquire 1-2 token=1\n0 acquire 3-4 token=1\n0 release 5-6\n0 release 7-8",
        "reentrant reentrant-fenced semaphore",
        "mutex owner-mutex fenced",
    ),
    "entered again with another token": (
        "0 acquire 1-2 token=1\n0 acquire 3-4 token=2\n0 release 5-6\n0 release 7-8",
        "reentrant",
        "reentrant-fenced fenced",
    ),
    "still inside after one release of two": (
        "0 acquire 1-2\n0 acquire 3-4\n0 release 5-6\n1 acquire 7-8",
        "",
        "reentrant reentrant-fenced",
    ),
    "tokens shrink": (
        "0 acquire 1-2 token=2\n0 release 3-4\n1 acquire 5-6 token=1",
        "owner-mutex reentrant",
        "fenced reentrant-fenced",
    ),
    "a token twice": (
        "0 acquire 1-2 token=2\n0 release 3-4\n1 acquire 5-6 token=2",
        "owner-mutex",
        "fenced reentrant-fenced",
    ),
    "concurrent grants in the order of their tokens": (
        "0 acquire 1-9 token=2\n0 release 10-11\n1 acquire 2-5 token=1\n1 release 6-7",
        "fenced reentrant-fenced",
        "",
    ),
    "a grant without a token, room for one": (
        (
            "0 acquire 1-2 token=1\n0 release 3-4\n1 acquire 5-6\n1 release 7-8\n"
            "0 acquire 9-10 token=3"
        ),
        "fenced reentrant-fenced",
        "",
    ),
    "a grant without a token, no room": (
        (
            "0 acquire 1-2 token=1\n0 release 3-4\n1 acquire 5-6\n1 release 7-8\n"
            "0 acquire 9-10 token=2"
        ),
        "owner-mutex",
        "fenced reentrant-fenced",
    ),
    "an unconfirmed release": (
        "0 acquire 1-2\n0 release 3-\n1 acquire 4-5",
        "mutex semaphore owner-mutex reentrant fenced reentrant-fenced",
        "",
    ),
    "the release was asked for too late": (
        "0 acquire 1-2\n1 acquire 3-4\n0 release 5-",
        "semaphore",
        "mutex owner-mutex reentrant fenced reentrant-fenced",
    ),
    "an unconfirmed acquire that takes nothing": (
        "0 acquire 1-\n1 acquire 2-3\n1 release 4-5",
        "mutex semaphore owner-mutex reentrant fenced reentrant-fenced",
        "",
    ),
    "a refused release did not happen": (
        "0 acquire 1-2\n0 release 3-4!\n1 acquire 5-6",
        "semaphore",
        "mutex owner-mutex reentrant fenced reentrant-fenced",
    ),
    "goes on: granted, released?, granted": (
        "0 acquire 1-2\n0 release 3-4?\n1 acquire 5-6\n1 release 7-8\n0 acquire 9-10",
        "mutex semaphore owner-mutex reentrant fenced reentrant-fenced",
        "",
    ),
    "goes on: granted, granted": (
        "0 acquire 1-2\n0 acquire 9-10",
        "reentrant",
        "owner-mutex mutex",
    ),
    "goes on: granted?, released": (
        "0 acquire 1-2?\n0 release 5-6\n1 acquire 7-8",
        "mutex semaphore owner-mutex reentrant fenced reentrant-fenced",
        "",
    ),
    "one unconfirmed acquire explains one release": (
        "0 acquire 1-2?\n0 release 5-6\n0 release 7-8",
        "",
        "mutex owner-mutex reentrant fenced reentrant-fenced",
    ),
    "goes on: interrupted": (
        (
            "0 acquire 1-2\n0 release 3-4?\n0 acquire 5-6?\n1 acquire 7-8\n1 release 9-10\n"
            "0 release 11-12"
        ),
        "mutex semaphore owner-mutex reentrant fenced reentrant-fenced",
        "",
    ),
    "the unconfirmed acquire had to be released first": (
        "0 acquire 1-2?\n1 acquire 3-4\n0 release 5-6\n1 release 7-8",
        "semaphore",
        "owner-mutex reentrant fenced reentrant-fenced",
    ),
    "goes on: spare ones interrupt a later hold": (
        (
            "0 acquire 1-2?\n0 release 3-4?\n0 acquire 5-6\n1 acquire 7-8\n1 release 9-10\n"
            "0 release 11-12"
        ),
        "mutex semaphore owner-mutex reentrant fenced reentrant-fenced",
        "",
    ),
    "goes on: nothing to spare": (
        "0 acquire 1-2?\n0 acquire 5-6\n1 acquire 7-8\n1 release 9-10\n0 release 11-12",
        "semaphore",
        "owner-mutex mutex fenced",
    ),
    "an old release that arrives late": (
        "0 acquire 1-2\n0 release 3-4?\n0 release 5-6\n0 acquire 7-8\n1 acquire 9-10",
        "owner-mutex reentrant fenced reentrant-fenced mutex",
        "",
    ),
}


def model_of(name: str) -> Model:
    return semaphore(2) if name == "semaphore" else MODELS[name]


VERDICTS = [
    pytest.param(lines, name, wanted, id=f"{what}: {name}")
    for what, (lines, good, bad) in HISTORIES.items()
    for names, wanted in ((good, True), (bad, False))
    for name in names.split()
]


@pytest.mark.parametrize(("lines", "name", "wanted"), VERDICTS)
def test_named_histories(lines: str, name: str, wanted: bool) -> None:
    decision = decide(table(lines), model_of(name))
    assert decision.linearizable is wanted
    for answer in decision.answers.values():
        assert answer.reason
        assert answer.rows


LEASED = {
    "ended when it was promised to": ("0 acquire 1-2 until=9\n1 acquire 9-10", True),
    "ended before": ("0 acquire 1-2 until=9\n1 acquire 7-8", False),
    "renewed": ("0 acquire 1-2 until=9\n0 renew 3-4 until=15\n1 acquire 10-11", False),
    "renewed, and over": ("0 acquire 1-2 until=9\n0 renew 3-4 until=15\n1 acquire 14-15", True),
    "released later than promised": (
        "0 acquire 1-2 until=9\n0 release 12-13\n1 acquire 14-15",
        True,
    ),
    "so it had not ended": (
        "0 acquire 1-2 until=9\n1 acquire 10-11\n0 release 12-13",
        False,
    ),
    "granted again after its end": ("0 acquire 1-2 until=9\n0 acquire 10-11", True),
    "granted again before": ("0 acquire 1-2 until=9\n0 acquire 7-8", False),
    "released? before the end": (
        "0 acquire 1-2 until=9\n0 release 3-\n1 acquire 5-6",
        True,
    ),
}


@pytest.mark.parametrize("name", ["owner-mutex", "fenced"])
@pytest.mark.parametrize("case", LEASED)
def test_leases(case: str, name: str) -> None:
    lines, wanted = LEASED[case]
    rows, until = leased(lines)
    assert sweep(rows, MODELS[name], until).get(NOTHING, FINE).linearizable is wanted
    assert decide(rows, MODELS[name], until).linearizable is wanted


EVIDENCE = {
    "0 acquire 1-2\n1 acquire 3-4\n0 release 5-6": (
        (0, 2, 1),
        "process 1 was granted it while process 0 had it",
    ),
    "0 acquire 1-2\n0 release 3-\n1 release 5-6": (
        (2,),
        "process 1 released it without having been granted it",
    ),
    "0 acquire 1-2\n0 acquire 3-4": (
        (0, 1),
        "process 0 was granted it again without having released it",
    ),
    "0 acquire 1-2\n0 release 3-4\n0 renew 5-6": (
        (1, 2),
        "process 0 renewed it without having been granted it",
    ),
}


@pytest.mark.parametrize("lines", EVIDENCE)
def test_evidence(lines: str) -> None:
    answer = judged(lines, MODELS["owner-mutex"])
    assert (answer.rows, answer.reason) == EVIDENCE[lines]


def test_evidence_of_tokens() -> None:
    shrunk = "0 acquire 1-2 token=7\n0 release 3-4\n1 acquire 5-6 token=3"
    answer = judged(shrunk, MODELS["fenced"])
    assert answer.rows == (0, 1, 2)
    assert answer.reason == "token 3 is lower than 7, but was held later"
    repeated = judged(shrunk.replace("=3", "=7"), MODELS["fenced"])
    assert repeated.reason == "token 7 was granted twice"
    together = "0 acquire 1-2 token=1\n1 acquire 3-4 token=2\n0 release 5-6"
    assert judged(together, MODELS["fenced"]).reason == (
        "process 1 was granted it while process 0 had it"
    )


def test_the_earliest_conflict_is_named() -> None:
    early = "0 acquire 1-2\n1 acquire 3-4\n1 release 5-6\n0 release 7-8"
    late = "2 acquire 21-22\n1 acquire 23-24\n2 release 25-26"
    assert judged(f"{early}\n{late}", MODELS["owner-mutex"]).rows == (0, 3, 1, 2)


LEFT_OPEN = {
    "operations that overlap": "0 acquire 1-5\n0 release 2-6",
    "operations that touch": "0 release 1-2\n0 acquire 2-3",
    "going on": "0 acquire 1-2?\n0 acquire 3-4?\n0 release 5-6\n0 release 7-8",
    "no release to go on after": "0 acquire 1-2\n0 release 3-4?\n0 release 5-6\n0 release 7-8",
}


@pytest.mark.parametrize("lines", LEFT_OPEN.values(), ids=LEFT_OPEN)
def test_what_takes_a_search_is_left_to_it(lines: str) -> None:
    assert judged(lines, MODELS["owner-mutex"]) == Answer(None, "sweep", NEEDS_SEARCH.reason)


TOUCHING_ONES = {
    "0 acquire 1-2\n0 release 2-4\n0 acquire 4-6\n0 release 6-8\n1 acquire 5-7": True,
    "0 acquire 1-2\n0 release 4-5\n0 acquire 5-6\n1 acquire 7-8": False,
    "0 acquire 1-2\n1 acquire 3-3\n1 release 3-3\n0 release 4-5\n0 acquire 5-6": False,
    # Which of two that touch came first makes no difference to the others.
    "0 acquire 1-2\n0 acquire 4-5\n0 release 5-6\n0 acquire 8-9\n1 acquire 12-13": False,
    "0 acquire 1-2\n0 release 2-2\n0 release 2-3\n0 acquire 3-3\n0 release 4-5": False,
    "0 release 2-4\n0 acquire 2-2": True,
}


@pytest.mark.parametrize("lines", TOUCHING_ONES)
def test_touching_operations_are_decided(lines: str) -> None:
    assert decide(table(lines), MODELS["owner-mutex"]).linearizable is TOUCHING_ONES[lines]


def test_of_many_failing_keys_the_first_have_evidence() -> None:
    keys = MOST_EVIDENCE + 5
    one = table("0 acquire 1-2", "1 acquire 3-4")
    many = one.take(np.repeat(np.arange(2), keys))
    many = replace(many, key=np.tile(np.arange(keys, dtype=np.int32), 2))
    found = sweep(many, MODELS["owner-mutex"])
    assert len(found) == keys
    assert all(answer.linearizable is False and answer.reason for answer in found.values())
    named = [bool(answer.rows) for answer in found.values()]
    assert named == [True] * MOST_EVIDENCE + [False] * 5


@pytest.mark.parametrize("name", [*LOCKS, "semaphore"])
def test_good_histories_of_many_clients_that_go_on(name: str) -> None:
    for seed in range(5):
        assert decide(many_turns(seed), model_of(name)).linearizable


def test_keys_do_not_mix() -> None:
    one, other = many_turns(1), many_turns(2)
    rows = {name: np.concatenate((getattr(one, name), getattr(other, name))) for name in COLUMNS}
    rows["key"] = np.repeat(np.array([0, 1], np.int32), [len(one), len(other)])
    both = Table(**rows, symbols=one.symbols)
    both = both.take(np.argsort(both.start, kind="stable"))
    broken = both.token.copy()
    last = np.flatnonzero((both.key == 1) & (both.token > 1))[-1]
    broken[last] = 1
    for name in LOCKS:
        assert decide(both, model_of(name)).linearizable
    found = decide(replace(both, token=broken), MODELS["fenced"]).answers
    assert {key: answer.linearizable for key, answer in found.items()} == {1: False}
    assert int(last) in found[1].rows


COLUMNS = [name for name in Table.__slots__ if name != "symbols"]


def _swapped(rows: Table, at: int) -> Table:
    """Two grants with each other's token."""
    granted = np.flatnonzero(rows.token > 0)
    token = rows.token.copy()
    pair = granted[[at, at + 2]]
    token[pair] = token[pair[::-1]]
    return replace(rows, token=token)


def _repeated(rows: Table, at: int) -> Table:
    granted = np.flatnonzero(rows.token > 0)
    token = rows.token.copy()
    token[granted[at + 1]] = token[granted[at]]
    return replace(rows, token=token)


def _without_a_release(rows: Table, at: int) -> Table:
    releases = np.flatnonzero((rows.f == Op.RELEASE) & (rows.outcome == 0))
    return rows.take(np.arange(len(rows)) != releases[at])


def _returned_early(rows: Table, at: int) -> Table:
    """A waiting client is granted the lock right when it asks, while another client has it."""
    waits = (rows.f == Op.ACQUIRE) & (rows.outcome == 0) & (rows.end - rows.start > 200)
    end = rows.end.copy()
    row = np.flatnonzero(waits)[at]
    end[row] = rows.start[row] + 1
    return replace(rows, end=end)


@pytest.mark.parametrize("name", ["fenced", "reentrant-fenced"])
@pytest.mark.parametrize("spoil", [_swapped, _repeated, _without_a_release])
def test_mutations_of_good_histories_are_caught(
    name: str, spoil: Callable[[Table, int], Table]
) -> None:
    for seed in range(5):
        spoiled = spoil(many_turns(seed, unconfirmed=0.0), 30)
        found = decide(spoiled, MODELS[name]).answers
        assert found[NOTHING].linearizable is False
        assert found[NOTHING].rows


@pytest.mark.parametrize("name", LOCKS)
def test_a_grant_that_came_too_early_is_caught(name: str) -> None:
    for seed in range(5):
        early = _returned_early(many_turns(seed, unconfirmed=0.0), 20)
        assert decide(early, MODELS[name]).linearizable is False


def test_dropping_a_release_is_caught_by_all_that_know_no_lease() -> None:
    rows = _without_a_release(many_turns(3, unconfirmed=0.0), 30)
    for name in LOCKS:
        assert decide(rows, MODELS[name]).linearizable is False
