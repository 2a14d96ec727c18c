"""Why a history does not suffice: what makes a run `unknown` although nothing was found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lockcheck.checker.case import Case
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.evidence.stalls import total_ns
from lockcheck.checker.evidence.writes import Ledger
from lockcheck.checker.finding import Code, Culprit, Finding, Verdict
from lockcheck.history import Effect, Ending, F, FaultSpan, History, Hold, Operation, Terms
from lockcheck.history.table import OP_OF

FEWEST_ACQUISITIONS = 10  # of a run of lockcheck, unless its workload requires another number
FEWEST_ELSEWHERE = 2  # of any other history: two holds are the fewest that can overlap
FEWEST_HOLDERS = 2
NO_FAULT = "none"


def doubts(case: Case) -> Iterator[Doubt]:
    history = case.history
    yield from of_faults(history)
    few = list(too_few(history.terms, _amounts(case)))
    yield from few
    if history.terms.backend and not few:  # of others, it is not known what was to be expected
        yield from _unused(case)
    yield from _about_the_ledger(history, case.ledger)


def doubts_of_findings(findings: Iterable[Finding]) -> Iterator[Doubt]:
    """One for each anomaly that the machine itself, or the drift of clocks, explains."""
    for finding in findings:
        if finding.effect is not Verdict.UNKNOWN:
            continue
        if finding.blame.who is Culprit.MACHINE:
            yield _machine(finding)
        elif finding.blame.who is Culprit.CLOCKS:
            node, early_ns = finding.holds[1].node, finding.blame.by_ns
            code, check = DoubtCode.CLOCKS_DRIFT, finding.code
            yield Doubt(code, finding.key, node, check=check, length_ns=early_ns)
        elif finding.code in (Code.STUCK, Code.DENIED):
            yield Doubt(DoubtCode.MAYBE_UNSEEN, finding.key, length_ns=finding.length_ns)


def _machine(finding: Finding) -> Doubt:
    stalls, check = finding.blame.stalls, finding.code
    node = finding.holds[0].node if finding.holds else ""
    if finding.holds and not stalls:
        return Doubt(DoubtCode.CLOCK_JUMPED, finding.key, node, check=check)
    long_ns = total_ns(stalls)
    return Doubt(DoubtCode.MACHINE_STALLED, finding.key, node, check=check, length_ns=long_ns)


# --- faults ----------------------------------------------------------------------------------


def of_faults(history: History) -> Iterator[Doubt]:
    for fault in history.faults:
        if fault.proven_ns is None:
            yield Doubt(DoubtCode.FAULT_UNPROVEN, fault=fault)
        if fault.healed_ns is None:
            yield Doubt(DoubtCode.FAULT_UNHEALED, fault=fault)
    for asked in dict.fromkeys(history.terms.faults):
        if asked == NO_FAULT:
            continue
        begun = [fault for fault in history.faults if was_asked(fault, asked)]
        if not begun:
            yield Doubt(DoubtCode.FAULT_NOT_INJECTED, asked=asked)
        elif history.terms.clients == 1:  # then that is a doubt of its own
            continue
        elif asked in history.terms.at_holders and not _struck_a_holder(history, begun):
            yield Doubt(DoubtCode.NO_HOLDER_STRUCK, asked=asked)


def aims_missed(history: History) -> bool:
    """Whether a fault that was aimed at holders is not seen to have hit one in this history."""
    asked = history.terms.at_holders
    begun = ([fault for fault in history.faults if was_asked(fault, each)] for each in asked)
    return any(faults and not _struck_a_holder(history, faults) for faults in begun)


def was_asked(fault: FaultSpan, asked: str) -> bool:
    """In older histories a fault has its name only, without the aim that was asked for."""
    return fault.asked == asked if fault.asked else fault.name in (asked, asked.partition(":")[0])


def _struck_a_holder(history: History, faults: list[FaultSpan]) -> bool:
    """Whether one of them hit a holder: even one that waits for a grant may come too late."""
    return any(
        hold.node in fault.nodes
        and _struck_during(history, hold, fault)
        and _was_wanted(history, hold, fault)
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
    # The last event of a client that was ended during its hold came before that; its keeper may
    # have renewed the hold meanwhile.
    gone = fault.effect is Effect.ENDS and hold.ending is Ending.LAST_SEEN
    return gone and not any(
        o.node == hold.node and o.owner != hold.process and hold.end_ns < o.start_ns <= struck_ns
        for o in history.operations
    )


def _was_wanted(history: History, hold: Hold, fault: FaultSpan) -> bool:
    """Whether another client wanted the lock during the fault: else the fault shows nothing. In a
    queue it may have asked for it long before."""
    since_ns, healed_ns = fault.worked_from_ns, fault.healed_ns
    return any(
        o.f == F.ACQUIRE and o.key == hold.key and o.node != hold.node
        for o in history.operations
        if (o.answer is None or o.answer.time >= since_ns)
        and (healed_ns is None or o.start_ns <= healed_ns)
    )


# --- how much there was to see -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much happened, counted from events or from columns."""

    operations: int
    answered: int  # of them, with a known outcome
    judged: int  # of them, of a kind that some check knows
    asked: int  # requests for a lock
    granted: int
    holders: int  # different nodes
    shared_keys: int  # locks that were granted to more than one client
    accepted: int  # writes, and jobs that ran


