"""Clocks of several hosts: they are not held against a lock, and hide no mistake that they do not
explain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lockcheck.check.loading
from lockcheck.check.recheck import recheck
from lockcheck.checker import Code, Judgement, Verdict
from lockcheck.checker.doubt import DoubtCode
from lockcheck.checker.linearizability import endless
from lockcheck.formats import ReadOptions
from lockcheck.history.event import NS_PER_MS
from tests.checker.dsl import codes, judged

UNKNOWN: dict[str, Any] = {"partial": True, "clock_error_ms": None}
# n2's clock is 10 ms behind that of n1: each handover to it looks too early.
HANDOVERS = """
    1 acquire 0-1
    1 release 20-21
    2 acquire 11-12
    2 release 30-31
    1 acquire 42-43
    1 release 50-51
"""


def apart_ms(judgement: Judgement) -> float | None:
    assert judgement.clocks is not None
    return None if judgement.clocks.apart_ns is None else judgement.clocks.apart_ns / NS_PER_MS


def test_one_constant_that_explains_everything_makes_it_unknown() -> None:
    judgement = judged(HANDOVERS, **UNKNOWN)
    assert (judgement.verdict, judgement.findings) == (Verdict.UNKNOWN, ())
    [doubt] = judgement.doubts
    assert doubt.code is DoubtCode.CLOCKS_APART
    assert doubt.clocks is judgement.clocks
    assert apart_ms(judgement) == 8
    assert judgement.clocks is not None
    [ahead] = judgement.clocks.ahead
    assert {ahead.least_ns, ahead.most_ns} in ({8_000_000, 13_000_000}, {-8_000_000, -13_000_000})


# Holds of two seconds: clocks that are less than one apart change their order in no other way.
FIRST = "1 acquire 0-1 token=1 \n 1 release 2000-2001 \n 2 acquire 1989-1990 token={second}"
NOT_EXPLAINED = {
    "one way and then the other": (
        f"{FIRST.format(second=2)} \n 2 release 4000-4001 \n 1 acquire 4004-4005 token=3"
        " \n 1 release 6000-6001"
    ),
    "against the order of the tokens": (
        f"{FIRST.format(second=3)} \n 2 release 4000-4001 \n 1 acquire 4024-4025 token=2"
        " \n 1 release 6000-6001"
    ),
    "by more than a second": (
        "1 acquire 0-1 \n 2 acquire 1000-1001 \n 1 release 2100-2101 \n 2 release 3200-3201"
    ),
    "on one host": (
        "1@a acquire 0-1 \n 2@a acquire 2-3 \n 2@a release 4-5 \n 1@a release 6-7"
        " \n 3@b acquire 9-10 \n 3@b release 11-12"
    ),
    "the same token twice": (
        "1 acquire 0-1 token=5 \n 1 release 2-3 \n 2 acquire 4-5 token=5 \n 2 release 6-7"
    ),
}


@pytest.mark.parametrize("lines", NOT_EXPLAINED.values(), ids=NOT_EXPLAINED)
def test_what_no_constant_explains_is_found(lines: str) -> None:
    judgement = judged(lines, **UNKNOWN)
    assert judgement.verdict is Verdict.VIOLATION
    assert apart_ms(judgement) is None


ONE_CLOCK = [
    UNKNOWN | {"clock_error_ms": 0},
    UNKNOWN | {"partial": False},
    {"backend": "redis", "clock_error_ms": 50},
]


@pytest.mark.parametrize("terms", ONE_CLOCK)
def test_nothing_is_explained_away_where_the_clock_is_one(terms: dict[str, Any]) -> None:
    judgement = judged(HANDOVERS, **terms)
    assert judgement.verdict is Verdict.VIOLATION
    assert judgement.clocks is None


# The smallest difference that explains the handovers is 8 ms.
ERRORS = [
    ({"clock_error_ms": 8.1}, Verdict.OK),
    ({"clock_error_ms": 8}, Verdict.VIOLATION),
    ({"clock_error_ms": 1, "clock_errors_ms": {"n2": 9.0}}, Verdict.OK),
    ({"clock_error_ms": 9, "clock_errors_ms": {"n1": 1.0, "n2": 1.0}}, Verdict.VIOLATION),
    ({"clock_errors_ms": {"n2": 9.0}}, Verdict.UNKNOWN),
]


@pytest.mark.parametrize("partial", [True, False])
@pytest.mark.parametrize(("given", "verdict"), ERRORS)
def test_a_declared_error_is_respected(
    given: dict[str, Any], verdict: Verdict, *, partial: bool
) -> None:
    judgement = judged(HANDOVERS, **(UNKNOWN | {"partial": partial} | given))
    assert judgement.verdict is verdict
    assert apart_ms(judgement) == 8
    assert ("overlap" in codes(judgement)) == (verdict is Verdict.VIOLATION)


EXPLAINED = {
    "more holders than permits": (
        """
        1 acquire 0-1
        2 acquire 2-3
        3 acquire 18-19
        1 release 20-21
        2 release 40-41
        3 release 50-51""",
        {"permits": 2},
    ),
    "a value read before it was written": (
        "3 write 0-1 z \n 1 write 10-11 a \n 2 read 7-8 = a \n 1 write 30-31 b \n 2 read 40-41 = b",
        {},
    ),
    "a writer among readers": (
        """
        1 acquire 0-1 shared=true
        2 acquire 1-2 shared=true
        2 release 9-10
        3 acquire 15-16
        1 release 20-21
        3 release 25-26""",
        {"model": "shared"},
    ),
    "tokens in the order of grants": (
        """
        2 acquire 5-6 token=2
        1 acquire 10-11 token=1
        1 release 12-13
        2 release 30-31
        1 acquire 40-41 token=3""",
        {},
    ),
    "a lease that had not run out": (
        "1 acquire 0-1 \n 2 acquire 95-96 \n 1 acquire:other 97-98 \n 2 release 98-99",
        {"ttl_ms": 100},
    ),
    "a hold that a keeper renewed": (
        """
        1 acquire 0-1
        9@n1 renew 10-11 of=1
        2 acquire 11-12
        1 release 20-21
        2 release 30-31""",
        {"ttl_ms": 100},
    ),
}


@pytest.mark.parametrize(("lines", "terms"), EXPLAINED.values(), ids=EXPLAINED)
def test_whatever_looks_wrong(lines: str, terms: dict[str, Any]) -> None:
    assert judged(lines, **(UNKNOWN | terms | {"clock_error_ms": 0})).findings
    judgement = judged(lines, **UNKNOWN, **terms)
    assert not judgement.findings
    assert DoubtCode.CLOCKS_APART in {doubt.code for doubt in judgement.doubts}


def test_a_client_on_two_hosts_does_one_thing_after_the_other() -> None:
    """Client 3 shows that their clocks are at most 1 ms apart."""
    there = "3@n1 acquire:other 60-61 \n 3@n1 release:other 62-63 \n 3@n2 acquire:other 64-65"
    back = "3@n2 release:other 66-67 \n 3@n1 acquire:other 68-69 \n 3@n1 release:other 70-71"
    judgement = judged(HANDOVERS, there, back, **UNKNOWN)
    assert (judgement.verdict, apart_ms(judgement)) == (Verdict.VIOLATION, None)


# --- logs of a lock that is right, but for one grant ---------------------------------------------


def log(
    seed: int, offsets_ms: Mapping[str, int], early_ms: int = 0, turns: int = 30
) -> tuple[str, str]:
    """The log of a lock for which clients wait, with and without the column of hosts. In the middle
    one is let in too early."""
    random, rows, free = Random(seed), [], 0
    hosts = list(offsets_ms)
    last = dict.fromkeys((f"{host}-{n}" for host in hosts for n in (1, 2)), 0)
    holder = ""
    for turn in range(turns):
        early = early_ms * NS_PER_MS if turn == turns // 2 else 0
        others = [c for c in last if c[:-2] != holder[:-2]] if early else [*last]
        client = random.choice([c for c in others if last[c] <= free - early] or others)
        granted = max(free - early, last[client]) + random.randrange(1, 10 * NS_PER_MS)
        asked = max(last[client], granted - random.randrange(1, 3 * NS_PER_MS))
        answered = granted + random.randrange(1, NS_PER_MS)
        sent = answered + random.randrange(NS_PER_MS, 30 * NS_PER_MS) + 2 * early_ms * NS_PER_MS
        done = sent + random.randrange(2, NS_PER_MS)
        free, last[client], holder = (sent + done) // 2, done, client
        host = client[:-2]
        later = offsets_ms[host] * NS_PER_MS + 10**15
        rows.append(f"{client},k,acquire,{asked + later},{answered + later},ok,{host}")
        rows.append(f"{client},k,release,{sent + later},{done + later},ok,{host}")
    head = "client,key,op,start_ns,end_ns,outcome"
    bare = [row.rpartition(",")[0] for row in rows]
    return "\n".join([f"{head},node", *rows]), "\n".join([head, *bare])


def checked(text: str, folder: Path, **asked: Any) -> Judgement:
    path = folder / "log.csv"
    path.write_text(f"{text}\n")
    options = ReadOptions(**asked)
    return recheck(str(path), None, asked=options, patience=endless, out=folder).judgement


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


offsets = st.lists(st.integers(0, 200), min_size=2, max_size=4).map(
    lambda each: {f"h{n}": ms for n, ms in enumerate(each)}
)


@given(st.integers(0, 10_000), offsets)
def test_a_right_lock_is_not_accused(folder: Path, seed: int, offsets_ms: dict[str, int]) -> None:
    text, _ = log(seed, offsets_ms)
    judgement = checked(text, folder)
    assert judgement.verdict is not Verdict.VIOLATION, judgement.findings[:1]
    assert {doubt.code for doubt in judgement.doubts} <= {DoubtCode.CLOCKS_APART}
    assert checked(text, folder, clock_error_ms=201).verdict is Verdict.OK


@given(st.integers(0, 10_000), st.integers(0, 19), st.integers(0, 19))
def test_an_overlap_that_is_longer_than_the_error_is_found(
    folder: Path, seed: int, one_ms: int, other_ms: int
) -> None:
    text, _ = log(seed, {"a": one_ms, "b": other_ms}, early_ms=60)
    judgement = checked(text, folder, clock_error_ms=20)
    assert judgement.of(Code.OVERLAP), judgement.doubts


@given(st.integers(0, 10_000))
def test_so_is_any_where_the_hosts_share_a_clock(folder: Path, seed: int) -> None:
    text, bare = log(seed, {"a": 0, "b": 0}, early_ms=20)
    assert checked(text, folder, clock_error_ms=0).of(Code.OVERLAP)
    assert checked(re.sub(",[ab]\\b", ",x", text), folder).of(Code.OVERLAP), "one host"
    assert checked(bare, folder).of(Code.OVERLAP), "hosts are not named, and no error is known"


def test_clients_stand_for_hosts_that_are_not_named(folder: Path) -> None:
    _, bare = log(1, {"a": 0, "b": 20})
    assert checked(bare, folder).verdict is Verdict.VIOLATION
    assert checked(bare, folder, clock_error_ms=50).verdict is Verdict.OK


@pytest.mark.parametrize("early_ms", [0, 50])
def test_long_logs_are_judged_alike(
    folder: Path, early_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, _ = log(3, {"a": 0, "b": 20, "c": 170}, early_ms, turns=400)
    by_events = checked(text, folder)
    monkeypatch.setattr(lockcheck.check.loading, "MANY", 0)
    by_columns = checked(text, folder)
    assert by_columns == by_events
    assert by_events.verdict is (Verdict.VIOLATION if early_ms else Verdict.UNKNOWN)
