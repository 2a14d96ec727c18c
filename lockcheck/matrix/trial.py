"""One trial: a run, and what became of it, as a line of data."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import msgspec

from lockcheck.checker.finding import Judgement
from lockcheck.errors import LockcheckError
from lockcheck.history.event import NS_PER_MS
from lockcheck.matrix.demands import demands_of
from lockcheck.matrix.model import Expectation, Found, Result, Trial, failed
from lockcheck.results.story.seen import last_moment_ns
from lockcheck.results.story.wording.doubts import in_words
from lockcheck.results.summary import verdict_summary
from lockcheck.run.execute import RunOutcome, execute
from lockcheck.run.notes import Watcher, silent
from lockcheck.run.resolve import planned


def carried_out(
    trial: Trial, expectation: Expectation, folder: Path, watcher: Watcher = silent
) -> Result | None:
    """The run's own folder is below `folder`. None: it was interrupted."""
    config = msgspec.structs.replace(trial.config, out=str(folder))
    began = time.monotonic()
    try:
        outcome = execute(config, watcher)
    except LockcheckError as error:
        return failed(trial, str(error), error.exit_code, time.monotonic() - began)
    if outcome.interrupted:
        return None
    return _result(trial, expectation, outcome, time.monotonic() - began)


def _result(trial: Trial, expectation: Expectation, outcome: RunOutcome, seconds: float) -> Result:
    narrative, judgement = outcome.narrative, outcome.narrative.judgement
    faults = narrative.history.faults
    proven = Counter(fault.name for fault in faults if fault.proven_ns is not None)
    idle = Counter(fault.name for fault in judgement.not_exercised)
    counts = msgspec.to_builtins(judgement.counts)
    longest = judgement.ungranted
    return Result(
        trial=trial.id,
        cell=trial.cell,
        seed=trial.config.seed,
        verdict=None if outcome.error else judgement.verdict,
        exit_code=outcome.exit_code,
        seconds=seconds,
        headline=narrative.headline,
        whose=narrative.point.whose,
        found=_found(judgement),
        doubts=tuple(in_words(judgement)),
        doubt_codes=tuple(str(doubt.code) for doubt in judgement.doubts),
        counts={name: number for name, number in counts.items() if isinstance(number, int)},
        faults=dict(proven),
        unfelt=tuple(name for name, number in proven.items() if idle[name] == number),
        freed_ms=tuple(f.after_ns / NS_PER_MS for f in judgement.freed if f.after_ns is not None),
        ungranted_ms=None if longest is None else longest.length_ns / NS_PER_MS,
        lasted_ms=last_moment_ns(narrative.history) / NS_PER_MS,
        report=str(outcome.store.report),
        rerun=trial.config.command(),
        problem=outcome.error.message if outcome.error else "",
        wanting=_wanting(expectation, outcome),
    )


def _found(judgement: Judgement) -> tuple[Found, ...]:
    kinds = Counter(
        (
            str(finding.code),
            str(finding.effect),
            finding.blame.fault.name if finding.blame.fault else "",
            str(finding.blame.who),
        )
        for finding in judgement.findings
    )
    return tuple(
        Found(code=code, effect=effect, fault=fault, blame=blame, number=number)
        for (code, effect, fault, blame), number in sorted(kinds.items())
    )


def _wanting(expected: Expectation, outcome: RunOutcome) -> tuple[str, ...]:
    if not expected.demanding or outcome.error:
        return ()
    plan = planned(outcome.config)
    summary = msgspec.to_builtins(verdict_summary(outcome.narrative, outcome.facts.problem))
    if summary["verdict"] != expected.verdict:
        return ()
    return tuple(text for demand in demands_of(expected, plan) if (text := demand(summary)))
