"""Small campaigns for tests: cells and results, with what matters spelled out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockcheck.checker.finding import Verdict
from lockcheck.config import RunConfig
from lockcheck.matrix.model import Cell, CellOutcome, Expectation, Found, Result

OVERLAP = Found(code="overlap", effect="violation", fault="pause", blame="service")
LATE = Found(code="overlap", effect="violation", fault="pause", blame="holder")


def cell(
    backend: str = "redis",
    nemesis: str | tuple[str, ...] = "pause",
    expect: str = "ok",
    id_: str = "",
    **given: Any,
) -> Cell:
    """`expect`: a verdict, or as in "violation >= 0.8"; `given`: settings of its runs, or of its
    expectation."""
    nemeses = (nemesis,) if isinstance(nemesis, str) else nemesis
    verdict, *share = expect.split()
    expected: dict[str, Any] = {
        name: given.pop(name) for name in ("findings", "blame") if name in given
    }
    if share:
        expected |= {"compare": share[0], "share": float(share[1])}
    return Cell(
        id=id_ or f"{backend}::{'+'.join(nemeses)}",
        config=RunConfig(backend=backend, nemesis=nemeses, seed=1, **given),
        expectation=Expectation(verdict=verdict, **expected),
        seeds=(1,),
    )


def result(verdict: str | None = "ok", *found: Found, **given: Any) -> dict[str, Any]:
    return {"verdict": verdict and Verdict(verdict), "found": found, **given}


def outcome(of: Cell, results: Iterable[dict[str, Any]]) -> CellOutcome:
    usual = {"exit_code": 0, "seconds": 1.0, "cell": of.id}
    made = (
        Result(**{"trial": f"{of.id}[{seed}]", "seed": seed, **usual, **given})
        for seed, given in enumerate(results, 1)
    )
    return CellOutcome(of, tuple(made))


def broken(number: int = 1, *found: Found, **given: Any) -> list[dict[str, Any]]:
    return [result("violation", *(found or (OVERLAP,)), **given)] * number


def fine(number: int = 1, **given: Any) -> list[dict[str, Any]]:
    return [result("ok", **given)] * number


def unknown(number: int = 1, **given: Any) -> list[dict[str, Any]]:
    return [result("unknown", **given)] * number


def error(number: int = 1, **given: Any) -> list[dict[str, Any]]:
    return [result(None, **given)] * number
