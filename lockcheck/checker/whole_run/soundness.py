"""Why a history may not tell: what makes a run `unknown` although nothing was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lockcheck.checker.case import Case
from lockcheck.checker.evidence.stalls import total_ns
from lockcheck.checker.evidence.writes import Ledger, StoredWrite
from lockcheck.checker.finding import Culprit, Finding, Verdict
from lockcheck.history import Effect, Ending, F, FaultSpan, History, Hold, Operation, Terms
from lockcheck.history.table import OP_OF
from lockcheck.words import moment, span, times

FEWEST_ACQUISITIONS = 10  # of a run of ours that says nothing else
FEWEST_ELSEWHERE = 2  # of somebody else's history: two holds are the least that can overlap
FEWEST_HOLDERS = 2
NO_FAULT = "none"
TOO_FEW = "too few operations to tell: "
ONE_CLIENT = (
    "there was only one client, so nobody could be let in beside it: run it again with more, such"
    " as --clients 5"
)


def doubts(case: Case) -> Iterator[str]:
    history = case.history
    yield from of_faults(history)
    few = list(too_few(history.terms, _amounts(case)))
    yield from few
    if history.terms.backend and not few:  # of somebody else's, nobody knows what was to be seen
        yield from _unused(case)
    yield from _about_the_ledger(history, case.ledger)


def doubts_of_findings(findings: Iterable[Finding]) -> Iterator[str]:
    """Anomalies that the machine itself explains."""
    for finding in findings:
        if finding.blame.who is Culprit.MACHINE and finding.effect is Verdict.UNKNOWN:
            yield _machine(finding)


def _machine(finding: Finding) -> str:
    stalls = finding.blame.stalls
    if not finding.holds:
        return (
            f"the machine stalled for {span(total_ns(stalls))}, and that explains the"
            f" {finding.code} of {finding.key!r}: run again on a quieter machine"
        )
    node = finding.holds[0].node
    cure = "run again on a quieter machine or with a longer TTL"
    if not stalls:
        return (
            f"the host's clock jumped while {node} held {finding.key!r}, and that explains the"
            f" {finding.code}: run again while nothing sets the clock"
        )
    return (
        f"the machine stalled for {span(total_ns(stalls))} on {node} while it held {finding.key!r},"
        f" and that explains the {finding.code}: {cure}"
    )


# --- faults ----------------------------------------------------------------------------------


def of_faults(history: History) -> Iterator[str]:
    for fault in history.faults:
        if fault.proven_ns is None:
            yield f"{_told(fault)} was injected, but {fault.why_unproven or 'it was not proven'}"
        if fault.healed_ns is None:
            yield f"{_told(fault)} was never seen to be healed"
    for asked in dict.fromkeys(history.terms.faults):
        if asked == NO_FAULT:
            continue
        begun = [fault for fault in history.faults if was_asked(fault, asked)]
        if not begun:
            yield f"the fault {asked} was asked for, but was never injected"
        elif history.terms.clients == 1:  # that nobody else wanted it is told already
            continue
        elif asked in history.terms.at_holders and not _struck_a_holder(history, begun):
            yield f"the fault {asked} never struck a client while it held a lock that others wanted"


def aims_missed(history: History) -> bool:
    """A fault was aimed at holders, was injected, and is not seen here to have struck one."""
    asked = history.terms.at_holders
    begun = ([fault for fault in history.faults if was_asked(fault, each)] for each in asked)
    return any(faults and not _struck_a_holder(history, faults) for faults in begun)


def was_asked(fault: FaultSpan, asked: str) -> bool:
    """Older histories do not say: there a fault bears its name, and not the aim it was given."""
    return fault.asked == asked if fault.asked else fault.name in (asked, asked.partition(":")[0])


def _struck_a_holder(history: History, faults: list[FaultSpan]) -> bool:
    """Aimed at whoever has just been granted the lock, it may still come after the release."""
    return any(
        hold.node in fault.nodes
        and _struck_during(history, hold, fault)
        and _somebody_wanted(history, hold, fault)
        for fault in faults
        if fault.proven_ns is not None
        for hold in history.holds
    )


def _struck_during(history: History, hold: Hold, fault: FaultSpan) -> bool:
    struck_ns = fault.worked_by_ns
    if struck_ns is None or struck_ns < hold.start_ns:
        return False
    if struck_ns <= hold.end_ns:
        return True
    # Of one that was ended while it held the lock, the last sign of life came before that; its
    # keeper may have renewed it meanwhile.
    gone = fault.effect is Effect.ENDS and hold.ending is Ending.LAST_SEEN
    return gone and not any(
        o.node == hold.node and o.owner != hold.process and hold.end_ns < o.start_ns <= struck_ns
        for o in history.operations
    )


def _somebody_wanted(history: History, hold: Hold, fault: FaultSpan) -> bool:
    """A holder that nobody waits for can sleep as long as it likes: that shows nothing."""
    since_ns, healed_ns = fault.worked_from_ns, fault.healed_ns
    return any(
        o.f == F.ACQUIRE and o.key == hold.key and o.node != hold.node
        for o in history.operations
        if o.start_ns >= since_ns and (healed_ns is None or o.start_ns <= healed_ns)
    )


def _told(fault: FaultSpan) -> str:
    where = f" on {fault.where}" if fault.nodes else ""
    return f"the fault {fault.name}{where} at {moment(fault.start_ns)}"


# --- how much there was to see -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much happened, however it was counted."""

    operations: int
    answered: int  # of them: so that it is known what came of them
    judged: int  # of them by some judge: the others are of no kind that one knows
    asked: int  # for a lock
    granted: int
    holders: int  # different nodes
    shared_keys: int  # locks that more than one client was granted: only they can fail to exclude
    accepted: int  # writes, and jobs that ran


