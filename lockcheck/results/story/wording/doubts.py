"""What a judge's doubts are in words."""

from __future__ import annotations

from collections.abc import Callable

from lockcheck.checker.doubt import TOO_SHORT, Doubt, DoubtCode
from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.results.story.wording.clocks import how_far
from lockcheck.words import amount, moment, plain, sentence, span, times


def in_words(judgement: Judgement) -> dict[str, Doubt]:
    """A sentence for each doubt; those that read the same are one."""
    doubts: dict[str, Doubt] = {}
    for doubt in judgement.doubts:
        doubts.setdefault(words_of(doubt), doubt)
    return doubts


def beside_the_headline(judgement: Judgement) -> tuple[str, ...]:
    """All doubts; those of an `unknown` without the first, which the headline has. Beside a
    violation, one sentence sums up why the history is short: it was long enough for that."""
    doubts = in_words(judgement)
    if judgement.verdict is not Verdict.VIOLATION:
        return tuple(map(sentence, list(doubts)[judgement.verdict is Verdict.UNKNOWN :]))
    short = [_SHORT[doubt.code](doubt) for doubt in doubts.values() if doubt.code in TOO_SHORT]
    others = [sentence(text) for text, doubt in doubts.items() if doubt.code not in TOO_SHORT]
    if short:
        why = "; ".join(short)
        others.insert(0, f"The run was short: enough for a violation, but not for an OK ({why}).")
    return tuple(others)


def words_of(doubt: Doubt) -> str:
    if doubt.code in TOO_SHORT:
        return f"too little happened to tell: {_SHORT[doubt.code](doubt)}"
    return _WORDS[doubt.code](doubt)


def _object(doubt: Doubt) -> str:
    return "the only object" if doubt.key is None else repr(doubt.key)


def _write(doubt: Doubt) -> str:
    return f"write {doubt.seq} of {doubt.node} to {doubt.key!r}"


LONGEST_REASON = 200


def _why_not(doubt: Doubt) -> str:
    why = doubt.fault.why_unhealed if doubt.fault else ""
    return f": {plain(why, LONGEST_REASON)}" if why else ""


def _fault(doubt: Doubt) -> str:
    fault = doubt.fault
    if fault is None:
        return "a fault"
    where = f" on {fault.where}" if fault.nodes else ""
    return f"the fault {fault.name}{where} at {moment(fault.start_ns)}"


def _unproven(doubt: Doubt) -> str:
    why = doubt.fault.why_unproven if doubt.fault else ""
    return f"{_fault(doubt)} was injected, but {why or 'it was not proven'}"


def _few_known(doubt: Doubt) -> str:
    known = f", of {doubt.of}" if doubt.of else ""
    return f"too few operations that a judge knows to tell: {doubt.number}{known}"


def _not_granted(doubt: Doubt) -> str:
    example = f", for example with {doubt.reason!r}" if doubt.reason else ""
    return (
        f"every fault was healed, and in the {span(doubt.length_ns)} that were left nobody was"
        f" granted {doubt.key!r}: {doubt.number} attempts failed{example}"
    )


def _machine_stalled(doubt: Doubt) -> str:
    stalled = f"the machine stalled for {span(doubt.length_ns)}"
    if not doubt.node:
        return (
            f"{stalled}, and that explains the {doubt.check} of {doubt.key!r}: run again on a"
            " quieter machine"
        )
    return (
        f"{stalled} on {doubt.node} while it held {doubt.key!r}, and that explains the"
        f" {doubt.check}: run again on a quieter machine or with a longer TTL"
    )


_SHORT: dict[DoubtCode, Callable[[Doubt], str]] = {
    DoubtCode.FEW_GRANTS: lambda d: (
        f"the lock was granted {times(d.number)}, with at least {d.of} needed"
    ),
    DoubtCode.FEW_HOLDERS: lambda d: f"{d.number} of the clients held the lock",
    DoubtCode.NO_KEY_SHARED: lambda _: "no lock was ever held by two different clients",
    DoubtCode.FEW_WRITES: lambda d: (
        f"the storage accepted {amount(d.number, 'write')}, with at least {d.of} needed"
    ),
}

