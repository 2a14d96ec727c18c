"""Builds holds from operations, in the order of the times."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field, replace

from lockcheck.history.clocks import slack_ns
from lockcheck.history.event import NS_PER_MS, Event, F, Terms
from lockcheck.history.model import Ending, Hold, Operation, believed_until_ns, promised_until_ns


@dataclass(slots=True, eq=False)
class OpenHold:
    """A hold that may still be going on."""

    acquire: Operation
    renewals: list[Operation] = field(default_factory=list)
    entered: int = 1  # grants not yet released: several for a reentrant lock
    deepest: int = 1
    closed: Hold | None = None  # once it has ended

    def enter_again(self) -> None:
        self.entered += 1
        self.deepest = max(self.deepest, self.entered)

    def began_by(self, time_ns: int) -> bool:
        return self.acquire.answer is not None and self.acquire.answer.time <= time_ns


@dataclass(slots=True)
class Holding:
    """Collects holds: `add` operations in the order of their answers, then `settle`."""

    terms: Terms
    holds: list[Hold] = field(default_factory=list)
    seen_ns: dict[int | str, int] = field(default_factory=dict)  # the last event of each process
    seen_on_key_ns: dict[tuple[int | str, str], int] = field(default_factory=dict)  # and key
    worked_ns: dict[int | str, int] = field(default_factory=dict)  # its last work under a lock
    held: dict[tuple[int | str, str], OpenHold] = field(default_factory=dict)
    _foreign_releases_ns: dict[str, list[int]] = field(default_factory=dict)  # when invoked, by key
    _unsure: set[tuple[int | str, str]] = field(default_factory=set)  # may release without a hold

    def settle(self) -> None:
        """Ends the holds that are still open, and sorts all of them."""
        for process, key in list(self.held):
            self.give_up(process, key, self.seen_ns[process])
        self.holds = [
            self._cut_at_foreign_release(self.cut_at_last_event(hold)) for hold in self.holds
        ]
        self.holds.sort(key=lambda hold: hold.start_ns)

    def lose(self, process: int | str, key: str, time_ns: int) -> None:
        self._close(process, key, time_ns, Ending.LOST, None)

    def add(self, operation: Operation, under_way: Event | None) -> None:
        """Adds the next operation by answer time; `under_way` is the owner's open operation."""
        process = operation.process
        held = self.held.get((process, operation.key))
        if operation.f == F.RENEW:
            self._renew(operation, under_way)
        elif operation.f == F.ACQUIRE and operation.ok:
            if held is not None:
                held.enter_again()
            else:
                self.held[process, operation.key] = OpenHold(operation)
        elif operation.f == F.RELEASE and held is not None:
            held.entered -= 1
            if held.entered == 0:
                self._close(process, operation.key, operation.start_ns, Ending.RELEASED, operation)
        elif self._may_be_foreign(operation):
            insort(self._foreign_releases_ns.setdefault(operation.key, []), operation.start_ns)
        if self.terms.partial and operation.f in (F.ACQUIRE, F.RELEASE):
            self._note_unsure(operation, its_own=held is not None or operation.f == F.ACQUIRE)

    def _may_be_foreign(self, release: Operation) -> bool:
        """Whether this release may have ended another client's hold: its own holds nothing."""
        may_end = release.f == F.RELEASE and not release.failed and self.terms.released_by_anyone
        return may_end and (release.process, release.key) not in self._unsure

    def _note_unsure(self, operation: Operation, *, its_own: bool) -> None:
        """Remembers clients without an answer: they may release again, or what they may hold."""
        whose = operation.process, operation.key
        if not operation.unknown:
            self._unsure.discard(whose)
        elif its_own:
            self._unsure.add(whose)

    def _renew(self, renewal: Operation, under_way: Event | None) -> None:
        """Applies a renewal to the hold that was open when it was invoked: its client may have
        released the lock and acquired it again since."""
        held = self.held.get((renewal.owner, renewal.key))
        if held is None or not held.began_by(renewal.start_ns):
            return
        leaving = under_way if held.entered == 1 else None
        if leaving is None or leaving.f != F.RELEASE or (leaving.key or "") != renewal.key:
            leaving = None
        elif renewal.start_ns >= leaving.time:
            return  # its client was releasing already
        held.renewals.append(renewal)
        if renewal.failed and renewal.answer is not None and leaving is None:
            self.lose(renewal.owner, renewal.key, renewal.answer.time)

    def cut_at_last_event(self, hold: Hold) -> Hold:
        """The hold up to its client's own last event: a keeper's are no sign of its life."""
        seen_ns = max(hold.start_ns, self.seen_ns.get(hold.process, hold.end_ns))
        if hold.end_ns <= seen_ns:
            return hold
        return replace(hold, end_ns=seen_ns, ending=Ending.LAST_SEEN)

    def _cut_at_foreign_release(self, hold: Hold) -> Hold:
        """The hold up to the first release by a client that held nothing. Whose hold such a release
        ended is unknown, so every hold that was asked for before is uncertain after it."""
        released = self._foreign_releases_ns.get(hold.key, [])
        first = bisect_right(released, hold.acquire.start_ns)
        if first == len(released) or released[first] >= hold.end_ns:
            return hold
        end_ns = max(released[first], hold.start_ns)
        return replace(hold, end_ns=end_ns, ending=Ending.RELEASED, release=None)

    def _close(
        self, process: int | str, key: str, end_ns: int, ending: Ending, release: Operation | None
    ) -> None:
        held = self.held.pop((process, key), None)
        if held is None:
            return  # notified of the loss twice, or releasing what it knows to be lost
        held.closed = self._ended(held, end_ns, ending, release)
        self.holds.append(held.closed)

    def by_now(self, held: OpenHold) -> Hold:
        """The hold if no more events came."""
        if held.closed is not None:
            return held.closed
        return self._ended(held, self.seen_ns[held.acquire.process], Ending.LAST_SEEN, None)

    def _ended(
        self, held: OpenHold, end_ns: int, ending: Ending, release: Operation | None
    ) -> Hold:
        acquire, renewals, deepest = held.acquire, tuple(held.renewals), held.deepest
        whose = acquire.key, acquire.process, acquire.node
        hold = Hold(*whose, acquire, end_ns, ending, release, renewals, deepest)
        return self._cut_at_validity(hold)

    def give_up(self, process: int | str, key: str, seen_ns: int) -> None:
        """Ends the hold of a client that may have crashed and come back under the same name: what
        it does on other keys then proves nothing about this hold."""
        held = self.held.get((process, key))
        if held is None:
            return
        end_ns = seen_ns
        if self.terms.partial:
            seen_on_key_ns = self.seen_on_key_ns[process, key]
            end_ns = min(seen_ns, max(seen_on_key_ns, self._sure_ns(held) or seen_on_key_ns))
        self._close(process, key, end_ns, Ending.LAST_SEEN, None)

    def _sure_ns(self, held: OpenHold) -> int | None:
        """Until when it was promised, whatever the clocks did; None: it has no lease."""
        acquire, default_ms = held.acquire, self.terms.ttl_ms
        until_ns = promised_until_ns(acquire, held.renewals, default_ms)
        if until_ns is None:
            return None
        lease_ns = (acquire.invoke.ttl_ms or default_ms or 0) * NS_PER_MS
        request_ns = acquire.last_ns - acquire.start_ns
        return until_ns - slack_ns(lease_ns, request_ns, self.terms)

    def _cut_at_validity(self, hold: Hold) -> Hold:
        if not self.terms.check_validity:
            return hold
        until_ns = believed_until_ns(hold, self.terms)
        if (
            until_ns is not None and self.terms.own_lease_clock
        ):  # a client that works relies on its hold
            until_ns = max(until_ns, self.worked_ns.get(hold.process, until_ns))
        if until_ns is None or until_ns >= hold.end_ns:
            return hold
        return replace(hold, end_ns=until_ns, ending=Ending.EXPIRED)
