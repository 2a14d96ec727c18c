"""Who plays a part in the story of an incident, and who is summed up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from lockcheck.checker.finding import Code
from lockcheck.history import F, Hold, Operation
from lockcheck.results.story.incidents import (
    Identity,
    Incident,
    Loss,
    identity,
)
from lockcheck.results.story.numbers import Numbers
from lockcheck.results.story.wording.codes import by_holds

HOLDS_SHOWN = 4  # of a finding with evidence of its own: a circle has more than two
GUILTY_SHOWN = 2  # of the stale writes, and of those that lost an update
FEW = 2  # others: to sum them up would take as many steps


class Part(IntEnum):
    """A hold's role; higher roles get more steps."""

    EXTRA = 0
    RIVAL = 1
    LEAD = 2


@dataclass(frozen=True, slots=True)
class Cast:
    parts: dict[Identity, Part]  # of the holds that have steps
    shown: tuple[Hold, ...]
    others: tuple[Hold, ...]
    stale: frozenset[Identity]
    losses: dict[Identity, Loss]  # by the write that overwrote
    foreign_releases: frozenset[Identity]
    evidence: tuple[Operation, ...]  # they have steps even where they belong to no hold
    numbers: Numbers

    def part_of(self, hold: Hold) -> Part:
        return self.parts.get(identity(hold), Part.EXTRA)


def cast_of(incident: Incident, numbers: Numbers) -> Cast:
    holds, most = incident.holds, GUILTY_SHOWN
    stale, lost = incident.stale, incident.losses
    guilty = [*stale[:most], *(write for loss in lost[:most] for write in _writes_of(loss))]
    parts = dict(_parts(incident, holds, guilty))
    left = [identity(hold) for hold in holds if identity(hold) not in parts]
    if len(left) <= FEW:
        parts |= dict.fromkeys(left, Part.EXTRA)
    evidence = incident.main.operations if by_holds(incident.main) else ()
    main = [o for o in evidence if o.f in {F.READ, F.WRITE}]
    return Cast(
        parts=parts,
        shown=tuple(h for h in holds if identity(h) in parts),
        others=tuple(h for h in holds if identity(h) not in parts),
        stale=frozenset(identity(write) for write in stale),
        losses={identity(loss.overwriting): loss for loss in lost},
        foreign_releases=frozenset(identity(release) for release in incident.foreign_releases),
        evidence=tuple({identity(o): o for o in (*main, *guilty)}.values()),
        numbers=numbers,
    )


def _writes_of(loss: Loss) -> tuple[Operation, ...]:
    """Of many that were lost it is enough to say how many."""
    return (*(loss.lost if len(loss.lost) == 1 else ()), loss.overwriting)


def _parts(
    incident: Incident, holds: tuple[Hold, ...], guilty: list[Operation]
) -> Iterator[tuple[Identity, Part]]:
    """Later ones overrule earlier ones."""
    for finding in incident.with_evidence:
        yield from ((identity(h), Part.EXTRA) for h in finding.holds[:HOLDS_SHOWN])
    yield from ((identity(h), Part.EXTRA) for h in incident.crowd[:HOLDS_SHOWN])
    for write in guilty:  # in or after the last hold of its client
        own = [h for h in holds if h.process == write.process and h.start_ns <= write.start_ns]
        yield from ((identity(h), Part.EXTRA) for h in own[-1:])
    if incident.chained:
        yield from _releasers(incident)
        return
    rivals = incident.rivals or incident.main.holds[1:2]
    first = incident.main.holds[:1]
    until_ns = min([w.start_ns for w in guilty] or [h.end_ns for h in first], default=0)
    if last := [rival for rival in rivals if rival.start_ns <= until_ns][-1:]:
        yield identity(last[0]), Part.EXTRA
    yield from ((identity(hold), Part.RIVAL) for hold in rivals[:1])
    yield from ((identity(hold), Part.LEAD) for hold in first)


def _releasers(incident: Incident) -> Iterator[tuple[Identity, Part]]:
    main = next(iter(incident.of(Code.FOREIGN_RELEASE)), incident.main)
    by = (main.blame.released_by,) if main.blame.released_by else ()
    for hold in (*main.holds[:3], *([incident.next_holder] if incident.next_holder else [])):
        yield identity(hold), Part.RIVAL
    for hold in by or main.holds[:1]:
        yield identity(hold), Part.LEAD
