"""Campaigns made by hand, one cell a line, for what is made of their results."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lockcheck.checker.finding import Verdict
from lockcheck.config import RunConfig
from lockcheck.matrix.campaign import Campaign, News, Threshold
from lockcheck.matrix.model import Cell, CellOutcome, Expectation, Found, Result
from lockcheck.storage.base import Guard

ATTACK = "</script><img src=x onerror=alert(1)>"
HOSTILE = (
    f"a|b `c` **d** [e](javascript:alert(1)) {ATTACK}\x00\x1b[2J\x0c\ufffe\n::error::x %0A, \u202e"
)
STARTED = datetime(2025, 11, 18, 2, 30, 0, tzinfo=UTC)
STALE = Found(code="stale-write", effect="violation", fault="pause", blame="holder")
_EXPECTED = re.compile(r"(\w+)(?: in (\S+) (\d+)%)?")
_VERDICTS = {"ok": Verdict.OK, "violation": Verdict.VIOLATION, "unknown": Verdict.UNKNOWN}


def expectation(text: str, **more: Any) -> Expectation:
    """As in "ok", or "violation in >= 80%"."""
    matched = _EXPECTED.fullmatch(text)
    assert matched
    verdict, compare, share = matched.groups()
    return Expectation(
        verdict=verdict, compare=compare or "", share=int(share or 100) / 100, **more
    )


def result(of: str, seed: int, verdict: str, **changes: Any) -> Result:
    """`verdict`: one of a run's, or "error"."""
    trial = f"{of}[{seed}]"
    violated, failed = verdict == "violation", verdict == "error"
    usual: dict[str, Any] = {
        "headline": "c2 worked past its lease and overwrote c1's write." if violated else "",
        "whose": "lock client" if violated else "",
        "found": (STALE,) if violated else (),
        "doubts": ("No fault was seen to take.",) if verdict == "unknown" else (),
        "counts": {"acquisitions": 1234},
        "faults": {"pause": 8},
        "report": "" if failed else f"trials/{trial}/20251118-023000-a1b2c3/report.html",
        "rerun": f"lockcheck run --backend redis --seed {seed}",
        "problem": "r1 did not start: port 6379 is taken" if failed else "",
    }
    return Result(
        trial=trial,
        cell=of,
        seed=seed,
        verdict=_VERDICTS.get(verdict),
        exit_code=_VERDICTS[verdict].exit_code if verdict in _VERDICTS else 4,
        seconds=17.25,
        **{**usual, **changes},
    )


def cell(id_: str, expected: str, came: str, *, planned: int = 0, **more: Any) -> CellOutcome:
    """`came`: a verdict a seed, as in "ok*18 violation*2"; `more`: of the expectation."""
    backend, nemesis, *rest = id_.split("::")
    guard = Guard.FENCE if "fence" in rest else Guard.NONE
    verdicts: list[str] = []
    for word in came.split():
        verdict, _, number = word.partition("*")
        verdicts += [verdict] * int(number or 1)
    seeds = tuple(range(1, max(planned, len(verdicts)) + 1))
    config = RunConfig(backend=backend, nemesis=tuple(nemesis.split("+")), seed=1, guard=guard)
    return CellOutcome(
        Cell(id=id_, config=config, expectation=expectation(expected, **more), seeds=seeds),
        [result(id_, seed, verdict) for seed, verdict in zip(seeds, verdicts, strict=False)],
    )


def campaign(*cells: CellOutcome, **more: Any) -> Campaign:
    return Campaign("nightly.toml", STARTED, 3723.0, cells, **more)


def with_texts(outcome: CellOutcome, text: str) -> CellOutcome:
    """Each of its results says this wherever a text of a run stands."""
    import msgspec

    texts = {"headline": text, "whose": text, "rerun": text, "problem": text, "report": text}
    found = (Found(code="stale-write", effect="violation", fault=text, blame=text),)
    results = [
        msgspec.structs.replace(each, **texts, doubts=(text,), found=found, wanting=(text,))
        for each in outcome.results
    ]
    return replace(outcome, results=results)


def one_of_each() -> Campaign:
    """A cell of each standing, and one that is judged by its share."""
    return campaign(
        cell("etcd::none", "ok", "ok*20"),
        cell("etcd::pause", "ok", "ok*18 unknown*2"),
        cell("redis::clock", "ok", "ok*3 error", planned=6),
        cell("redis-naive::pause", "violation", "violation*4 ok"),
        cell("redis::pause::fence", "ok", "ok*18 violation*2"),
        cell("redis::pause", "violation in >= 80%", "violation*10 ok*10"),
        cell("redis::pause::ttl=2s", "violation", "violation*5", findings=("stale-write",)),
        thresholds=(
            Threshold("violations == 0", False, "2"),
            Threshold("unknown_rate < 5%", True, "2.2 %"),
            Threshold("p(99) free_again < 3s", None, ""),
        ),
        blind=("No lease ever ran out.",),
        news=News(
            ("redis: stale-write under pause, by the holder",), (), ("etcd: stuck",), "monday"
        ),
    )
