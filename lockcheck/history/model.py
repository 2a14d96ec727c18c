"""What the events mean: operations, holds, faults, stalls, and what the storage testifies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import msgspec

from lockcheck.errors import HistoryError
from lockcheck.history.event import (
    NEMESIS,
    NS_PER_MS,
    STORAGE,
    Event,
    EventType,
    F,
    Notice,
    Terms,
)
from lockcheck.history.files import read_events

LONGEST_MS = 1e12  # thirty years: what claims to last longer is no measurement


@dataclass(frozen=True, slots=True)
class Operation:
    """An invocation and, where there was one, its answer."""

    invoke: Event
    answer: Event | None

    @property
    def process(self) -> int | str:
        return self.invoke.process

    @property
    def f(self) -> str:
        return self.invoke.f

    @property
    def key(self) -> str:
        return self.invoke.key or ""

    @property
    def node(self) -> str:
        return self.invoke.node or f"process {self.invoke.process}"

    @property
    def start_ns(self) -> int:
        return self.invoke.time

    @property
    def end_ns(self) -> int | None:
        """None where nobody knows when, or whether, it took effect."""
        return None if self.answer is None or self.unknown else self.answer.time

    @property
    def ok(self) -> bool:
        return self.answer is not None and self.answer.type is EventType.OK

    @property
    def failed(self) -> bool:
        return self.answer is not None and self.answer.type is EventType.FAIL

    @property
    def unknown(self) -> bool:
        return self.answer is None or self.answer.type is EventType.INFO


class Ending(StrEnum):
    """Why a client stopped holding a lock for certain."""

    RELEASED = "released"
    LOST = "lost"  # it was told so
    EXPIRED = "expired"  # its own clock told it, and it honours that
    LAST_SEEN = "last-seen"  # it never released: certain only up to its last sign of life


@dataclass(frozen=True, slots=True)
class Hold:
    """What a client believes: certain from the grant's answer to the end named by `ending`."""

    key: str
    process: int | str
    node: str
    acquire: Operation
    end_ns: int
    ending: Ending
    release: Operation | None
    renewals: tuple[Operation, ...] = ()

    @property
    def start_ns(self) -> int:
        answer = self.acquire.answer
        assert answer is not None  # noqa: S101 - a hold is made of a granted acquire only
        return answer.time

    @property
    def token(self) -> int | None:
        return self.acquire.answer.token if self.acquire.answer else None

    def promised_until_ns(
        self, default_ttl_ms: int | None, *, as_of_ns: int | None = None
    ) -> int | None:
        """Until when the lease was promised; None: a lock without a lease.

        It runs from an invocation, not from its answer: the server may have begun to count then.
        With `as_of_ns` only what the holder had been told by then counts: a renewal that is
        granted after somebody else was let in was no promise at that moment.
        """
        granted = [self.acquire, *(r for r in self.renewals if _granted_by(r, as_of_ns))]
        leases = [(o.start_ns, o.invoke.ttl_ms or default_ttl_ms) for o in granted]
        ends = [start_ns + ttl_ms * NS_PER_MS for start_ns, ttl_ms in leases if ttl_ms]
        return ends[-1] if ends else None


def _granted_by(renewal: Operation, as_of_ns: int | None) -> bool:
    end_ns = renewal.end_ns
    return renewal.ok and end_ns is not None and (as_of_ns is None or end_ns <= as_of_ns)


def validity_end_ns(granted: Operation, default_ttl_ms: int | None) -> int | None:
    """Until when a client that watches its validity believes in this grant; None: it was told none.

    Never longer than the lease: it counts from before the answer was written down, and may have
    stood still in between.
    """
    answer = granted.answer
    if answer is None or answer.valid_ms is None:
        return None
    valid_ms = max(0.0, min(answer.valid_ms, LONGEST_MS))
    until_ns = answer.time + int(valid_ms * NS_PER_MS)
    ttl_ms = granted.invoke.ttl_ms or default_ttl_ms
    return min(until_ns, granted.start_ns + ttl_ms * NS_PER_MS) if ttl_ms else until_ns