def too_few(terms: Terms, amounts: Amounts) -> Iterator[str]:
    if not amounts.operations:
        yield "the history has no operations of clients, so there is nothing to judge"
        return
    if not amounts.answered:
        yield "no operation of a client was ever answered, so there is nothing to judge"
    ours = bool(terms.backend)
    fewest = terms.fewest or (FEWEST_ACQUISITIONS if ours else FEWEST_ELSEWHERE)
    if not ours and not amounts.asked:
        if amounts.judged < fewest:
            known = f", of {amounts.operations}" if amounts.judged < amounts.operations else ""
            yield f"too few operations that a judge knows to tell: {amounts.judged}{known}"
        return  # it is not about a lock
    if ours and terms.clients == 1:
        yield ONE_CLIENT
        return
    if amounts.granted < fewest:
        number = times(amounts.granted)
        yield f"{TOO_FEW}the lock was granted {number}, not {fewest}"
    if ours and terms.clients >= FEWEST_HOLDERS > amounts.holders:
        yield f"{TOO_FEW}{amounts.holders} of the clients held the lock"
    elif not amounts.shared_keys:
        yield f"{TOO_FEW}no lock was ever held by two different clients"
    # Behind a guard the data is all that is judged: there must be some.
    if ours and terms.stores and amounts.accepted < fewest:
        number = times(amounts.accepted)
        yield f"{TOO_FEW}the storage accepted a write {number}, not {fewest}"


def _amounts(case: Case) -> Amounts:
    history = case.history
    holders = [{hold.node for hold in holds} for holds in case.holds_by_key.values()]
    return Amounts(
        operations=len(history.operations),
        answered=sum(1 for operation in history.operations if not operation.unknown),
        judged=sum(1 for operation in history.operations if operation.f in OP_OF),
        asked=sum(1 for operation in history.operations if operation.f == F.ACQUIRE),
        granted=len(history.holds),
        holders=len({hold.node for hold in history.holds}),
        shared_keys=sum(1 for nodes in holders if len(nodes) >= FEWEST_HOLDERS),
        accepted=sum(1 for write in case.ledger.writes if write.accepted)
        + sum(1 for operation in history.operations if operation.f == F.RUN and operation.ok),
    )


# --- what the lock is for --------------------------------------------------------------------


def _unused(case: Case) -> Iterator[str]:
    """What nobody was seen to do: it may never have been allowed to anybody."""
    permits, seen = case.terms.permits, case.together
    if permits > 1 and case.terms.excludes and seen.held < permits:
        yield f"no more than {seen.held} of {permits} permits were ever held at once"
    if seen.shared == 1:
        yield "clients asked for a lock that others may share, and no two ever shared it"
    if case.terms.reentrant and seen.entered == 1 and _was_asked_again(case):
        yield "holders asked to be let in again, and none of them ever was"


def _was_asked_again(case: Case) -> bool:
    """By who certainly held it."""
    asked = ((o, case.index.of(o)) for o in case.operations if o.f == F.ACQUIRE)
    return any(
        hold is not None and hold.acquire is not o and o.start_ns < hold.end_ns for o, hold in asked
    )


# --- the ledger --------------------------------------------------------------------------------


def _about_the_ledger(history: History, ledger: Ledger) -> Iterator[str]:
    yield from contradictions(ledger)
    silent = history.terms.stores and not history.ledger
    if silent and any(_numbered(operation) for operation in history.operations):
        yield "the storage's ledger is missing, so the fate of unanswered writes is unknown"


def contradictions(ledger: Ledger) -> Iterator[str]:
    """Somebody's lines are missing, or wrong: what the data says is no evidence then."""
    for operation in ledger.missing:
        yield f"the storage does not remember {_write(operation)}, which it had acknowledged"
    for told in ledger.unclaimed:
        yield f"the storage served write {told.seq} of process {told.process}, which never sent it"
    for write in ledger.writes:
        if write.operation is not None and _contradicts(write):
            yield (
                f"{write.operation.node} and the storage contradict each other on"
                f" {_write(write.operation)}: who is right decides the verdict"
            )


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
