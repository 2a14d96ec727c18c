"""What the events mean: operations, holds, faults, stalls, and the storage's ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lockcheck.history.event import NS_PER_MS, Effect, Event, EventType, F, Terms

LONGEST_MS = 1e12  # thirty years: a longer time is not a measurement


def name_of(process: object) -> str:
    """As its log calls it; only a bare number says `process`, since it is no name."""
    name = str(process)
    return f"process {name}" if name.isdigit() else name


@dataclass(frozen=True, slots=True)
class Operation:
    """An invocation and, where there was one, its answer."""

    invoke: Event
    answer: Event | None

    @property
    def process(self) -> int | str:
        return self.invoke.process

    @property
    def owner(self) -> int | str:
        """The process whose hold it is about: for a keeper's renewal, or a write that counts only
        when the release is confirmed, that of the client."""
        return self.invoke.process if self.invoke.of is None else self.invoke.of

    @property
    def f(self) -> str:
        return self.invoke.f

    @property
    def key(self) -> str:
        return self.invoke.key or ""

    @property
    def node(self) -> str:
        return self.invoke.node or name_of(self.invoke.process)

    @property
    def start_ns(self) -> int:
        return self.invoke.time

    @property
    def end_ns(self) -> int | None:
        """None if nobody knows when, or whether, it took effect."""
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
    entered: int = 1  # the most levels, of a reentrant lock

    @property
    def start_ns(self) -> int:
        answer = self.acquire.answer
        assert answer is not None  # noqa: S101 - a hold is made of a granted acquire only
        return answer.time

    @property
    def shared(self) -> bool:
        return self.acquire.invoke.shared

    @property
    def token(self) -> int | None:
        return self.acquire.answer.token if self.acquire.answer else None

    def promised_until_ns(
        self,
        default_ttl_ms: int | None,
        *,
        as_of_ns: int | None = None,
        since_ns: int | None = None,
        renewals: Sequence[Operation] | None = None,
    ) -> int | None:
        """As below. With `as_of_ns` only answers up to then count, with `renewals` only these."""
        counted = self.renewals if renewals is None else renewals
        granted = [r for r in counted if _granted_by(r, as_of_ns)]
        return promised_until_ns(self.acquire, granted, default_ttl_ms, since_ns=since_ns)


def promised_until_ns(
    acquire: Operation,
    renewals: Sequence[Operation],
    default_ttl_ms: int | None,
    *,
    since_ns: int | None = None,
) -> int | None:
    """Until when the lease was promised; None: a lock without a lease.

    It runs from an invocation, not from its answer: the server may have begun to count then.
    `since_ns` is a later moment before which the grant cannot have been made.

    A keeper's renewals can be under way together with others: each of them may have been the
    last, and then it came after all the others had been invoked.
    """
    latest_ns = max(acquire.start_ns, since_ns or acquire.start_ns)
    ttl_ms = acquire.invoke.ttl_ms or default_ttl_ms
    granted = [renewal for renewal in renewals if _granted_by(renewal, None)]
    if granted:
        latest_ns = max(latest_ns, *(renewal.start_ns for renewal in granted))
        ttl_ms = _shortest(granted, latest_ns, default_ttl_ms) or ttl_ms
    return latest_ns + ttl_ms * NS_PER_MS if ttl_ms else None


def _granted_by(renewal: Operation, as_of_ns: int | None) -> bool:
    end_ns = renewal.end_ns
    return renewal.ok and end_ns is not None and (as_of_ns is None or end_ns <= as_of_ns)


def _shortest(granted: list[Operation], latest_ns: int, default_ttl_ms: int | None) -> int | None:
    """The lease of the last renewal; the shortest of those that may have been the last."""
    last = (r for r in granted if r.answer is not None and r.answer.time >= latest_ns)
    return min((r.invoke.ttl_ms or default_ttl_ms or 0 for r in last), default=0) or None


def validity_end_ns(granted: Operation, terms: Terms) -> int | None:
    """Until when a client that checks its validity believes in this grant; None: it got none.

    Never longer than the lease: it counts from before the answer was written down, and may have
    stood still in between. Of a lock at which clients wait, it may count from the answer itself.
    """
    answer = granted.answer
    if answer is None or answer.valid_ms is None:
        return None
    valid_ms = max(0.0, min(answer.valid_ms, LONGEST_MS))
    until_ns = answer.time + int(valid_ms * NS_PER_MS)
    ttl_ms = granted.invoke.ttl_ms or terms.ttl_ms
    waited = granted.f == F.ACQUIRE and (terms.session or terms.fair)
    since_ns = answer.time if waited else granted.start_ns
    return min(until_ns, since_ns + ttl_ms * NS_PER_MS) if ttl_ms else until_ns


def believed_until_ns(hold: Hold, terms: Terms) -> int | None:
    """A renewal extends it only when its answer came in time: once the validity is over, such a
    client has stopped, and the hold that it certainly had is over with it.
    """
    until_ns = validity_end_ns(hold.acquire, terms)
    for renewal in hold.renewals:
        extended_ns = validity_end_ns(renewal, terms) if renewal.ok else None
        in_time = until_ns is not None and renewal.answer and renewal.answer.time <= until_ns
        if extended_ns is not None and in_time:
            until_ns = extended_ns
    return until_ns


@dataclass(frozen=True, slots=True)
class FaultSpan:
    """A fault from its beginning to the moment when it was seen to be healed."""

    id: int
    name: str
    nodes: tuple[str, ...]  # empty: it struck no node in particular
    effect: Effect | None  # None: nobody knows what it did
    start_ns: int
    since_ns: int | None  # when it took effect, where the history says so apart from its proof
    proven_ns: int | None
    healed_ns: int | None
    proof: str
    why_unproven: str = ""
    asked: str = ""  # the words that asked for it, where they are known
    links: tuple[tuple[str, str], ...] = ()  # that it cut, where they are known: from whom, to whom
    healing_ns: int | None = None  # when its heal began
    waited_for: str = ""  # when it struck, in words, where that is known: "on write"

    @property
    def where(self) -> str:
        """Its nodes in words; empty: it struck none of them in particular."""
        return ", ".join(self.nodes)

    @property
    def may_have_stood_still(self) -> bool:
        """Its nodes may not have run. Whoever is cut off, slow, or has the wrong time does run."""
        return self.effect in (Effect.STOPS, Effect.ENDS, Effect.STARVES, None)

    @property
    def worked_from_ns(self) -> int:
        """From when on it may have worked."""
        return self.start_ns if self.since_ns is None else self.since_ns

    @property
    def worked_by_ns(self) -> int | None:
        """By when it certainly worked; None: it was never proven."""
        return self.proven_ns if self.since_ns is None else self.since_ns

    def concerns(self, node: str) -> bool:
        """It struck it, or cut a link of its: a cut has two ends."""
        return node in self.nodes or any(node in link for link in self.links)

    def touches(self, start_ns: int, end_ns: int) -> bool:
        healed = self.healed_ns
        return self.start_ns <= end_ns and (healed is None or healed >= start_ns)

    def mending_ns(self, start_ns: int, end_ns: int) -> int:
        """For how long it was being healed then."""
        if self.healing_ns is None:
            return 0
        healed_ns = end_ns if self.healed_ns is None else self.healed_ns
        return max(0, min(end_ns, healed_ns) - max(start_ns, self.healing_ns))

    def keeps_still(self, node: str, start_ns: int, end_ns: int) -> bool:
        """At some time then that node may not have run because of it."""
        return self.may_have_stood_still and node in self.nodes and self.touches(start_ns, end_ns)


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which a client did not run, whether a fault stopped it or not."""

    node: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class LedgerEntry:
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