def _believed_until_ns(hold: Hold, default_ttl_ms: int | None) -> int | None:
    """A renewal extends it only when its answer came in time: once the validity is over, such a
    client has stopped, and the hold that it certainly had is over with it.
    """
    until_ns = validity_end_ns(hold.acquire, default_ttl_ms)
    for renewal in hold.renewals:
        extended_ns = validity_end_ns(renewal, default_ttl_ms) if renewal.ok else None
        in_time = until_ns is not None and renewal.answer and renewal.answer.time <= until_ns
        if extended_ns is not None and in_time:
            until_ns = extended_ns
    return until_ns


@dataclass(frozen=True, slots=True)
class FaultSpan:
    """A fault from the moment it was begun to the moment it was seen to be healed."""

    id: int
    name: str
    node: str
    start_ns: int
    proven_ns: int | None
    healed_ns: int | None
    proof: str
    why_unproven: str = ""

    def touches(self, start_ns: int, end_ns: int) -> bool:
        healed = self.healed_ns
        return self.start_ns <= end_ns and (healed is None or healed >= start_ns)


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which a client did not run although nobody had stopped it on purpose, or had."""

    node: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Testimony:
    """One read or write as the storage remembers it."""

    seq: int
    f: str
    key: str
    process: int | str
    accepted: bool
    value: object
    base: object
    token: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class History:
    terms: Terms
    events: tuple[Event, ...]
    operations: tuple[Operation, ...]
    holds: tuple[Hold, ...]
    faults: tuple[FaultSpan, ...]
    stalls: tuple[Stall, ...]
    clock_steps: tuple[Event, ...]
    testimony: tuple[Testimony, ...]

    @property
    def end_ns(self) -> int:
        return self.events[-1].time if self.events else 0

    @staticmethod
    def of(events: Iterable[Event], *, source: str = "history") -> History:
        assembly = _Assembly(source)
        for event in events:
            assembly.add(event)
        return assembly.finish()


def read_history(path: Path) -> History:
    return History.of(read_events(path), source=str(path))


@dataclass(slots=True)
class _OpenHold:
    acquire: Operation
    renewals: list[Operation] = field(default_factory=list)


@dataclass(slots=True)
class _OpenFault:
    begun: Event
    proven_ns: int | None = None
    proof: str = ""
    why_unproven: str = "it was never proven that it took"
    healed_ns: int | None = None


@dataclass(slots=True)
class _Assembly:
    """Reads events in the order of their times and builds what they mean."""

    source: str
    terms: Terms = field(default_factory=Terms)
    events: list[Event] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    clock_steps: list[Event] = field(default_factory=list)
    testimony: list[Testimony] = field(default_factory=list)
    _pending: dict[int | str, Event] = field(default_factory=dict)
    _held: dict[tuple[int | str, str], _OpenHold] = field(default_factory=dict)
    _faults: dict[int, _OpenFault] = field(default_factory=dict)
    _last_seen: dict[int | str, int] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        self.events.append(event)  # first, so that an error names the line of this one
        if len(self.events) > 1 and event.time < self.events[-2].time:
            raise self._error("its time lies before that of the line above")
        if event.process == NEMESIS:
            self._add_fault(event)
        elif event.process == STORAGE:
            self._add_testimony(event)
        elif event.f == Notice.TERMS:
            self._set_terms(event)
        elif event.f == Notice.CLOCK_STEP:
            self.clock_steps.append(event)
        else:
            self._add_of_client(event)

    def finish(self) -> History:
        for process, invoke in self._pending.items():
            operation = Operation(invoke, None)
            self.operations.append(operation)
            self._end_or_extend_hold(process, operation)
        for process, key in list(self._held):
            self._close(process, key, self._last_seen[process], Ending.LAST_SEEN, None)
        self.operations.sort(key=lambda operation: operation.start_ns)
        self.holds.sort(key=lambda hold: hold.start_ns)
        return History(
            terms=self.terms,
            events=tuple(self.events),
            operations=tuple(self.operations),
            holds=tuple(self.holds),
            faults=tuple(self._fault_spans()),
            stalls=tuple(self.stalls),
            clock_steps=tuple(self.clock_steps),
            testimony=tuple(self.testimony),
        )

    def _error(self, reason: str) -> HistoryError:
        return HistoryError(reason, source=self.source, line=max(1, len(self.events)))

    def _set_terms(self, event: Event) -> None:
        try:
            self.terms = msgspec.convert(event.value, Terms)
        except msgspec.ValidationError as error:
            raise self._error(f"the terms of the run make no sense: {error}") from error

    # --- clients ---------------------------------------------------------------------------

    def _add_of_client(self, event: Event) -> None:
        process = event.process
        if event.f == Notice.STALL:
            self._add_stall(event)
            return  # written by the client's ticker: no sign of what the process itself does
        self._last_seen[process] = event.time
        if event.type is EventType.INVOKE:
            if process in self._pending:
                raise self._error(f"process {process} has an operation open already")
            self._pending[process] = event
            return
        invoke = self._pending.get(process)
        if invoke is not None and invoke.f == event.f:
            del self._pending[process]
            operation = Operation(invoke, event)
            self.operations.append(operation)
            self._end_or_extend_hold(process, operation)
        elif event.type is EventType.INFO:
            if event.f == Notice.LOST:
                self._close(process, event.key or "", event.time, Ending.LOST, None)
        else:
            raise self._error(f"process {process} has an answer to a {event.f} it never invoked")

    def _end_or_extend_hold(self, process: int | str, operation: Operation) -> None:
        held = self._held.get((process, operation.key))
        if operation.f == F.ACQUIRE and operation.ok:
            if held is not None:
                raise self._error(
                    f"process {process} is granted {operation.key!r}, which it holds already"
                )
            self._held[process, operation.key] = _OpenHold(operation)
        elif operation.f == F.RELEASE and held is not None:
            self._close(process, operation.key, operation.start_ns, Ending.RELEASED, operation)
        elif operation.f == F.RENEW and held is not None:
            held.renewals.append(operation)

    def _close(
        self, process: int | str, key: str, end_ns: int, ending: Ending, release: Operation | None
    ) -> None:
        held = self._held.pop((process, key), None)
        if held is None:
            return  # told twice that it lost it, or releasing what it was told it had lost
        hold = Hold(
            key,
            process,
            held.acquire.node,
            held.acquire,
            end_ns,
            ending,
            release,
            tuple(held.renewals),
        )
        self.holds.append(self._cut_at_validity(hold))

    def _cut_at_validity(self, hold: Hold) -> Hold:
        if not self.terms.honours_validity:
            return hold
        until_ns = _believed_until_ns(hold, self.terms.ttl_ms)
        if until_ns is None or until_ns >= hold.end_ns:
            return hold
        return replace(hold, end_ns=until_ns, ending=Ending.EXPIRED)

    def _add_stall(self, event: Event) -> None:
        if not isinstance(event.value, int | float) or not 0 <= event.value < LONGEST_MS:
            raise self._error("a stall without its length in ms")
        length_ns = int(event.value * NS_PER_MS)
        self.stalls.append(Stall(event.node or "", event.time - length_ns, event.time))

    # --- nemesis and storage ---------------------------------------------------------------

    def _add_fault(self, event: Event) -> None:
        if event.fault is None:
            return  # the nemesis says something that is no fault
        known = self._faults.get(event.fault)
        if known is None:
            if event.type is not EventType.INVOKE or event.f == Notice.HEAL:
                raise self._error(f"fault {event.fault} was never begun")
            self._faults[event.fault] = _OpenFault(event)
        elif event.f == Notice.HEAL:
            if event.type is EventType.OK:
                known.healed_ns = event.time
        elif event.type is EventType.OK:
            known.proven_ns, known.proof = event.time, str(event.value or "")
        else:
            known.why_unproven = event.error or known.why_unproven

    def _fault_spans(self) -> Iterable[FaultSpan]:
        for number, fault in self._faults.items():
            yield FaultSpan(
                id=number,
                name=fault.begun.f,
                node=fault.begun.node or "",
                start_ns=fault.begun.time,
                proven_ns=fault.proven_ns,
                healed_ns=fault.healed_ns,
                proof=fault.proof,
                why_unproven="" if fault.proven_ns is not None else fault.why_unproven,
            )

    def _add_testimony(self, event: Event) -> None:
        if event.seq is None or event.of is None:
            raise self._error("the storage testifies without `seq` and `of`")
        self.testimony.append(
            Testimony(
                seq=event.seq,
                f=event.f,
                key=event.key or "",
                process=event.of,
                accepted=event.type is EventType.OK,
                value=event.value,
                base=event.base,
                token=event.token,
                reason=event.error or "",
            )
        )
