"""Why a history may not tell: what makes a run `unknown` although nothing was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lockcheck.checker.finding import Culprit, Finding, Verdict
from lockcheck.checker.stalls import total_ns
from lockcheck.checker.writes import Ledger, StoredWrite, read_ledger
from lockcheck.history import F, FaultSpan, History, Hold, Operation, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.table import OP_OF

FEWEST_ACQUISITIONS = 10  # of a run of ours
FEWEST_ELSEWHERE = 2  # of somebody else's history: two holds are the least that can overlap
FEWEST_HOLDERS = 2
NO_FAULT = "none"
AT_HOLDER = ":holder"
WITH_STORAGE = "register"


def doubts(history: History) -> Iterator[str]:
    ledger = read_ledger(history)
    yield from _faults(history)
    yield from too_few(history.terms, _amounts(history, ledger))
    yield from _testimony(history, ledger)


def doubts_of_findings(findings: Iterable[Finding]) -> Iterator[str]:
    """Anomalies that the machine itself explains."""
    for finding in findings:
        if finding.blame.who is Culprit.MACHINE and finding.effect is Verdict.UNKNOWN:
            yield _machine(finding)


def _machine(finding: Finding) -> str:
    stalls = finding.blame.stalls
    if not finding.holds:
        return (
            f"the machine stalled for {total_ns(stalls) / NS_PER_MS:.0f} ms, and that explains the"
            f" {finding.code} of {finding.key!r}: run again on a quieter machine"
        )
    node = finding.holds[0].node
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
        elif name.endswith(AT_HOLDER) and not _struck_a_holder(history, name):
            yield f"the fault {name} never struck a client while it held a lock that others wanted"


def _struck_a_holder(history: History, name: str) -> bool:
    """Aimed at whoever has just been granted the lock, it may still come after the release."""
    kind = name.removesuffix(AT_HOLDER)
    return any(
        hold.node == fault.node
        and hold.start_ns <= fault.proven_ns <= hold.end_ns
        and _somebody_wanted(history, hold, fault)
        for fault in history.faults
        if fault.name == kind and fault.proven_ns is not None
        for hold in history.holds
    )


def _somebody_wanted(history: History, hold: Hold, fault: FaultSpan) -> bool:
    """A holder that nobody waits for can sleep as long as it likes: that shows nothing."""
    healed_ns = fault.healed_ns
    return any(
        o.f == F.ACQUIRE and o.key == hold.key and o.node != hold.node
        for o in history.operations
        if o.start_ns >= fault.start_ns and (healed_ns is None or o.start_ns <= healed_ns)
    )


def _was_begun(name: str, begun: set[str]) -> bool:
    """A fault is asked for with its target, as in `pause:holder`, and recorded without it."""
    return name in begun or name.partition(":")[0] in begun


def _told(fault: FaultSpan) -> str:
    where = f" on {fault.node}" if fault.node else ""
    return f"the fault {fault.name}{where} at {fault.start_ns / NS_PER_MS:.0f} ms"


# --- how much there was to see -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much happened, however it was counted."""

    operations: int
    judged: int  # of them by some judge: the others are of no kind that one knows
    asked: int  # for a lock
    granted: int
    holders: int  # different nodes
    shared_keys: int  # locks that more than one client was granted: only they can fail to exclude
    accepted: int  # writes


def too_few(terms: Terms, amounts: Amounts) -> Iterator[str]:
    ours = bool(terms.backend)
    fewest = FEWEST_ACQUISITIONS if ours else FEWEST_ELSEWHERE
    if not ours and not amounts.asked:
        if amounts.judged < fewest:
            known = f", of {amounts.operations}" if amounts.judged < amounts.operations else ""
            yield f"too few operations that a judge knows to tell: {amounts.judged}{known}"
        return  # it is not about a lock
    if amounts.granted < fewest:
        number = _times(amounts.granted)
        yield f"too few operations to tell: the lock was granted {number}, not {fewest}"
    if ours and terms.clients >= FEWEST_HOLDERS > amounts.holders:
        yield f"too few operations to tell: {amounts.holders} of the clients held the lock"
    elif not amounts.shared_keys:
        yield "too few operations to tell: no lock was ever held by two different clients"
    # Behind a guard the data is all that is judged: there must be some.
    if ours and terms.workload == WITH_STORAGE and amounts.accepted < fewest:
        number = _times(amounts.accepted)
        yield f"too few operations to tell: the storage accepted a write {number}, not {fewest}"


def _amounts(history: History, ledger: Ledger) -> Amounts:
    holders: defaultdict[str, set[str]] = defaultdict(set)
    for hold in history.holds:
        holders[hold.key].add(hold.node)
    return Amounts(
        operations=len(history.operations),
        judged=sum(1 for operation in history.operations if operation.f in OP_OF),
        asked=sum(1 for operation in history.operations if operation.f == F.ACQUIRE),
        granted=len(history.holds),
        holders=len({hold.node for hold in history.holds}),
        shared_keys=sum(1 for nodes in holders.values() if len(nodes) >= FEWEST_HOLDERS),
        accepted=sum(1 for write in ledger.writes if write.accepted),
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


# --- the witness -------------------------------------------------------------------------------


def _testimony(history: History, ledger: Ledger) -> Iterator[str]:
    for operation in ledger.unwitnessed:
        yield f"the storage does not remember {_write(operation)}, which it had acknowledged"
    for told in ledger.unclaimed:
        yield f"the storage served write {told.seq} of process {told.process}, which never sent it"
    for write in ledger.writes:
        if write.operation is not None and _contradicts(write):
            yield (
                f"{write.operation.node} and the storage contradict each other on"
                f" {_write(write.operation)}: who is right decides the verdict"
            )
    silent = history.terms.workload == WITH_STORAGE and not history.testimony
    if silent and any(_numbered(operation) for operation in history.operations):
        yield "the storage never testified, so writes without an answer are not known"


def _contradicts(write: StoredWrite) -> bool:
    """A row of a table of errors that is wrong would show exactly here."""
    operation = write.operation
    return operation is not None and (operation.failed if write.accepted else operation.ok)


def _numbered(operation: Operation) -> bool:
    return (
        operation.f == F.WRITE and operation.ok and bool(operation.answer and operation.answer.seq)
    )


def _write(operation: Operation) -> str:
    seq = operation.answer.seq if operation.answer else None
    return f"write {seq} of {operation.node} to {operation.key!r}"
