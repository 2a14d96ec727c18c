"""What is expected of our own locks, a short selection of it; `make table` runs all of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lockcheck.backends import BACKENDS
from lockcheck.backends.expected import Expected
from lockcheck.checker import CHECKS
from lockcheck.checker.finding import Culprit, Verdict
from lockcheck.matrix import demands
from lockcheck.matrix.demands import demands_of
from lockcheck.matrix.judging import deviations, standing_of
from lockcheck.matrix.model import Found, Result, Standing
from tests.own_rows import ROWS, Row, short, tried
from tests.running import RUNTIMES, need


def _cases() -> list[object]:
    return [
        pytest.param(
            row,
            *parameter.values,
            marks=[*parameter.marks, *_long(row, str(parameter.values[0]))],
            id=f"{row.name}-{parameter.values[0]}",
        )
        for parameter in RUNTIMES
        for row in short(ROWS, str(parameter.values[0]))
    ]


def _long(row: Row, runtime: str) -> list[pytest.MarkDecorator]:
    """In containers: each kind of server has an image of its own, which takes long to make."""
    usual = all(kind.name in ("redis", "etcd") for kind in row.plan().kinds)
    return [pytest.mark.long] if runtime == "docker" and not usual else []


@pytest.mark.parametrize(("row", "runtime"), _cases())
def test_it_is_as_promised(row: Row, runtime: str, tmp_path: Path) -> None:
    need(runtime, *row.plan().kinds)
    assert tried(row, runtime, tmp_path) == []


# --- what backends expect ------------------------------------------------------------------------


def test_every_lock_says_how_it_fares() -> None:
    assert [name for name, backend in BACKENDS.items() if not backend.expected] == []
    for name in BACKENDS:
        assert any(row.control for row in ROWS if row.backend == name), name


def test_no_two_rows_are_the_same() -> None:
    names = [row.name for row in ROWS]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_expectation_can_be_run_and_come_true(row: Row) -> None:
    expected = row.expected
    row.plan()  # the nemesis is one, it fits, the guard is allowed ...
    Verdict(expected.verdict)
    assert set(expected.findings) <= {str(code) for code in CHECKS}
    assert not expected.blame or expected.blame in {str(who) for who in Culprit}
    breaks = expected.verdict == "violation"
    assert breaks == bool(expected.findings)  # what is found, and where nothing may be
    assert breaks or not expected.blame


def test_the_short_selection_has_each_lock_and_each_kind_of_server() -> None:
    local, docker = short(ROWS, "local"), short(ROWS, "docker")
    assert {row.backend for row in local} == {*BACKENDS}
    servers = {str(spec.kind) for backend in BACKENDS.values() for spec in backend.servers}
    assert {"redis", "etcd", "zookeeper"} <= servers
    for rows in (local, docker):
        faulty = [row for row in rows if not row.control]
        assert len(faulty) <= len(servers)
        assert {"redis", "etcd", "zookeeper"} <= {
            str(spec.kind) for row in faulty for spec in BACKENDS[row.backend].servers
        }


# --- the demands ---------------------------------------------------------------------------------

FOUND = {"code": "overlap", "blame": "holder", "fault": "pause of c1", "at_ms": 900.0}
SHOWN: demands.Result = {
    "verdict": "ok",
    "doubts": [],
    "findings": [],
    "counts": {"acquisitions": 100, "faults": 1, "stale_writes_refused": 1},
    "freed": [{"after_ms": 900.0}],
}
BROKEN = SHOWN | {"verdict": "violation", "findings": [FOUND]}
CONTROL = Expected("none", "ok", ("--time-limit", "10s"))
PAUSED = Expected("pause", "violation", findings=("overlap",), blame="holder")
FENCED = Expected("pause", "ok", guard="fence")
AMID_FAULTS = Expected("kill:server", "ok")
KILLED = Expected("kill:holder", "ok")


def counting(**counts: int) -> demands.Result:
    return SHOWN | {"counts": SHOWN["counts"] | counts}


@pytest.mark.parametrize(
    ("expected", "result", "says"),
    [
        (CONTROL, SHOWN, ""),
        (CONTROL, SHOWN | {"findings": [FOUND]}, "1 findings"),
        (CONTROL, counting(acquisitions=99), "only 99 acquisitions of 100"),
        (AMID_FAULTS, counting(acquisitions=30), ""),
        (AMID_FAULTS, counting(acquisitions=29), "only 29 acquisitions of 30"),
        (PAUSED, BROKEN, ""),
        (PAUSED, BROKEN | {"findings": [FOUND | {"fault": None}]}, "the holder is to blame"),
        (PAUSED, BROKEN | {"findings": [FOUND | {"fault": "kill of c1"}]}, "the holder is to"),
        (PAUSED, BROKEN | {"findings": [FOUND | {"at_ms": 10_000.0}]}, "first violation"),
        (PAUSED, BROKEN | {"counts": {"faults": 0}}, "no fault was proven"),
        (FENCED, SHOWN, ""),
        (FENCED, SHOWN | {"findings": [FOUND]}, ""),
        (FENCED, counting(stale_writes_refused=0), "no stale write was refused"),
        (KILLED, SHOWN, ""),
        (KILLED, counting(faults=0), "no fault was proven"),
        (KILLED, SHOWN | {"freed": []}, "no holder was ended"),
        (KILLED, SHOWN | {"freed": [{"after_ms": None}]}, "no holder was ended"),
        (KILLED, SHOWN | {"freed": [{"after_ms": 2501.0}]}, "free again later than 2500 ms"),
    ],
)
def test_a_demand_can_fail(expected: Expected, result: demands.Result, says: str) -> None:
    row = Row("redis-fenced", expected)
    asked = demands_of(row.cell().expectation, row.plan())
    told = [text for demand in asked if (text := demand(result))]
    wanted = says.split("; ") if says else []
    assert len(told) == len(wanted), told
    assert all(text.startswith(want) for text, want in zip(told, wanted, strict=True)), told


@pytest.mark.parametrize(
    ("backend", "name", "enough", "not_enough"),
    [
        ("redis-rw", "shared_together", [2, 5], [1, 6]),
        ("redis-semaphore", "held_together", [3], [2, 4]),
        ("redis-reentrant", "entered_deepest", [2, 3], [1]),
    ],
)
def test_what_a_lock_is_for_has_to_be_seen(
    backend: str, name: str, enough: list[int], not_enough: list[int]
) -> None:
    row = Row(backend, CONTROL)
    asked = list(demands_of(row.cell().expectation, row.plan()))
    for number in (*enough, *not_enough):
        told = [text for demand in asked if (text := demand(counting(**{name: number})))]
        assert told == ([f"{name} is {number}"] if number in not_enough else [])


def test_overlaps_may_be_told_of_where_transactions_keep_the_data_safe() -> None:
    paused = Expected("pause", "ok")
    told = SHOWN | {"findings": [FOUND]}
    for lock, wrong in (("postgres-row", []), ("redis", ["1 findings"])):
        row = Row(lock, paused)
        asked = demands_of(row.cell().expectation, row.plan())
        assert [text for demand in asked if (text := demand(told))] == wrong


def test_it_must_be_free_when_its_servers_have_let_go() -> None:
    """Not before: Consul's sessions lapse after three of their TTLs at most."""
    row = Row("consul", KILLED)
    plan, expected = row.plan(), row.cell().expectation
    assert plan.lock.promises.lapses_after == 3

    def told(after_ms: float) -> list[str]:
        result = SHOWN | {"freed": [{"after_ms": after_ms}]}
        return [text for demand in demands_of(expected, plan) if (text := demand(result))]

    assert told(4499.0) == []
    assert "free again later than 4500 ms" in told(4501.0)[0]


