"""The models that are guessed from a history."""

from __future__ import annotations

import pytest

from lockcheck.checker.logs.guess import models_of
from lockcheck.history.table import Table
from tests.checker.dsl import history

GUESSES = {
    "nothing": ([], ()),
    "a lock": (["1 acquire 0-1", "1 release 2-3"], ("owner-mutex",)),
    "never granted": (["1 acquire 0-1!"], ("owner-mutex",)),
    "tokens": (["1 acquire 0-1 token=1", "1 release 2-3"], ("fenced",)),
    "some tokens": (["1 acquire 0-1 token=1", "2 acquire 2-3"], ("owner-mutex",)),
    "tokens of all that were granted": (
        ["1 acquire 0-1 token=1", "2 acquire 2-3!", "3 acquire 2-3?"],
        ("fenced",),
    ),
    "entered twice and left twice": (
        ["1 acquire 0-1", "1 acquire 2-3", "1 release 4-5", "1 release 6-7"],
        ("reentrant",),
    ),
    "entered twice and never left": (["1 acquire 0-1", "1 acquire 2-3"], ("owner-mutex",)),
    "refused to leave and entered anew": (
        ["1 acquire 0-1", "1 release 2-3!", "1 acquire 4-5", "1 release 6-7", "1 release 8-9"],
        ("owner-mutex",),
    ),
    "with tokens": (
        [
            "1 acquire 0-1 token=5",
            "1 acquire 2-3 token=5",
            "1 release 4-5",
            "1 release 6-7",
        ],
        ("reentrant-fenced",),
    ),
    "entered twice and left once, as after a lease": (
        ["1 acquire 0-1", "1 acquire 2-3", "1 release 4-5", "1 acquire 6-7", "1 release 8-9"],
        ("owner-mutex",),
    ),
    "entered twice, with another token": (
        [
            "1 acquire 0-1 token=1",
            "1 acquire 2-3 token=2",
            "1 release 4-5",
            "1 release 6-7",
        ],
        ("fenced",),
    ),
    "left again without an answer": (
        ["1 acquire 0-1", "1 acquire 2-3", "1 release 4-5?", "1 release 6-7"],
        ("owner-mutex",),
    ),
    "left to be sure": (
        ["1 acquire 0-1", "1 acquire 2-3", "1 release 4-5", "1 acquire 6-7?", "1 release 8-9"],
        ("owner-mutex",),
    ),
    "entered twice on two keys": (
        ["1 acquire:a 0-1", "1 acquire:b 2-3", "1 release:b 4-5", "1 release:a 6-7"],
        ("owner-mutex",),
    ),
    "two enter": (
        ["1 acquire 0-1", "2 acquire 2-3", "1 release 4-5", "2 release 6-7"],
        ("owner-mutex",),
    ),
    "not granted again": (
        ["1 acquire 0-1", "1 acquire 2-3!", "1 release 4-5", "1 release 6-7"],
        ("owner-mutex",),
    ),
    "a register": (["1 write 0-1 a", "1 read 2-3 = a"], ("register",)),
    "read only": (["1 read 2-3 = a"], ("register",)),
    "a cas": (["1 cas 0-1 [1,2]", "1 read 2-3 = 2"], ("cas-register",)),
    "a set": (["1 add 0-1 5", "1 read 2-3 = [5]"], ("set",)),
    "a counter": (["1 add 0-1 5", "1 read 2-3 = 5"], ("counter",)),
    "added, and never read": (["1 add 0-1 5", "1 read 2-3!"], ("set",)),
    "a lock and what it guards": (
        ["1 acquire 0-1 token=1", "1 read 2-3 = a", "1 write 4-5 b", "1 release 6-7"],
        ("fenced", "register"),
    ),
    "an unknown operation": (["1 frobnicate 0-1"], ()),
}


@pytest.mark.parametrize(("lines", "models"), GUESSES.values(), ids=GUESSES)
def test_guesses(lines: list[str], models: tuple[str, ...]) -> None:
    assert models_of(Table.of(history(*lines).operations)) == models
