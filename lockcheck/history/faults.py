"""Assembles faults from the nemesis's events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lockcheck.history.event import Event, EventType, Notice
from lockcheck.history.model import FaultSpan
from lockcheck.history.older import effect_of_name


@dataclass(slots=True)
class _OpenFault:
    begun: Event
    since_ns: int | None = None
    proven_ns: int | None = None
    proof: str = ""
    why_unproven: str = "its effect was never proven"
    healing_ns: int | None = None
    healed_ns: int | None = None


class FaultAssembly:
    """Builds the faults from the nemesis's events, which are added in the order of their times."""

    def __init__(self) -> None:
        self.quiet_ns: int | None = None  # when all faults were healed and clients went on
        self._open: dict[int, _OpenFault] = {}

    def add(self, event: Event) -> None:
        """Adds an event of the nemesis; raises ValueError if it contradicts the earlier ones."""
        if event.fault is None:  # not about a fault
            if event.f == Notice.QUIET and event.type is EventType.INVOKE:
                self.quiet_ns = event.time
            return
        known = self._open.get(event.fault)
        if known is None:
            if event.type is not EventType.INVOKE or event.f == Notice.HEAL:
                raise ValueError(f"fault {event.fault} was never begun")
            self._open[event.fault] = _OpenFault(event)
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

    def spans(self) -> Iterable[FaultSpan]:
        for number, fault in self._open.items():
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