def test_a_shorter_run_is_asked_for_less() -> None:
    assert [demands.fewest(100, ms, 10) for ms in (4000, 10_000, 60_000)] == [40, 100, 100]
    assert [demands.fewest(30, 15_000, ms) for ms in (0, 10, 500, 1000)] == [30, 30, 10, 5]


def test_a_verdict_of_another_kind_is_not_as_expected() -> None:
    cell = Row("redis-fenced", PAUSED).cell()
    overlap = Found(code="overlap", effect="violation", fault="pause", blame="holder")
    broken = Result(
        trial=f"{cell.id}[1]",
        cell=cell.id,
        seed=1,
        verdict=Verdict.VIOLATION,
        exit_code=1,
        seconds=1.0,
        found=(overlap,),
    )
    changed = msgspec.structs.replace
    for result, standing in (
        (broken, Standing.AS_EXPECTED),
        (changed(broken, verdict=Verdict.OK, found=()), Standing.MISSED),
        (changed(broken, verdict=Verdict.UNKNOWN), Standing.UNKNOWN),
        (changed(broken, verdict=None), Standing.ERROR),
        (changed(broken, found=(changed(overlap, blame="service"),)), Standing.VIOLATION),
        (changed(broken, found=(changed(overlap, code="stuck"),)), Standing.VIOLATION),
        (changed(broken, wanting=("only 3 acquisitions of 100",)), Standing.VIOLATION),
    ):
        assert standing_of(cell, result) is standing
    assert list(deviations(cell, broken)) == []
