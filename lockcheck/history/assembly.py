"""Builds operations, holds, faults and stalls from events, one event at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from lockcheck.errors import HistoryError
from lockcheck.history.event import (
    NEMESIS,
    NS_PER_MS,
    RUN,
    STORAGE,
    WAITED,
    Effect,
    Event,
    EventType,
    F,
    Notice,
    Terms,
)
from lockcheck.history.faults import FaultAssembly
from lockcheck.history.files import Position
from lockcheck.history.holding import Holding
from lockcheck.history.model import LONGEST_MS, LedgerEntry, Operation, Stall
from lockcheck.history.older import completed


def keeper_of(process: int | str) -> str:
    """The name for a keeper that was logged under the name of its client."""
    return f"{process}/keeper"


@dataclass(slots=True)
class Assembly:
    """Reads events in the order of their times."""

    source: str
    place: Position | None = None
    given_up: frozenset[int] = frozenset()  # ids of invocations that start over
    given_terms: Terms | None = None  # instead of those among the events
    events: list[Event] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    _waits: list[Stall] = field(default_factory=list)
    # No signs of life of a process, by whichever they are written.
    beside: defaultdict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    ledger: list[LedgerEntry] = field(default_factory=list)
    numbers: set[tuple[str | None, int]] = field(default_factory=set)  # of ledger entries
    queued: list[Event] = field(default_factory=list)
    turns: list[Event] = field(default_factory=list)
    faults: FaultAssembly = field(default_factory=FaultAssembly)
    holding: Holding = field(init=False)
    _pending: dict[int | str, int] = field(default_factory=dict)  # index in `events` of the invoke

    def __post_init__(self) -> None:
        self.holding = Holding(self.given_terms or Terms())

    @property
    def terms(self) -> Terms:
        return self.holding.terms

    def read(self, events: Iterable[Event]) -> None:
        for event in events:
            self._add(event)
        self._settle()

    def _add(self, event: Event) -> None:
        if event.process == RUN and event.f == Notice.SEALED:
            return  # about the file, not about the run
        self.events.append(event)  # first, so that an error names the line of this one
        if len(self.events) > 1 and event.time < self.events[-2].time:
            raise self._error("its time is before that of the line above")
        if event.process == NEMESIS:
            try:
                self.faults.add(event)
            except ValueError as error:
                raise self._error(str(error)) from error
        elif event.process == STORAGE:
            self._add_ledger_entry(event)
        elif event.f == Notice.TERMS:
            self._set_terms(event)
        elif event.f in (Notice.CLOCK_STEP, Notice.CLOCKS, Notice.PROGRAM):
            self.beside[event.f].append(event)
        else:
            self._add_of_client(event)
            if event.type is not EventType.INFO:  # an info may be written on behalf of the client
                self.holding.seen_on_key_ns[event.process, event.key or ""] = event.time

    def _settle(self) -> None:
        """Closes what is still open, and sorts everything."""
        for begun in self._pending.values():
            self._add_operation(Operation(self.events[begun], None))
        self.holding.settle()
        invoked = {id(event): number for number, event in enumerate(self.events)}
        self.operations.sort(key=lambda operation: invoked[id(operation.invoke)])
        self.stalls = sorted(self._stalls(), key=lambda stall: stall.end_ns)

    def _error(self, reason: str) -> HistoryError:
        line = self.place.line if self.place else len(self.events)
        return HistoryError(reason, source=self.source, line=max(1, line))

    def _set_terms(self, event: Event) -> None:
        if self.given_terms is not None:
            return
        try:
            self.holding.terms = completed(msgspec.convert(event.value, Terms))
        except msgspec.ValidationError as error:
            raise self._error(f"invalid terms of the run: {error}") from error

    # --- clients ---------------------------------------------------------------------------

    def _add_of_client(self, event: Event) -> None:
        if event.f == Notice.STALL:
            self._add_stall(event)
            return  # written by the client's ticker: no sign of life of the process itself
        event = self._with_keeper_named(event)
        process = event.process
        seen_before_ns = self.holding.seen_ns.get(process, event.time)
        self.holding.seen_ns[process] = event.time
        if event.type is EventType.INVOKE:
            if process in self._pending:
                raise self._error(f"process {process} has an open operation already")
            self._pending[process] = len(self.events) - 1
            if event.f not in (F.ACQUIRE, F.RELEASE):
                self.holding.worked_ns[process] = event.time
            if event.f == F.ACQUIRE and (not self.terms.reentrant or id(event) in self.given_up):
                # It acquires again without a release: it gave up its hold at an unknown time.
                self.holding.give_up(process, event.key or "", seen_before_ns)
            return
        invoke = self._open(process)
        if invoke is not None and invoke.f == event.f:
            del self._pending[process]
            self._add_operation(Operation(invoke, event))
        elif event.type is EventType.INFO:
            self._add_notice(event)
        else:
            raise self._error(
                f"process {process} has an answer to a {event.f} that it never invoked"
            )

    def _open(self, process: int | str) -> Event | None:
        begun = self._pending.get(process)
        return None if begun is None else self.events[begun]

    def _with_keeper_named(self, event: Event) -> Event:
        """Names a keeper that was logged as its client: its renewal overlaps another operation."""
        process, is_renewal = event.process, event.f == F.RENEW
        own = self._open(process)
        if event.type is not EventType.INVOKE:
            if not is_renewal or (own is not None and own.f == F.RENEW):
                return event
            return self._moved_to_keeper(-1) if keeper_of(process) in self._pending else event
        if own is None or is_renewal == (own.f == F.RENEW):
            return event
        if is_renewal:
            return self._moved_to_keeper(-1)
        if keeper_of(process) not in self._pending:
            begun = self._pending.pop(process)
            self._pending[self._moved_to_keeper(begun).process] = begun
        return event

    def _moved_to_keeper(self, at: int) -> Event:
        event = self.events[at]
        of = event.process if event.of is None else event.of
        keeper = keeper_of(event.process)
        self.events[at] = msgspec.structs.replace(event, process=keeper, of=of)
        return self.events[at]

    def _add_notice(self, event: Event) -> None:
        if event.f == Notice.LOST:
            self.holding.lose(event.process, event.key or "", event.time)
        elif event.f == Notice.QUEUED:
            self.queued.append(event)
        elif event.f == Notice.TURN:
            self.turns.append(event)

    def _add_operation(self, operation: Operation) -> None:
        self.operations.append(operation)
        self.holding.add(operation, self._open(operation.owner))

    def _add_stall(self, event: Event) -> None:
        if not isinstance(event.value, int | float) or not 0 <= event.value < LONGEST_MS:
            raise self._error("a stall without its length in ms")
        length_ns = int(event.value * NS_PER_MS)
        stall = Stall(event.node or "", event.time - length_ns, event.time)
        (self._waits if event.error == WAITED else self.stalls).append(stall)

    def _stalls(self) -> Iterable[Stall]:
        """The machine's stalls; waiting for a storage that a fault cut off or slowed is none."""
        yield from self.stalls
        faults = self.faults.spans()
        delaying = [fault for fault in faults if fault.effect in (Effect.CUTS, Effect.SLOWS)]
        for wait in self._waits:
            if not any(fault.touches(wait.start_ns, wait.end_ns) for fault in delaying):
                yield wait

    def _add_ledger_entry(self, event: Event) -> None:
        if event.seq is None or event.of is None:
            raise self._error("a ledger entry of the storage without `seq` and `of`")
        if (event.key, event.seq) in self.numbers:
            raise self._error(f"the storage's ledger has number {event.seq} of {event.key!r} twice")
        self.numbers.add((event.key, event.seq))
        self.ledger.append(
            LedgerEntry(
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
