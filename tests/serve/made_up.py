"""Folders of runs and campaigns, as lockcheck leaves them, made by hand."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from lockcheck.matrix.folder import PLAN, RESULTS, Folder, Plan
from lockcheck.matrix.report.ndjson import ndjson
from tests.matrix.made_up import cell

LONG_AGO = time.time() - 7200
BACKENDS, FAULTS = ("redis", "etcd", "zookeeper"), ("pause", "kill:server", "partition:holder")
VERDICTS = ("ok", "violation", "unknown")


def record(number: int = 0, **changes: Any) -> dict[str, Any]:
    verdict = VERDICTS[number % 3]
    found = {"code": "overlap", "effect": "violation", "blame": "holder", "number": 2}
    day = f"2026-{number // 672 % 12 + 1:02}-{number // 24 % 28 + 1:02}"
    return {
        "schema": 1,
        "run_id": f"run-{number}",
        "verdict": verdict,
        "findings": [found] if verdict == "violation" else [],
        "doubts": {},
        "counts": {"operations": 800 + number, "acquisitions": 100},
        "config": {
            "backend": BACKENDS[number // 3 % 3],
            "nemesis": [FAULTS[number // 9 % 3]],
            "guard": "fence" if number % 2 else "none",
            "ttl_ms": 1000,
            "seed": number,
        },
        "versions": {"lockcheck": "0.1.0", "redis": "8.0"},
        "started": f"{day}T{number % 24:02}:00:00Z",
        "took_ms": 15_000.0 + number,
        "exit_code": (0, 1, 3)[number % 3],
        "problem": "",
    } | changes


def run(folder: Path, number: int = 0, *, page: str = "<p>its page", **changes: Any) -> Path:
    """Its folder, which was left alone since."""
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps(record(number, **changes)))
    (folder / "report.html").write_text(page)
    aged(folder)
    return folder


def aged(folder: Path, when: float = LONG_AGO) -> None:
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (when, when))


def under_way(folder: Path) -> Path:
    """A run that writes its history now."""
    nothing: dict[str, Any] = {
        "verdict": "unknown",
        "counts": None,
        "took_ms": None,
        "exit_code": None,
    }
    run(folder, **nothing, findings=[], problem="The run was killed, or has not ended yet.")
    (folder / "report.html").unlink()
    (folder / "nodes" / "c1").mkdir(parents=True)
    (folder / "nodes" / "c1" / "history.jsonl").write_text("{}\n")
    return folder


def campaign(out: Path, name: str, *cells: tuple[str, str, str], finished: bool = True) -> Path:
    """`cells`: as `cell` takes them."""
    outcomes = [cell(*each) for each in cells]
    folder = Folder(out / f"matrix-{name}")
    (folder.path / "trials").mkdir(parents=True)
    plan = Plan(source="nightly.toml", cells=tuple(each.cell for each in outcomes))
    lines = [plan, *plan.trials]
    folder.write(PLAN, b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    results = [result for each in outcomes for result in each.results]
    of = {result.trial: result for result in results}
    for trial in plan.trials:
        if trial.id in of:
            folder.clear(trial)
            folder.save(trial, of[trial.id])
    if finished:
        folder.write(RESULTS, ndjson(results))
        folder.write("index.html", b"<p>the campaign's page")
    return folder.path
