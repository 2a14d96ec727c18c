"""A history as a whole, and how it is put together from its events, in the order of their times."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

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
from lockcheck.history.files import Position, read_events
from lockcheck.history.given_up import given_up
from lockcheck.history.model import (
    LONGEST_MS,
    Ending,
    FaultSpan,
    Hold,
    LedgerEntry,
    Operation,
    Stall,
    believed_until_ns,
    promised_until_ns,
)
from lockcheck.history.older import completed, effect_of_name

if TYPE_CHECKING:  # columns take numpy, which clients of a run do without
    from lockcheck.history.table import Table


@dataclass(frozen=True)
class History:
    terms: Terms
    events: tuple[Event, ...]
    operations: tuple[Operation, ...]
    holds: tuple[Hold, ...]
    faults: tuple[FaultSpan, ...]
    stalls: tuple[Stall, ...]
    clock_steps: tuple[Event, ...]
    clocks: tuple[Event, ...]
    ledger: tuple[LedgerEntry, ...]
    queued: tuple[Event, ...] = ()  # clients that were told that they have their place
    quiet_ns: int | None = None  # when the last fault had been healed, and clients went on
    known_clients: frozenset[str] = frozenset()  # of a part of a history, those of all of it
    known_table: Table | None = field(default=None, compare=False)  # where it was made before

    @cached_property
    def clients(self) -> frozenset[str]:
        """The nodes of those who did anything."""
        return self.known_clients or frozenset(operation.node for operation in self.operations)

    @property
    def end_ns(self) -> int:
        return self.events[-1].time if self.events else 0

    @cached_property
    def table(self) -> Table:
        """The same operations as columns, row by row."""
        from lockcheck.history.table import Table

        return self.known_table or Table.of(self.operations)

    @staticmethod
    def of(
        events: Iterable[Event],
        *,
        source: str = "history",
        place: Position | None = None,
        terms: Terms | None = None,
    ) -> History:
        """With the `place` that the reader of the events moves on, errors name its line. With
        `terms` it is understood by them, whatever its own are."""
        assembly = _Assembly(source, place)
        if terms is not None:
            assembly.terms, assembly.terms_are_given = terms, True
        history = assembly.all_of(events)
        if not (history.terms.partial and history.terms.reentrant):
            return history
        again = _Assembly(source, given_up=given_up(history.operations))
        again.terms, again.terms_are_given = history.terms, True
        return again.all_of(history.events)


def read_history(path: Path) -> History:
    place = Position()
    return History.of(read_events(path, place=place), source=str(path), place=place)


def keeper_of(process: int | str) -> str:
    """What a keeper is called that was logged under the name of its client."""
    return f"{process}/keeper"


@dataclass(slots=True)
class _OpenHold:
    acquire: Operation
    renewals: list[Operation] = field(default_factory=list)
    entered: int = 1  # how many grants have not been released: a reentrant lock's can be many
    deepest: int = 1

    def enter_again(self) -> None:
        self.entered += 1
        self.deepest = max(self.deepest, self.entered)

    def began_by(self, time_ns: int) -> bool:
        return self.acquire.answer is not None and self.acquire.answer.time <= time_ns


@dataclass(slots=True)
class _OpenFault:
    begun: Event
    since_ns: int | None = None
    proven_ns: int | None = None
    proof: str = ""
    why_unproven: str = "its effect was never proven"
    healing_ns: int | None = None
    healed_ns: int | None = None


@dataclass(slots=True)
class _Assembly:
    """Reads events in the order of their times and builds what they mean."""

    source: str
    place: Position | None = None
    given_up: frozenset[int] = frozenset()  # ids of asks for what can be entered again
    terms: Terms = field(default_factory=Terms)
    terms_are_given: bool = False
    events: list[Event] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    _waits: list[Stall] = field(default_factory=list)
    clock_steps: list[Event] = field(default_factory=list)
    clocks: list[Event] = field(default_factory=list)
    ledger: list[LedgerEntry] = field(default_factory=list)
    numbers: set[tuple[str | None, int]] = field(default_factory=set)  # that the storage told
    queued: list[Event] = field(default_factory=list)
    quiet_ns: int | None = None
    _pending: dict[int | str, int] = field(default_factory=dict)  # where in `events` they began
    _held: dict[tuple[int | str, str], _OpenHold] = field(default_factory=dict)
    _keepers_told: list[int] = field(default_factory=list)  # places of holds that they lost
    _strangers: dict[str, list[int]] = field(default_factory=dict)  # when they asked for releases
    _unsure: set[tuple[int | str, str]] = field(default_factory=set)  # whose release may be none
    _faults: dict[int, _OpenFault] = field(default_factory=dict)
    _last_seen: dict[int | str, int] = field(default_factory=dict)
    _last_told: dict[tuple[int | str, str], int] = field(default_factory=dict)  # of each key
    _acted_ns: dict[int | str, int] = field(default_factory=dict)  # as one who holds a lock does

    def all_of(self, events: Iterable[Event]) -> History:
        for event in events:
            self.add(event)
        return self.finish()

    def add(self, event: Event) -> None:
        if event.process == RUN and event.f == Notice.SEALED:
            return  # of the file, and not of what it tells
        self.events.append(event)  # first, so that an error names the line of this one
        if len(self.events) > 1 and event.time < self.events[-2].time:
            raise self._error("its time is before that of the line above")
        if event.process == NEMESIS:
            self._add_fault(event)
        elif event.process == STORAGE:
            self._add_ledger_entry(event)
        elif event.f == Notice.TERMS:
            self._set_terms(event)
        elif event.f == Notice.CLOCK_STEP:
            self.clock_steps.append(event)
        elif event.f == Notice.CLOCKS:
            self.clocks.append(event)
        else:
            self._add_of_client(event)
            if event.type is not EventType.INFO:  # it may have been given up for its client
                self._last_told[event.process, event.key or ""] = event.time

    def finish(self) -> History:
        for begun in self._pending.values():
            self._add_operation(Operation(self.events[begun], None))
        for process, key in list(self._held):
            self._close_unreleased(process, key, self._last_seen[process])
        for place in self._keepers_told:
            self.holds[place] = self._seen_until_told(self.holds[place])
        self.holds = [self._given_up(hold) for hold in self.holds]
        invoked = {id(event): number for number, event in enumerate(self.events)}
        self.operations.sort(key=lambda operation: invoked[id(operation.invoke)])
        self.holds.sort(key=lambda hold: hold.start_ns)
        faults = tuple(self._fault_spans())
        return History(
            terms=self.terms,
            events=tuple(self.events),
            operations=tuple(self.operations),
            holds=tuple(self.holds),
            faults=faults,
            stalls=tuple(sorted(self._stalls(faults), key=lambda stall: stall.end_ns)),
            clock_steps=tuple(self.clock_steps),
            clocks=tuple(self.clocks),
            ledger=tuple(self.ledger),
            queued=tuple(self.queued),
            quiet_ns=self.quiet_ns,
        )

    def _error(self, reason: str) -> HistoryError:
        line = self.place.line if self.place else len(self.events)
        return HistoryError(reason, source=self.source, line=max(1, line))

    def _set_terms(self, event: Event) -> None:
        if self.terms_are_given:
            return
        try:
            self.terms = completed(msgspec.convert(event.value, Terms))
        except msgspec.ValidationError as error:
            raise self._error(f"invalid terms of the run: {error}") from error

    # --- clients ---------------------------------------------------------------------------

    def _add_of_client(self, event: Event) -> None:
        if event.f == Notice.STALL:
            self._add_stall(event)
            return  # written by the client's ticker: no sign of what the process itself does
        event = self._told_apart(event)
        process = event.process
        seen_before_ns = self._last_seen.get(process, event.time)
        self._last_seen[process] = event.time
        if event.type is EventType.INVOKE:
            if process in self._pending:
                raise self._error(f"process {process} has an open operation already")
            self._pending[process] = len(self.events) - 1
            if event.f not in (F.ACQUIRE, F.RELEASE):
                self._acted_ns[process] = event.time
            if event.f == F.ACQUIRE and (not self.terms.reentrant or id(event) in self.given_up):
                # It asks although it never released: it had given up, nobody knows when.
                self._close_unreleased(process, event.key or "", seen_before_ns)
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

    def _told_apart(self, event: Event) -> Event:
        """A renewal that is under way together with something else of its process is its keeper's,
        who was logged under its client's name: it gets a name of its own."""
        process, is_renewal = event.process, event.f == F.RENEW
        own = self._open(process)
        if event.type is not EventType.INVOKE:
            if not is_renewal or (own is not None and own.f == F.RENEW):
                return event
            return self._handed_over(-1) if keeper_of(process) in self._pending else event
        if own is None or is_renewal == (own.f == F.RENEW):
            return event
        if is_renewal:
            return self._handed_over(-1)
        if keeper_of(process) not in self._pending:
            begun = self._pending.pop(process)
            self._pending[self._handed_over(begun).process] = begun
        return event

    def _handed_over(self, at: int) -> Event:
        said = self.events[at]
        of = said.process if said.of is None else said.of
        keeper = keeper_of(said.process)
        self.events[at] = msgspec.structs.replace(said, process=keeper, of=of)
        return self.events[at]

    def _add_notice(self, event: Event) -> None:
        if event.f == Notice.LOST:
            self._close(event.process, event.key or "", event.time, Ending.LOST, None)
        elif event.f == Notice.QUEUED:
            self.queued.append(event)

    def _add_operation(self, operation: Operation) -> None:
        self.operations.append(operation)
        process = operation.process
        held = self._held.get((process, operation.key))
        if operation.f == F.RENEW:
            self._renew(operation)
        elif operation.f == F.ACQUIRE and operation.ok:
            if held is not None:
                held.enter_again()
            else:
                self._held[process, operation.key] = _OpenHold(operation)
        elif operation.f == F.RELEASE and held is not None:
            held.entered -= 1
            if held.entered == 0:
                self._close(process, operation.key, operation.start_ns, Ending.RELEASED, operation)
        elif self._is_a_strangers(operation):
            insort(self._strangers.setdefault(operation.key, []), operation.start_ns)
        if self.terms.partial and operation.f in (F.ACQUIRE, F.RELEASE):
            self._note_unsure(operation, its_own=held is not None or operation.f == F.ACQUIRE)

    def _is_a_strangers(self, release: Operation) -> bool:
        """Its client holds nothing: so it is somebody else's hold that it may end."""
        may_end = release.f == F.RELEASE and not release.failed and self.terms.released_by_anyone
        return may_end and (release.process, release.key) not in self._unsure

    def _note_unsure(self, operation: Operation, *, its_own: bool) -> None:
        """Who is not answered releases what it had asked for once more, or to be sure."""
        whose = operation.process, operation.key
        if not operation.unknown:
            self._unsure.discard(whose)
        elif its_own:
            self._unsure.add(whose)

    def _renew(self, renewal: Operation) -> None:
        """It is about the hold that there was when it was asked for: what a keeper still has under
        way when its client has let go, and is granted the lock again, says nothing of that."""
        held = self._held.get((renewal.owner, renewal.key))
        if held is None or not held.began_by(renewal.start_ns):
            return
        leaving = self._open(renewal.owner) if held.entered == 1 else None
        if leaving is None or leaving.f != F.RELEASE or (leaving.key or "") != renewal.key:
            leaving = None
        elif renewal.start_ns >= leaving.time:
            return  # its client had let go already
        held.renewals.append(renewal)
        if renewal.failed and renewal.answer is not None and leaving is None:
            self._close(renewal.owner, renewal.key, renewal.answer.time, Ending.LOST, None)
            if renewal.process != renewal.owner:
                self._keepers_told.append(len(self.holds) - 1)

    def _seen_until_told(self, hold: Hold) -> Hold:
        """What a keeper is told is no sign of life of its client, who may have ended before."""
        seen_ns = max(hold.start_ns, self._last_seen[hold.process])
        if hold.end_ns <= seen_ns:
            return hold
        return replace(hold, end_ns=seen_ns, ending=Ending.LAST_SEEN)

    def _given_up(self, hold: Hold) -> Hold:
        """By the release of somebody who held nothing: nobody knows whose hold it ended, so none
        that had been asked for by then is certain after it."""
        released = self._strangers.get(hold.key, [])
        first = bisect_right(released, hold.acquire.start_ns)
        if first == len(released) or released[first] >= hold.end_ns:
            return hold
        end_ns = max(released[first], hold.start_ns)
        return replace(hold, end_ns=end_ns, ending=Ending.RELEASED, release=None)

    def _close(
        self, process: int | str, key: str, end_ns: int, ending: Ending, release: Operation | None
    ) -> None:
        held = self._held.pop((process, key), None)
        if held is None:
            return  # told twice that it lost it, or releasing what it was told it had lost
        renewals = tuple(held.renewals)
        acquire, node = held.acquire, held.acquire.node
        hold = Hold(key, process, node, acquire, end_ns, ending, release, renewals, held.deepest)
        self.holds.append(self._cut_at_validity(hold))

    def _close_unreleased(self, process: int | str, key: str, seen_ns: int) -> None:
        """It may have crashed, and come back under its name: a log of somebody's day does not say
        so, and then what it does elsewhere says nothing of what it held here."""
        held = self._held.get((process, key))
        if held is None:
            return
        end_ns = seen_ns
        if self.terms.partial:
            told_ns = self._last_told[process, key]
            promised_ns = promised_until_ns(held.acquire, held.renewals, self.terms.ttl_ms)
            end_ns = min(seen_ns, max(told_ns, promised_ns or told_ns))
        self._close(process, key, end_ns, Ending.LAST_SEEN, None)

    def _cut_at_validity(self, hold: Hold) -> Hold:
        if not self.terms.honours_validity:
            return hold
        until_ns = believed_until_ns(hold, self.terms)
        if until_ns is not None and self.terms.own_clocks:  # who acts believes, by its own clock
            until_ns = max(until_ns, self._acted_ns.get(hold.process, until_ns))
        if until_ns is None or until_ns >= hold.end_ns:
            return hold
        return replace(hold, end_ns=until_ns, ending=Ending.EXPIRED)

    def _add_stall(self, event: Event) -> None:
        if not isinstance(event.value, int | float) or not 0 <= event.value < LONGEST_MS:
            raise self._error("a stall without its length in ms")
        length_ns = int(event.value * NS_PER_MS)
        stall = Stall(event.node or "", event.time - length_ns, event.time)
        (self._waits if event.error == WAITED else self.stalls).append(stall)

    def _stalls(self, faults: Iterable[FaultSpan]) -> Iterable[Stall]:
        """The machine's. Who was cut off from the storage waits for it, and no machine stalls."""
        yield from self.stalls
        keeping = [fault for fault in faults if fault.effect in (Effect.CUTS, Effect.SLOWS)]
        for wait in self._waits:
            if not any(fault.touches(wait.start_ns, wait.end_ns) for fault in keeping):
                yield wait

    # --- nemesis and storage ---------------------------------------------------------------

    def _add_fault(self, event: Event) -> None:
        if event.fault is None:  # the nemesis says something that is no fault
            if event.f == Notice.QUIET and event.type is EventType.INVOKE:
                self.quiet_ns = event.time
            return
        known = self._faults.get(event.fault)
        if known is None:
            if event.type is not EventType.INVOKE or event.f == Notice.HEAL:
                raise self._error(f"fault {event.fault} was never begun")
            self._faults[event.fault] = _OpenFault(event)
        elif event.f == Notice.HEAL:
            if event.type is EventType.INVOKE and known.healing_ns is None:
                known.healing_ns = event.time
            if event.type is EventType.OK:
                known.healed_ns = event.time
        elif event.type is EventType.OK:
            known.proven_ns, known.proof = event.time, str(event.value or "")
            if event.since is not None:
                known.since_ns = min(max(event.since, known.begun.time), event.time)
        else:
            known.why_unproven = event.error or known.why_unproven

    def _fault_spans(self) -> Iterable[FaultSpan]:
        for number, fault in self._faults.items():
            begun = fault.begun
            yield FaultSpan(
                id=number,
                name=begun.f,
                nodes=begun.struck,
                effect=begun.effect or effect_of_name(begun.f),
                start_ns=begun.time,
                since_ns=fault.since_ns,
                proven_ns=fault.proven_ns,
                healed_ns=fault.healed_ns,
                proof=fault.proof,
                why_unproven="" if fault.proven_ns is not None else fault.why_unproven,
                asked=begun.asked or "",
                links=begun.links or (),
                healing_ns=fault.healing_ns,
                waited_for=begun.value if isinstance(begun.value, str) else "",
            )

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
