"""A history as a whole, and how it is put together from its events, in the order of their times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
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
from lockcheck.history.files import Place, read_events
from lockcheck.history.model import (
    LONGEST_MS,
    Ending,
    FaultSpan,
    Hold,
    Operation,
    Stall,
    Testimony,
    believed_until_ns,
)


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
    queued: tuple[Event, ...] = ()  # clients that were told that they have their place

    @property
    def end_ns(self) -> int:
        return self.events[-1].time if self.events else 0

    @staticmethod
    def of(
        events: Iterable[Event],
        *,
        source: str = "history",
        place: Place | None = None,
        terms: Terms | None = None,
    ) -> History:
        """With the `place` that the reader of the events moves on, errors name its line. With
        `terms` it is understood by them, whatever its own are."""
        assembly = _Assembly(source, place)
        if terms is not None:
            assembly.terms, assembly.terms_are_given = terms, True
        for event in events:
            assembly.add(event)
        return assembly.finish()


def read_history(path: Path) -> History:
    place = Place()
    return History.of(read_events(path, place=place), source=str(path), place=place)


@dataclass(slots=True)
class _OpenHold:
    acquire: Operation
    renewals: list[Operation] = field(default_factory=list)
    entered: int = 1  # how many grants have not been released: a reentrant lock's can be many


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
    place: Place | None = None
    terms: Terms = field(default_factory=Terms)
    terms_are_given: bool = False
    events: list[Event] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    clock_steps: list[Event] = field(default_factory=list)
    testimony: list[Testimony] = field(default_factory=list)
    queued: list[Event] = field(default_factory=list)
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
        invoked = {id(event): number for number, event in enumerate(self.events)}
        self.operations.sort(key=lambda operation: invoked[id(operation.invoke)])
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
            queued=tuple(self.queued),
        )

    def _error(self, reason: str) -> HistoryError:
        line = self.place.line if self.place else len(self.events)
        return HistoryError(reason, source=self.source, line=max(1, line))

    def _set_terms(self, event: Event) -> None:
        if self.terms_are_given:
            return
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
        seen_before_ns = self._last_seen.get(process, event.time)
        self._last_seen[process] = event.time
        if event.type is EventType.INVOKE:
            if process in self._pending:
                raise self._error(f"process {process} has an operation open already")
            self._pending[process] = event
            if event.f == F.ACQUIRE and not self.terms.reentrant:
                # It asks although it never released: it had given up, nobody knows when.
                self._close(process, event.key or "", seen_before_ns, Ending.LAST_SEEN, None)
            return
        invoke = self._pending.get(process)
        if invoke is not None and invoke.f == event.f:
            del self._pending[process]
            operation = Operation(invoke, event)
            self.operations.append(operation)
            self._end_or_extend_hold(process, operation)
        elif event.type is EventType.INFO:
            self._add_notice(event)
        else:
            raise self._error(f"process {process} has an answer to a {event.f} it never invoked")

    def _add_notice(self, event: Event) -> None:
        if event.f == Notice.LOST:
            self._close(event.process, event.key or "", event.time, Ending.LOST, None)
        elif event.f == Notice.QUEUED:
            self.queued.append(event)

    def _end_or_extend_hold(self, process: int | str, operation: Operation) -> None:
        held = self._held.get((process, operation.key))
        if operation.f == F.ACQUIRE and operation.ok:
            if held is not None:
                held.entered += 1
            else:
                self._held[process, operation.key] = _OpenHold(operation)
        elif operation.f == F.RELEASE and held is not None:
            held.entered -= 1
            if held.entered == 0:
                self._close(process, operation.key, operation.start_ns, Ending.RELEASED, operation)
        elif operation.f == F.RELEASE and self.terms.released_by_anyone and not operation.failed:
            self._give_up_all(operation)
        elif operation.f == F.RENEW and held is not None:
            held.renewals.append(operation)
            if operation.failed and operation.answer is not None:
                self._close(process, operation.key, operation.answer.time, Ending.LOST, None)

    def _give_up_all(self, release: Operation) -> None:
        """Somebody else's release: nobody knows whose hold it ended, so none is certain after."""
        for process, key in [held for held in self._held if held[1] == release.key]:
            granted = self._held[process, key].acquire.answer
            end_ns = max(release.start_ns, granted.time if granted else release.start_ns)
            self._close(process, key, end_ns, Ending.RELEASED, None)

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
        until_ns = believed_until_ns(hold, self.terms.ttl_ms)
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
