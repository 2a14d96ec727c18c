"""Which of the faults that were proven anybody felt."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Case, judge
from lockcheck.checker.whole_run.exercised import not_exercised
from tests.checker.dsl import history

HELD = "1 acquire 0-10 \n 1 release 500-501"
WANTED = "2 acquire 200-201!"

FELT = {
    "a holder that others wait for is stopped": f"{HELD} \n {WANTED} \n fault pause n1 100-400",
    "or ended": f"1 acquire 0-10 \n {WANTED} \n fault kill n1 100-400",
    "or cut off at work": f"{HELD} \n {WANTED} \n fault partition n1 100-400",
    "it was about to be granted it": f"1 acquire 90-450 \n {WANTED} \n fault pause n1 100-400",
    "one that is cut off asks": "1 acquire 200- \n fault partition n1 100-400",
    "one that is cut off renews": f"{HELD} \n 1 renew 200-300? \n fault partition n1 100-400",
    "one whose clock is wrong asks": "1 acquire 200-201 \n fault clock n1 100-400",
    "a server is asked": f"{HELD} \n {WANTED} \n fault kill r1 100-400",
    "a server was being asked": "1 acquire 90-110 \n fault kill r1 100-400",
    "nobody in particular is struck": f"{HELD} \n {WANTED} \n fault odd - 100-400",
    "of several one is felt": f"{HELD} \n {WANTED} \n fault pause n1,n3 100-400",
    "it is never healed": "2 acquire 0-1 \n fault kill r1 100- \n 2 acquire 900-901!",
}
UNFELT = {
    "an idle client is stopped": f"{WANTED} \n 1 acquire 0-1! \n fault pause n1 100-400",
    "nobody waits for the holder": f"{HELD} \n 2 acquire 450-451! \n fault pause n1 100-400",
    "it waits for its holder alone": f"{HELD} \n fault pause n1 100-400",
    "another lock is wanted": f"{HELD} \n 2 acquire:k2 200-201! \n fault pause n1 100-400",
    "it had let go": f"1 acquire 0-10 \n 1 release 20-21 \n {WANTED} \n fault kill n1 100-400",
    "an idle client is cut off": f"{WANTED} \n 1 acquire 0-1! \n fault partition n1 100-400",
    "nobody asks the server": f"{HELD} \n fault clock r1 100-400",
    "only the storage is asked": f"{HELD} \n 1 write 200-201 x \n fault kill r1 100-400",
}


def felt(lines: str, **terms: Any) -> bool:
    made = history(*lines.splitlines(), ttl_ms=100, **terms)
    assert len(made.faults) == 1
    return not not_exercised(Case(made))


@pytest.mark.parametrize("name", FELT)
def test_felt(name: str) -> None:
    assert felt(FELT[name])


@pytest.mark.parametrize("name", UNFELT)
def test_not_felt(name: str) -> None:
    assert not felt(UNFELT[name])


def test_where_the_lock_keeps_the_data_its_servers_are_asked_for_it() -> None:
    assert felt(UNFELT["only the storage is asked"], guard="transaction")


def test_another_life_holds_nothing_of_the_one_before() -> None:
    before, after = "1 acquire 0-10", "9@n1 acquire 50-51!"
    assert not felt(f"{before} \n {after} \n {WANTED} \n fault pause n1 100-400")
    assert felt(f"{before} \n {WANTED} \n fault pause n1 100-400")


def test_what_was_not_proven_is_told_as_that() -> None:
    made = history(*HELD.splitlines(), "fault pause n3 100-400!", ttl_ms=100)
    assert not_exercised(Case(made)) == ()


def test_it_is_told_beside_the_verdict() -> None:
    lines = [f"{n % 2 + 1} acquire {n * 10}-{n * 10 + 1}" for n in range(20)]
    judgement = judge(history(*lines, "3 acquire 7-8!", "fault pause n3 100-400", ttl_ms=100))
    assert [fault.nodes for fault in judgement.not_exercised] == [("n3",)]
