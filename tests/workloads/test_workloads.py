"""What the workloads make of a lock that does what it should: nothing wrong, and all of it used."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockcheck.backends.base import Promises
from lockcheck.checker import Verdict, judge
from lockcheck.history import F
from lockcheck.workloads import WORKLOADS
from lockcheck.workloads.base import EXCLUSION, PERMITS, REENTRY, SHARING, Need
from tests.client.crowd import at_work

PLAIN = Promises(session=False, fencing=False)
SHARED = Promises(session=False, fencing=False, shared=True)
REENTRANT = Promises(session=False, fencing=False, reentrant=True)
SEMAPHORE = Promises(session=False, fencing=False, permits=3)


@pytest.mark.parametrize(
    ("workload", "promises"),
    [("register", PLAIN), ("readers", SHARED), ("nested", REENTRANT), ("permits", SEMAPHORE)],
)
def test_a_lock_that_does_what_it_should_is_right(
    workload: str, promises: Promises, tmp_path: Path
) -> None:
    judgement = judge(at_work(WORKLOADS[workload], promises, tmp_path))
    assert not judgement.findings
    assert judgement.verdict is Verdict.OK, judgement.doubts


def test_readers_read_and_writers_write(tmp_path: Path) -> None:
    history = at_work(WORKLOADS["readers"], SHARED, tmp_path)
    by_shared = {
        (hold.shared, operation.f)
        for hold in history.holds
        for operation in history.operations
        if operation.process == hold.process and hold.start_ns < operation.start_ns < hold.end_ns
    }
    assert by_shared == {(True, F.READ), (False, F.READ), (False, F.WRITE)}


@pytest.mark.parametrize(
    ("need", "met_by"),
    [
        (EXCLUSION, {"plain", "shared", "reentrant"}),
        (SHARING, {"shared"}),
        (REENTRY, {"reentrant"}),
        (PERMITS, {"semaphore"}),
    ],
)
def test_what_workloads_need(need: Need, met_by: set[str]) -> None:
    locks = {"plain": PLAIN, "shared": SHARED, "reentrant": REENTRANT, "semaphore": SEMAPHORE}
    assert {name for name, promises in locks.items() if need.met_by(promises)} == met_by
