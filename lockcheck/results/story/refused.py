"""What the storage's guard kept out, and how late it would have come."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from lockcheck.checker.case import case_of
from lockcheck.checker.words import plain
from lockcheck.history import F, History, Hold, LedgerEntry, Operation


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write that the storage's guard did not let in."""

    time_ns: int | None  # when it was sent; None: only the storage knows of it
    node: str
    key: str
    value: str
    token: int | None
    reason: str
    late_ns: int | None  # how long after the promise of the writer's lease it was sent
    newer_holder: str  # whoever had been granted the lock since: the write was stale


def refused_writes(history: History) -> tuple[RefusedWrite, ...]:
    """The writes that the guard refused, by the storage's own word where there is any."""
    if history.terms.guard not in {"fence", "cas"}:
        return ()
    sent = {
        (o.process, o.key, plain(o.invoke.value)): o
        for o in history.operations
        if o.f == F.WRITE and not o.ok
    }
    testified = [t for t in history.ledger if t.f == F.WRITE and not t.accepted]
    lookup = _HoldLookup(history)
    if history.ledger:
        refused = [
            lookup.refused(sent.get((t.process, t.key, plain(t.value))), t) for t in testified
        ]
    else:  # the run ended before the storage could testify: what the clients were told
        refused = [lookup.refused(o, None) for o in sent.values() if o.failed]
    return tuple(sorted(refused, key=lambda w: (w.time_ns is None, w.time_ns or 0)))


class _HoldLookup:
    """Who held a key last at a given time, without walking all holds for each write."""

    def __init__(self, history: History) -> None:
        self._court = case_of(history).attribution
        self._by_key: dict[str, list[Hold]] = {}
        self._by_owner: dict[tuple[int | str, str], list[Hold]] = {}
        for hold in history.holds:
            self._by_key.setdefault(hold.key, []).append(hold)
            self._by_owner.setdefault((hold.process, hold.key), []).append(hold)

    def refused(self, write: Operation | None, testimony: LedgerEntry | None) -> RefusedWrite:
        if write is None:
            assert testimony is not None  # noqa: S101 - one of the two tells of the write
            return RefusedWrite(
                time_ns=None,
                node=f"process {plain(testimony.process)}",
                key=plain(testimony.key),
                value=plain(testimony.value),
                token=testimony.token,
                reason=plain(testimony.reason, 160),
                late_ns=None,
                newer_holder="",
            )
        invoke, answer = write.invoke, write.answer
        own = _latest(self._by_owner.get((write.process, write.key), []), write.start_ns)
        last = _latest(self._by_key.get(write.key, []), answer.time if answer else write.start_ns)
        until_ns = self._court.promised_in_all_ns(own) if own else None
        late = until_ns is not None and write.start_ns > until_ns
        superseded = own is not None and last is not None and last.process != own.process
        told = (testimony.reason if testimony else "") or (answer.error if answer else "") or ""
        return RefusedWrite(
            time_ns=write.start_ns,
            node=plain(write.node),
            key=plain(write.key),
            value=plain(invoke.value),
            token=invoke.token,
            reason=plain(told, 160),
            late_ns=write.start_ns - until_ns if until_ns is not None and late else None,
            newer_holder=plain(last.node) if superseded and last is not None else "",
        )


def _latest(holds: list[Hold], at_ns: int) -> Hold | None:
    """The last that had begun by then; `holds` are in the order of their starts."""
    index = bisect_right(holds, at_ns, key=lambda hold: hold.start_ns)
    return holds[index - 1] if index else None
