"""Findings with one cause, and what can be asked of them; `grouping` puts them together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from lockcheck.checker.finding import Code, Culprit, Finding, Verdict
from lockcheck.history import Effect, F, FaultSpan, Hold, Operation
from lockcheck.results.story.wording.codes import (
    by_evidence,
    by_holds,
    check_of,
    precedence,
    words_of,
)

T = TypeVar("T", Hold, Operation)
Identity = tuple[int | str, int]  # of an operation or a hold: its process and its start

FINDINGS_SHOWN = 3  # of those in one incident


def identity(of: Hold | Operation) -> Identity:
    return of.process, of.start_ns


def _in_order(found: Iterable[T]) -> tuple[T, ...]:
    """Each once, in the order of their starts."""
    distinct = {identity(each): each for each in found}
    return tuple(sorted(distinct.values(), key=lambda each: each.start_ns))


@dataclass(frozen=True)
class Incident:
    """Findings with one cause, maybe a hundred thousand: a holder that was late and all whom it
    met, and what was written meanwhile; or releases, each of which took the lock of the next."""

    findings: tuple[Finding, ...]

    @cached_property
    def main(self) -> Finding:
        """The one that tells the cause."""
        if self.chained:
            return next(f for f in self.findings if foreign_release_of(f) is not None)
        worst = [f for f in self.findings if f.effect is self.effect]
        if all(map(by_evidence, worst)):
            return max(worst, key=precedence)
        overlaps = self.of(Code.OVERLAP)
        own = [f for f in overlaps if foreign_release_of(f) is None]
        return (own or overlaps or self._findings_with_holds)[0]

    @cached_property
    def chained(self) -> bool:
        """It is about releases; a single one at the end of a late hold is but a part of that."""
        first = (self._findings_with_holds or self.findings)[0]
        return len(self.foreign_releases) > 1 or foreign_release_of(first) is not None

    @property
    def key(self) -> str:
        return self.findings[0].key

    @cached_property
    def start_ns(self) -> int:
        return min(f.time_ns for f in self.findings)

    @cached_property
    def damage_ns(self) -> int:
        """When data was first damaged; where none was, when it began."""
        return min((f.time_ns for f in self.findings if _damages(f)), default=self.start_ns)

    @cached_property
    def effect(self) -> Verdict:
        return Verdict.merge(f.effect for f in self.findings)

    @cached_property
    def holds(self) -> tuple[Hold, ...]:
        return _in_order(hold for f in self.findings for hold in f.holds)

    @cached_property
    def rivals(self) -> tuple[Hold, ...]:
        """The clients that held the lock while the first holder of the incident still did."""
        first = self.main.holds[:1]
        overlaps = [f for f in self.of(Code.OVERLAP) if f.holds[:1] == first]
        return _in_order(hold for f in overlaps for hold in f.holds[1:2])

    @cached_property
    def crowd(self) -> tuple[Hold, ...]:
        """All holders of a semaphore when there was one too many; empty where two are too many."""
        holds = self.main.holds if self.main.code == Code.OVERLAP else ()
        return tuple(sorted(holds, key=lambda hold: hold.start_ns)) if len(holds) > 2 else ()

    @cached_property
    def late(self) -> list[Finding]:
        """Holders that outlived their leases, the first to do so first."""
        return [f for f in self.of(Code.OVERLAP) if f.blame.who is Culprit.HOLDER]

    @cached_property
    def damaged(self) -> bool:
        """What it did is known; of others all that is known is what they could have done."""
        return any(map(_damages, self.findings))

    @cached_property
    def foreign_releases(self) -> tuple[Operation, ...]:
        """The releases that took away another client's lock."""
        return _in_order(filter(None, map(foreign_release_of, self.findings)))

    @cached_property
    def next_holder(self) -> Hold | None:
        """The first hold that was granted because a release took the lock away."""
        thirds = [f.holds[2:3] for f in self.of(Code.FOREIGN_RELEASE)]
        thirds += [f.holds[1:2] for f in self.of(Code.OVERLAP) if foreign_release_of(f) is not None]
        found = (third[0] for third in thirds if third)
        return min(found, key=lambda hold: hold.start_ns, default=None)

    @cached_property
    def stale(self) -> tuple[Operation, ...]:
        """The writes that came too late and were accepted."""
        return _in_order(f.operations[-1] for f in self.of(Code.STALE_WRITE))

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        return losses(self.of(Code.LOST_UPDATE))

    @cached_property
    def with_evidence(self) -> tuple[Finding, ...]:
        """The main one first, where it is one of them; of those that go without saying, one."""
        shown = [self.main, *(same[0] for same in self.by_code.values())]
        found = [
            finding
            for finding in filter(by_evidence, self.findings)
            if not words_of(finding).follows_from_others or any(finding is each for each in shown)
        ]
        return tuple(sorted(found, key=lambda f: f is not self.main)[:FINDINGS_SHOWN])

    @cached_property
    def _findings_with_holds(self) -> tuple[Finding, ...]:
        return tuple(filter(by_holds, self.findings))

    def of(self, code: str) -> tuple[Finding, ...]:
        return tuple(self.by_code.get(code, ()))

    @cached_property
    def by_code(self) -> dict[str, list[Finding]]:
        found: dict[str, list[Finding]] = {}
        for finding in self.findings:
            found.setdefault(finding.code, []).append(finding)
        return found


