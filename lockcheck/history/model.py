"""Operations, holds, faults, stalls and ledger entries: what the events of a history mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from lockcheck.history.event import NS_PER_MS, Effect, Event, EventType, F, Refusal, Terms
from lockcheck.history.older import refusal_in_words, says_blind

LONGEST_MS = 1e12  # about thirty years: a longer time is no measurement


def name_of(process: object) -> str:
    """The process's name for a reader; `process 3` if its name is a bare number."""
    name = str(process)
    return f"process {name}" if name.isdigit() else name


@dataclass(frozen=True, slots=True)
class Operation:
    """An invocation and its answer, if there was one."""

    invoke: Event
    answer: Event | None

    @property
    def process(self) -> int | str:
        return self.invoke.process

    @property
    def owner(self) -> int | str:
        """The process whose hold it concerns: of a keeper's renewal the keeper's client."""
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
        """When the answer arrived; None if it is unknown whether the operation took effect."""
        return None if self.answer is None or self.unknown else self.answer.time

    @property
    def last_ns(self) -> int:
        """The time of its last event: of its answer, or else of its invocation."""
        return self.start_ns if self.answer is None else self.answer.time

    @property
    def ok(self) -> bool:
        return self.answer is not None and self.answer.type is EventType.OK

    @property
    def failed(self) -> bool:
        return self.answer is not None and self.answer.type is EventType.FAIL

    @property
    def unknown(self) -> bool:
        return self.answer is None or self.answer.type is EventType.INFO

    @property
    def refusal(self) -> Refusal | None:
        """Why it failed; None: it did not, or the history does not say why."""
        if self.answer is None or not self.failed:
            return None
        if self.answer.refused is None and self.f == F.ACQUIRE:
            return refusal_in_words(self.answer.error or "")
        return self.answer.refused

    @property
    def blind(self) -> bool:
        """A release that did not check whose lock it removed."""
        if self.f != F.RELEASE or self.answer is None:
            return False
        return self.answer.blind or says_blind(self.answer.value)

    @property
    def unsaid(self) -> bool:
        """A release whose answer does not tell whether the lock was still held."""
        return self.f == F.RELEASE and self.answer is not None and self.answer.unsaid


class Ending(StrEnum):
    """Why a client stopped holding a lock for certain."""

    RELEASED = "released"
    LOST = "lost"  # it was notified of the loss
    EXPIRED = "expired"  # its validity ended by its own clock, and it checks that
    LAST_SEEN = "last-seen"  # it never released: certain only up to its last sign of life


@dataclass(frozen=True, slots=True)
class Hold:
    """A client's hold of a lock, certain from the grant's answer to the end named by `ending`."""

    key: str
    process: int | str
    node: str
    acquire: Operation
    end_ns: int
    ending: Ending
    release: Operation | None
    renewals: tuple[Operation, ...] = ()
    entered: int = 1  # of a reentrant lock: the deepest level reached

    @property
    def start_ns(self) -> int:
        answer = self.acquire.answer
        assert answer is not None  # noqa: S101 - a hold always has a granted acquire
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
        """Like the function, but only answers up to `as_of_ns` and these `renewals` count."""
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
    """Until when the service promised the lease; None for a lock without a lease.

    A lease counts from the invocation, not from the answer: the server may have started counting
    then. `since_ns` is the earliest moment at which the grant can have been made, if that is later.

    A keeper's renewals can overlap each other. Any of them may have been granted last, and then it
    was granted after all others had been invoked.
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
    """The TTL of the last renewal, or the shortest TTL of those that may have been the last."""
    last = (r for r in granted if r.answer is not None and r.answer.time >= latest_ns)
    return min((r.invoke.ttl_ms or default_ttl_ms or 0 for r in last), default=0) or None


def validity_end_ns(granted: Operation, terms: Terms) -> int | None:
    """Until when a client that checks its validity relies on this grant, if that has one: never
    longer than the lease, which counts from the invocation, or where clients wait the answer."""
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
    """Until when the client relied on the hold. A renewal extends it only if its answer came in
    time: when the validity is over, the client has stopped using the lock."""
    until_ns = validity_end_ns(hold.acquire, terms)
    for renewal in hold.renewals:
        extended_ns = validity_end_ns(renewal, terms) if renewal.ok else None
        in_time = until_ns is not None and renewal.answer and renewal.answer.time <= until_ns
        if extended_ns is not None and in_time:
            until_ns = extended_ns
    return until_ns


@dataclass(frozen=True, slots=True)
class FaultSpan:
    """A fault from its injection until it was seen to be healed."""

    id: int
    name: str
    nodes: tuple[str, ...]  # empty: no particular node
    effect: Effect | None  # None: unknown
    start_ns: int
    since_ns: int | None  # when it took effect, if recorded separately from its proof
    proven_ns: int | None
    healed_ns: int | None
    proof: str
    why_unproven: str = ""
    why_unhealed: str = ""  # what its latest heal failed by
    asked: str = ""  # as it was asked for, if known
    links: tuple[tuple[str, str], ...] = ()  # the links that it cut (source, target), if known
    healing_ns: int | None = None  # when its heal began
    waited_for: str = ""  # the moment it was aimed at, if known: "on write"

    @property
    def where(self) -> str:
        """Its nodes, joined by commas; empty if it struck no particular node."""
        return ", ".join(self.nodes)

    @property
    def may_have_stopped_nodes(self) -> bool:
        """Whether its nodes may not have run: cut off, slow or with a wrong clock they do run."""
        return self.effect in (Effect.STOPS, Effect.ENDS, Effect.STARVES, None)

    @property
    def worked_from_ns(self) -> int:
        """The earliest time at which it may have been in effect. Of a node that is ended one
        process dies after the other: it has taken effect when the last of them is gone."""
        gradual = self.effect is Effect.ENDS
        return self.start_ns if self.since_ns is None or gradual else self.since_ns

    @property
    def worked_by_ns(self) -> int | None:
        """The time by which it was certainly in effect; None if it was never proven."""
        return self.proven_ns if self.since_ns is None else self.since_ns

    def concerns(self, node: str) -> bool:
        """Whether it struck the node or cut one of its links; a cut has two ends."""
        return node in self.nodes or any(node in link for link in self.links)

    def touches(self, start_ns: int, end_ns: int) -> bool:
        """Whether it may have been in effect at some time in this interval."""
        healed = self.healed_ns
        return self.start_ns <= end_ns and (healed is None or healed >= start_ns)

    def healing_overlap_ns(self, start_ns: int, end_ns: int) -> int:
        """How much of this interval its heal took."""
        if self.healing_ns is None:
            return 0
        healed_ns = end_ns if self.healed_ns is None else self.healed_ns
        return max(0, min(end_ns, healed_ns) - max(start_ns, self.healing_ns))

    def may_have_stopped(self, node: str, start_ns: int, end_ns: int) -> bool:
        """Whether the node may not have run at some time in this interval because of this fault."""
        return self.may_have_stopped_nodes and node in self.nodes and self.touches(start_ns, end_ns)


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which a client did not run, with or without a fault."""

    node: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One read or write as the storage recorded it."""

    seq: int
    f: str
    key: str
    process: int | str
    accepted: bool
    value: object
    base: object
    token: int | None
    reason: str