def too_few(terms: Terms, amounts: Amounts) -> Iterator[Doubt]:
    if not amounts.operations:
        yield Doubt(DoubtCode.NO_OPERATIONS)
        return
    if not amounts.answered:
        yield Doubt(DoubtCode.NO_ANSWERS)
    ours = bool(terms.backend)
    fewest = terms.fewest or (FEWEST_ACQUISITIONS if ours else FEWEST_ELSEWHERE)
    if not ours and not amounts.asked:
        if amounts.judged < fewest:
            of = amounts.operations if amounts.judged < amounts.operations else 0
            yield Doubt(DoubtCode.FEW_KNOWN_OPERATIONS, number=amounts.judged, of=of)
        return  # it is about something else than a lock
    if ours and terms.clients == 1:
        yield Doubt(DoubtCode.ONE_CLIENT)
        return
    if amounts.granted < fewest:
        yield Doubt(DoubtCode.FEW_GRANTS, number=amounts.granted, of=fewest)
    if ours and terms.clients >= FEWEST_HOLDERS > amounts.holders:
        yield Doubt(DoubtCode.FEW_HOLDERS, number=amounts.holders)
    elif not amounts.shared_keys:
        yield Doubt(DoubtCode.NO_KEY_SHARED)
    # Behind a guard only data is judged, so there must be some.
    if ours and terms.stores and amounts.accepted < fewest:
        yield Doubt(DoubtCode.FEW_WRITES, number=amounts.accepted, of=fewest)


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


def _unused(case: Case) -> Iterator[Doubt]:
    """Abilities of the lock that no client was seen to use: they may not work at all."""
    permits, seen = case.terms.permits, case.together
    if permits > 1 and case.terms.excludes and seen.held < permits:
        yield Doubt(DoubtCode.PERMITS_UNUSED, number=seen.held, of=permits)
    if seen.shared == 1:
        yield Doubt(DoubtCode.NEVER_SHARED)
    if case.terms.reentrant and seen.entered == 1 and _was_asked_again(case):
        yield Doubt(DoubtCode.NEVER_REENTERED)


def _was_asked_again(case: Case) -> bool:
    """Whether a client requested the lock while it certainly held it."""
    asked = ((o, case.index.of(o)) for o in case.operations if o.f == F.ACQUIRE)
    return any(
        hold is not None and hold.acquire is not o and o.start_ns < hold.end_ns for o, hold in asked
    )


# --- the ledger --------------------------------------------------------------------------------


def _about_the_ledger(history: History, ledger: Ledger) -> Iterator[Doubt]:
    yield from contradictions(ledger)
    silent = history.terms.stores and not history.ledger
    written = (o.answer for o in history.operations if o.f == F.WRITE and o.ok)
    if silent and any(answer and answer.seq for answer in written):
        yield Doubt(DoubtCode.LEDGER_MISSING)


def contradictions(ledger: Ledger) -> Iterator[Doubt]:
    """Writes on which clients and ledger disagree: then what data shows proves nothing."""
    for operation in ledger.missing:
        yield _of_write(DoubtCode.WRITE_NOT_REMEMBERED, operation)
    for entry in ledger.unclaimed:
        yield Doubt(DoubtCode.WRITE_NEVER_SENT, process=entry.process, seq=entry.seq)
    for write in ledger.writes:
        sent = write.operation
        # The opposite of the ledger's: a wrong row in a table of errors would show here.
        if sent is not None and (sent.failed if write.accepted else sent.ok):
            yield _of_write(DoubtCode.WRITE_CONTRADICTED, sent)


def _of_write(code: DoubtCode, operation: Operation) -> Doubt:
    seq = operation.answer.seq if operation.answer else None
    return Doubt(code, operation.key, operation.node, seq=seq)