_WORDS: dict[DoubtCode, Callable[[Doubt], str]] = {
    DoubtCode.RUN_UNFINISHED: lambda d: f"the run did not come to its end: {d.reason}",
    DoubtCode.CHECK_CRASHED: lambda d: f"the check {d.check} crashed: {d.reason}",
    DoubtCode.NO_OPERATIONS: lambda _: (
        "the history has no operations of clients, so there is nothing to judge"
    ),
    DoubtCode.NO_ANSWERS: lambda _: (
        "no operation of a client was ever answered, so there is nothing to judge"
    ),
    DoubtCode.FEW_KNOWN_OPERATIONS: _few_known,
    DoubtCode.ONE_CLIENT: lambda _: (
        "there was only one client, so nobody could be let in beside it: run it again with more,"
        " such as --clients 5"
    ),
    DoubtCode.PERMITS_UNUSED: lambda d: (
        f"no more than {d.number} of {d.of} permits were ever held at once"
    ),
    DoubtCode.NEVER_SHARED: lambda _: (
        "clients asked for a lock that others may share, and no two ever shared it"
    ),
    DoubtCode.NEVER_REENTERED: lambda _: (
        "holders asked to be let in again, and none of them ever was"
    ),
    DoubtCode.NOT_GRANTED_AFTER_HEALING: _not_granted,
    DoubtCode.FAULT_UNPROVEN: _unproven,
    DoubtCode.FAULT_UNHEALED: lambda d: f"{_fault(d)} was never seen to be healed{_why_not(d)}",
    DoubtCode.FAULT_NOT_INJECTED: lambda d: (
        f"the fault {d.asked} was asked for, but was never injected"
    ),
    DoubtCode.NO_HOLDER_STRUCK: lambda d: (
        f"the fault {d.asked} never struck a client while it held a lock that others wanted"
    ),
    DoubtCode.MACHINE_STALLED: _machine_stalled,
    DoubtCode.CLOCK_JUMPED: lambda d: (
        f"the host's clock jumped while {d.node} held {d.key!r}, and that explains the {d.check}:"
        " run again while nothing sets the clock"
    ),
    DoubtCode.CLOCKS_APART: lambda d: (
        f"{'' if d.clocks is None else how_far(d.clocks)}; with the clocks set right, all answers"
        " fit: say by --clock-error how far apart they can be"
    ),
    DoubtCode.CLOCKS_DRIFT: lambda d: (
        f"two clocks may drift apart by the {span(d.length_ns)} that {d.node} was let in to"
        f" {d.key!r} before the lease of its last holder was over: so the {d.check} proves nothing"
    ),
    DoubtCode.LEDGER_MISSING: lambda _: (
        "the storage's ledger is missing, so the fate of unanswered writes is unknown"
    ),
    DoubtCode.WRITE_NOT_REMEMBERED: lambda d: (
        f"the storage does not remember {_write(d)}, which it had acknowledged"
    ),
    DoubtCode.WRITE_NEVER_SENT: lambda d: (
        f"the storage served write {d.seq} of process {d.process}, which never sent it"
    ),
    DoubtCode.WRITE_CONTRADICTED: lambda d: (
        f"{d.node} and the storage contradict each other on {_write(d)}: who is right decides the"
        " verdict"
    ),
    DoubtCode.MODEL_MISFIT: lambda d: f"{d.reason}: what it says of these operations tells nothing",
    DoubtCode.UNDECIDED: lambda d: (
        f"whether {_object(d)} fits the model {d.model} could not be decided: {d.reason}"
    ),
    DoubtCode.MAYBE_REENTRANT: lambda d: (
        f"no order explains the answers about {_object(d)}, unless whoever holds it can enter it"
        f" again: say whether that is so (--model {d.instead}) or not (--model {d.model})"
    ),
    DoubtCode.MAYBE_LEASED: lambda d: (
        f"no order explains the answers about {_object(d)}, unless the lock has a lease the"
        " history does not mention, or was already held when it began: if it has a lease, say how"
        " long (--ttl); if neither is so, it is a violation"
    ),
    DoubtCode.MAYBE_UNLOGGED: lambda d: (
        f"no order explains the answers about {_object(d)}, unless an operation of {d.node} is"
        " missing that was under way when the log was cut: nothing is heard of it afterwards. A"
        " longer log would tell"
    ),
    DoubtCode.MAYBE_UNSEEN: lambda d: (
        f"{_object(d)} was refused to all for {span(d.length_ns)}, although no client in this"
        " history can have held it: unless one that is missing here did, that is a violation"
    ),
    DoubtCode.MAYBE_RELEASED: lambda d: (
        f"no order explains the answers about {_object(d)}, unless a release that was refused had"
        " been done before, or the lease had ended sooner than was promised: look at who refused it"
    ),
}
