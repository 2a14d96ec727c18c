"""What the storage's guard kept out, and how late it would have come."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from lockcheck.checker.case import Case
from lockcheck.history import F, History, Operation
from lockcheck.words import plain


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write that the storage's guard did not let in."""

    time_ns: int  # when its client got the refusal; without an answer, when it was sent
    node: str
    key: str
    value: str
    token: int | None
    reason: str
    late_ns: int | None  # how long after the promise of its writer's lease; None: not known
    newer_holder: str  # had been granted the lock since, so the write was stale; or empty


def rolled_back(history: History) -> int:
    """Where the lock's own transaction is the guard: the changes that came too late."""
    return sum(1 for o in history.operations if o.f in (F.WRITE, F.RUN) and o.failed)


def refused_writes(case: Case) -> tuple[RefusedWrite, ...]:
    """By the storage's ledger; where that is missing, by the answers that clients got."""
    if case.terms.guard not in {"fence", "cas"}:
        return ()
    refused = [(w.operation, w.reason) for w in case.ledger.refused if w.operation is not None]
    if not case.ledger.kept:
        failed = (o for o in case.operations if o.f == F.WRITE and o.failed)
        refused = [(o, "") for o in failed]
    found = (_refused(case, write, reason) for write, reason in refused)
    return tuple(sorted(found, key=lambda write: write.time_ns))


def _refused(case: Case, write: Operation, reason: str) -> RefusedWrite:
    answer, at_ns, own = write.answer, write.last_ns, case.index.of(write)
    holds = case.holds_by_key.get(write.key, [])
    begun = bisect_right(holds, at_ns, key=lambda hold: hold.start_ns)
    last = holds[begun - 1] if begun else None
    newer = last if own and last and last.process != own.process else None
    until_ns = None
    if own and newer:  # as it stood when the newer holder was let in
        until_ns = case.attribution.promised_until_ns(own, newer)
    elif own:
        until_ns = case.attribution.promises.in_all_ns(own)
    return RefusedWrite(
        time_ns=at_ns,
        node=plain(write.node),
        key=plain(write.key),
        value=plain(write.invoke.value),
        token=write.invoke.token,
        reason=plain(reason or (answer.error if answer else "") or "", 160),
        late_ns=None if until_ns is None else max(0, at_ns - until_ns),
        newer_holder=plain(newer.node) if newer else "",
    )
