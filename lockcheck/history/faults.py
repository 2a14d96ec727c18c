"""Assembles faults from the nemesis's events."""

from __future__ import annotations

from dataclasses import replace

from lockcheck.history.event import Event, EventType, Notice
from lockcheck.history.model import FaultSpan
from lockcheck.history.older import effect_of_name


class FaultAssembly:
    """Builds the faults from the nemesis's events, which are added in the order of their times."""

    def __init__(self) -> None:
        self.quiet_ns: int | None = None  # when all faults were healed and clients went on
        self._spans: dict[int, FaultSpan] = {}

    def add(self, event: Event) -> None:
        """Adds an event of the nemesis; raises ValueError if it contradicts the earlier ones."""
        if event.fault is None:  # not about a fault
            if event.f == Notice.QUIET and event.type is EventType.INVOKE:
                self.quiet_ns = event.time
            return
        known = self._spans.get(event.fault)
        if known is None and (event.type is not EventType.INVOKE or event.f == Notice.HEAL):
            raise ValueError(f"fault {event.fault} was never begun")
        span = _begun(event, event.fault) if known is None else _after(known, event)
        self._spans[event.fault] = span

    def spans(self) -> list[FaultSpan]:
        return list(self._spans.values())


def _begun(event: Event, number: int) -> FaultSpan:
    return FaultSpan(
        id=number,
        name=event.f,
        nodes=event.struck,
        effect=event.effect or effect_of_name(event.f),
        start_ns=event.time,
        since_ns=None,
        proven_ns=None,
        healed_ns=None,
        proof="",
        why_unproven="its effect was never proven",
        asked=event.asked or "",
        links=event.links or (),
        waited_for=event.value if isinstance(event.value, str) else "",
    )


def _after(span: FaultSpan, event: Event) -> FaultSpan:
    """The fault after a further event of it."""
    if event.f == Notice.HEAL:
        if event.type is EventType.INVOKE and span.healing_ns is None:
            return replace(span, healing_ns=event.time)
        if event.type is EventType.OK:
            return replace(span, healed_ns=event.time)
        return replace(span, why_unhealed=event.error or span.why_unhealed)
    if event.type is EventType.OK:
        since_ns = span.since_ns
        if event.since is not None:
            since_ns = min(max(event.since, span.start_ns), event.time)
        proof = str(event.value or "")
        return replace(span, since_ns=since_ns, proven_ns=event.time, proof=proof, why_unproven="")
    if span.proven_ns is not None:
        return span
    return replace(span, why_unproven=event.error or span.why_unproven)