def _damages(finding: Finding) -> bool:
    return check_of(finding).damages_data and finding.effect is Verdict.VIOLATION


def lease_end_ns(finding: Finding) -> int | None:
    """Of the first holder. If it waited for longer than its lease, all that is known is that the
    lease was over when the next client was let in."""
    until_ns = finding.blame.promised_until_ns
    late = until_ns is not None and len(finding.holds) > 1 and until_ns <= finding.holds[0].start_ns
    return finding.holds[1].start_ns if late else until_ns


def fault_behind(incident: Incident) -> FaultSpan | None:
    """The fault that is to blame; of a wrong release, the one that made its client late."""
    began = incident.late[:1] if incident.foreign_releases else ()
    return next((f.blame.fault for f in (incident.main, *began) if f.blame.fault), None)


def crossed(finding: Finding) -> bool:
    """The second holder had its answer before the first one: which of them was let in first is
    the server's secret."""
    if len(finding.holds) < 2 or finding.blame.promised_until_ns is not None:
        return False
    return finding.holds[1].start_ns < finding.holds[0].start_ns


def begun_in_time(incident: Incident) -> tuple[Operation, ...]:
    """The late writes that its first holder had sent within its lease."""
    until_ns, first = incident.main.blame.promised_until_ns, incident.main.holds[:1]
    late = (write for write in incident.stale if first and write.process == first[0].process)
    return tuple(w for w in late if until_ns is not None and w.start_ns <= until_ns)


def slept(finding: Finding) -> bool:
    """Its holder was stopped, and its lease ran out meanwhile."""
    blame = finding.blame
    if blame.who is not Culprit.HOLDER or blame.fault is None:
        return False
    return blame.fault.effect is Effect.STOPS and finding.holds[0].node in blame.fault.nodes


def evidence_of(incident: Incident) -> tuple[Operation, ...]:
    return _in_order(o for finding in incident.with_evidence for o in finding.operations)


def foreign_releases(incidents: Iterable[Incident]) -> tuple[Operation, ...]:
    """The releases that took away another client's lock, in any of the incidents."""
    return tuple(release for each in incidents for release in each.foreign_releases)


@dataclass(frozen=True, slots=True)
class Loss:
    """A write that was built on an old value, and the writes that are gone because of it."""

    overwriting: Operation
    lost: tuple[Operation, ...]

    @property
    def acknowledged(self) -> bool:
        return all(write.ok for write in self.lost)


def losses(findings: Iterable[Finding]) -> tuple[Loss, ...]:
    """Lost updates, `findings`, by the write that overwrote them."""
    by_cause: dict[Identity, tuple[Operation, list[Operation]]] = {}
    for finding in findings:
        writes = [o for o in finding.operations if o.f == F.WRITE]
        if writes:
            cause = identity(writes[-1])
            by_cause.setdefault(cause, (writes[-1], []))[1].extend(writes[:-1])
    found = (Loss(overwriting, tuple(lost)) for overwriting, lost in by_cause.values())
    return tuple(sorted(found, key=lambda loss: loss.overwriting.start_ns))


def foreign_release_of(finding: Finding) -> Operation | None:
    """The release that took the lock away from another client: it explains what endangers data."""
    if finding.blame.release is not None and check_of(finding).endangers_data:
        return finding.blame.release
    releases = (o for o in finding.operations if o.f == F.RELEASE)
    return next(releases, None) if finding.code == Code.FOREIGN_RELEASE else None
