"""Histories in files whose verdict is known: most were once judged wrongly, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lockcheck.check.recheck import recheck
from lockcheck.checker import Culprit, Verdict
from lockcheck.checker.linearizability import endless
from lockcheck.formats import ReadOptions

HISTORIES = Path(__file__).with_name("histories")
LEASE: dict[str, Any] = {"ttl_ms": 5_000}
MUTEX = {"ttl_ms": 1_000, "model": "mutex"}
SEMAPHORE = {"ttl_ms": 1_000, "model": "semaphore", "permits": 2}


@dataclass(frozen=True)
class Known:
    verdict: Verdict
    asked: dict[str, Any] = field(default_factory=dict)
    codes: frozenset[str] = frozenset()
    culprits: frozenset[Culprit] = frozenset()


def violation(*codes: str, by: Culprit, **asked: Any) -> Known:
    return Known(Verdict.VIOLATION, asked, frozenset(codes), frozenset({by}))


def ok(**asked: Any) -> Known:
    return Known(Verdict.OK, asked)


def unknown(code: str, by: Culprit) -> Known:
    return Known(Verdict.UNKNOWN, {}, frozenset({code}), frozenset({by}))


NO_ORDER = "not-linearizable"
KNOWN = {
    "lost-unnoticed-no-fault.jsonl": violation("overlap", "silent-loss", by=Culprit.HOLDER),
    "lost-unnoticed-cut-off.jsonl": violation("overlap", "silent-loss", by=Culprit.HOLDER),
    "queue.csv": violation("overlap", NO_ORDER, by=Culprit.SERVICE),
    "renew.jsonl": Known(Verdict.UNKNOWN),  # for want of operations
    "renew.csv": ok(),
    "renew-crossing.jsonl": violation("overlap", NO_ORDER, by=Culprit.SERVICE),
    "read-from-before-log.csv": ok(**LEASE),
    "cas-from-before-log.csv": ok(**LEASE),
    "counter-from-before-log.csv": ok(**LEASE),
    "base-from-before-log.csv": ok(**LEASE),
    "taken-for-reentrant.csv": ok(**LEASE),
    "early-release.csv": ok(**LEASE),
    "crash-same-name.csv": ok(**LEASE),
    "mutex-lease-miss.csv": violation(NO_ORDER, by=Culprit.SERVICE, **MUTEX),
    "semaphore-lease-miss.csv": violation(NO_ORDER, by=Culprit.SERVICE, **SEMAPHORE),
    "touching-lease.jsonl": ok(),
    "touching_own.csv": violation(NO_ORDER, by=Culprit.SERVICE),
    "touching_own.jsonl": violation(NO_ORDER, by=Culprit.SERVICE),
    "tokens-reset-500.csv": violation("token-regression", NO_ORDER, by=Culprit.SERVICE),
    "drift_min.csv": ok(),
    "inflight.csv": Known(Verdict.UNKNOWN),
    "rw_miss.jsonl": violation("overlap", NO_ORDER, by=Culprit.SERVICE),
    "rw_revived.jsonl": violation("overlap", NO_ORDER, by=Culprit.SERVICE),
    "shared.csv": ok(),
    "dup_row.csv": ok(),
    # A waiter whose turn nothing shows, within a lease that counts from its answer; and a timer
    # that fires a nanosecond late, of a clock that runs a little slowly.
    "drift-waiter-holder-blamed.csv": unknown("overlap", Culprit.CLOCKS),
    "drift-waiter-unknown-blame.csv": unknown("overlap", Culprit.CLOCKS),
    "drift-one-ns-late.csv": unknown("overlap", Culprit.CLOCKS),
    # A loss that was learned of is no lease; who died with a request under way may hold it.
    "lost-hides-unsaid-lease.csv": Known(Verdict.UNKNOWN),
    "no-lease-crash-stuck.csv": unknown("stuck", Culprit.SERVICE),
    # Two hosts, the tokens of which show how far apart their clocks are; two clients that died.
    "hosts-apart.csv": Known(Verdict.UNKNOWN),
    "dead-waiters.csv": ok(),
    "stale_read.csv": violation("stale-read", "lost-update", by=Culprit.STORAGE),
    "stuck_cut.jsonl": violation("stuck", by=Culprit.SERVICE),
    # An unanswered release of another client excuses nothing where permits have owners; but the
    # log ends with a client that may have given its permit back.
    "sem_spare.csv": Known(Verdict.UNKNOWN, {"model": "owner-semaphore", "permits": 2}),
    "queue_blame.csv": Known(
        Verdict.VIOLATION,
        codes=frozenset({"overlap", NO_ORDER}),
        culprits=frozenset({Culprit.UNKNOWN, Culprit.SERVICE}),
    ),
}


def test_each_has_its_verdict_here() -> None:
    assert {path.name for path in HISTORIES.iterdir()} == KNOWN.keys()


@pytest.mark.parametrize("name", KNOWN)
def test_its_verdict(name: str, tmp_path: Path) -> None:
    known = KNOWN[name]
    found = recheck(
        str(HISTORIES / name),
        None,
        asked=ReadOptions(**known.asked),
        patience=endless,
        out=tmp_path,
    ).judgement
    assert found.verdict is known.verdict, (found.findings[:1], found.doubts)
    assert {finding.code for finding in found.findings} == known.codes
    assert {finding.blame.who for finding in found.findings} == known.culprits
