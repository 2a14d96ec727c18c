"""Why a history may not tell: what makes a run `unknown` although nothing was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockcheck.checker.finding import Culprit, Finding, Verdict
from lockcheck.checker.stalls import total_ns
from lockcheck.checker.writes import Ledger, read_ledger
from lockcheck.history import F, FaultSpan, History, Operation
from lockcheck.history.event import NS_PER_MS

FEWEST_ACQUISITIONS = 10  # of a run of ours
FEWEST_ELSEWHERE = 2  # of somebody else's history: two holds are the least that can overlap
FEWEST_HOLDERS = 2
NO_FAULT = "none"
WITH_STORAGE = "register"


def doubts(history: History) -> Iterator[str]:
    yield from _faults(history)
    yield from _too_few(history)
    yield from _testimony(history, read_ledger(history))


def doubts_of_findings(findings: Iterable[Finding]) -> Iterator[str]:
    """Anomalies that the machine itself explains."""
    for finding in findings:
        if finding.blame.who is Culprit.MACHINE and finding.effect is Verdict.UNKNOWN:
            yield _machine(finding)


def _machine(finding: Finding) -> str:
    stalls, node = finding.blame.stalls, finding.holds[0].node
    cure = "run again on a quieter machine or with a longer TTL"
    if not stalls:
        return (
            f"the host's clock jumped while {node} held {finding.key!r}, and that explains the"
            f" {finding.code}: run again while nothing sets the clock"
        )
    stalled_ms = total_ns(stalls) / NS_PER_MS
    return (
        f"the machine stalled for {stalled_ms:.0f} ms on {node} while it held {finding.key!r},"
        f" and that explains the {finding.code}: {cure}"
    )


# --- faults ----------------------------------------------------------------------------------


def _faults(history: History) -> Iterator[str]:
    for fault in history.faults:
        if fault.proven_ns is None:
            yield f"{_told(fault)} was injected, but {fault.why_unproven or 'it was not proven'}"
        if fault.healed_ns is None:
            yield f"{_told(fault)} was never seen to be healed"
    begun = {fault.name for fault in history.faults}
    for name in dict.fromkeys(history.terms.faults):
        if name != NO_FAULT and not _was_begun(name, begun):
            yield f"the fault {name} was asked for, but was never injected"


def _was_begun(name: str, begun: set[str]) -> bool:
    """A fault is asked for with its target, as in `pause:holder`, and recorded without it."""
    return name in begun or name.partition(":")[0] in begun


def _told(fault: FaultSpan) -> str:
    where = f" on {fault.node}" if fault.node else ""
    return f"the fault {fault.name}{where} at {fault.start_ns / NS_PER_MS:.0f} ms"


# --- how much there was to see -----------------------------------------------------------------


def _too_few(history: History) -> Iterator[str]:
    fewest = FEWEST_ACQUISITIONS if history.terms.backend else FEWEST_ELSEWHERE
    granted = len(history.holds)
    if granted < fewest:
        yield f"too few operations to tell: the lock was granted {granted} times, not {fewest}"
    holders = {hold.node for hold in history.holds}
    if history.terms.backend and history.terms.clients >= FEWEST_HOLDERS > len(holders):
        yield f"too few operations to tell: {len(holders)} of the clients held the lock"


# --- the witness -------------------------------------------------------------------------------


def _testimony(history: History, ledger: Ledger) -> Iterator[str]:
    for operation in ledger.unwitnessed:
        yield f"the storage does not remember {_write(operation)}, which it had acknowledged"
    for told in ledger.unclaimed:
        yield f"the storage served write {told.seq} of process {told.process}, which never sent it"
    silent = history.terms.workload == WITH_STORAGE and not history.testimony
    if silent and any(_numbered(operation) for operation in history.operations):
        yield "the storage never testified, so writes without an answer are not known"


def _numbered(operation: Operation) -> bool:
    return (
        operation.f == F.WRITE and operation.ok and bool(operation.answer and operation.answer.seq)
    )


def _write(operation: Operation) -> str:
    seq = operation.answer.seq if operation.answer else None
    return f"write {seq} of {operation.node} to {operation.key!r}"
