"""What would settle an `unknown`, where its doubts do not say so themselves."""

from __future__ import annotations

from collections.abc import Callable

from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.words import amount, sentence

MOST = 3  # of them are enough to go on with


def settled_by(judgement: Judgement) -> str:
    """Empty if there is nothing to settle."""
    if judgement.verdict is not Verdict.UNKNOWN:
        return ""
    known = (d for d in judgement.doubts if d.code in _SETTLED_BY)
    steps = list(dict.fromkeys(_SETTLED_BY[doubt.code](doubt) for doubt in known))
    return " ".join(map(sentence, steps[:MOST]))


def _grants(doubt: Doubt) -> str:
    return (
        f"let clients be granted the lock {amount(doubt.of, 'time')} or more: a longer --time-limit"
    )


_TWO_CLIENTS = "let two clients be granted the same lock, one after the other"
_ANSWERED = "let operations of two clients be answered: acquires and releases of the same lock"
_NEW_FAULT = "run it again: only a fault that was seen to work, and to end, tells anything"
_KINDS = "name the model of the object, or its lease"
_LEDGER = "run it again with a storage that keeps its ledger"

_SETTLED_BY: dict[DoubtCode, Callable[[Doubt], str]] = {
    DoubtCode.RUN_UNFINISHED: lambda _: "run it again, up to its end",
    DoubtCode.CHECK_CRASHED: lambda d: f"report the crash of {d.check}, with the history",
    DoubtCode.NO_OPERATIONS: lambda _: _ANSWERED,
    DoubtCode.NO_ANSWERS: lambda _: _ANSWERED,
    DoubtCode.FEW_KNOWN_OPERATIONS: lambda _: _ANSWERED,
    DoubtCode.FEW_GRANTS: _grants,
    DoubtCode.FEW_HOLDERS: lambda _: _TWO_CLIENTS,
    DoubtCode.NO_KEY_SHARED: lambda _: _TWO_CLIENTS,
    DoubtCode.FEW_WRITES: lambda d: f"let the storage accept {amount(d.of, 'write')} or more",
    DoubtCode.PERMITS_UNUSED: lambda d: f"let {d.of} clients hold it at once",
    DoubtCode.NEVER_SHARED: lambda _: "let two readers hold it at once",
    DoubtCode.NEVER_REENTERED: lambda _: "let a holder acquire it again",
    DoubtCode.NOT_GRANTED_AFTER_HEALING: lambda _: (
        "let clients go on asking for longer than a lease after the last fault"
    ),
    DoubtCode.FAULT_UNPROVEN: lambda _: _NEW_FAULT,
    DoubtCode.FAULT_UNHEALED: lambda _: _NEW_FAULT,
    DoubtCode.FAULT_NOT_INJECTED: lambda _: "give the run a longer time limit",
    DoubtCode.NO_HOLDER_STRUCK: lambda _: (
        "run it again for longer, or with more clients that want the same lock"
    ),
    DoubtCode.CLOCKS_DRIFT: lambda _: "log all clients by the clock of one host",
    DoubtCode.LEDGER_MISSING: lambda _: _LEDGER,
    DoubtCode.WRITE_NOT_REMEMBERED: lambda _: _LEDGER,
    DoubtCode.WRITE_NEVER_SENT: lambda _: _LEDGER,
    DoubtCode.WRITE_CONTRADICTED: lambda _: _LEDGER,
    DoubtCode.MODEL_MISFIT: lambda _: _KINDS,
    DoubtCode.UNDECIDED: lambda _: "log less at once, or give the search more time and memory",
    DoubtCode.MAYBE_UNSEEN: lambda _: "log every client of the lock",
}
