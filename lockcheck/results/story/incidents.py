"""Which findings belong together: a late client meets many, and that is one incident."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from lockcheck.checker.finding import Code, Finding, Verdict
from lockcheck.history import F, Hold, Operation

Identity = tuple[int | str, int]  # of an operation or a hold: its process and its start


def hold_identity(hold: Hold) -> Identity:
    return hold.process, hold.start_ns


def operation_identity(operation: Operation) -> Identity:
    return operation.process, operation.start_ns


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings with one cause: a holder that was late and all whom it met, and what was written
    meanwhile; or a chain of releases, each of which took away the lock of the next.
    """

    findings: tuple[Finding, ...]

    @property
    def main(self) -> Finding:
        """The one that tells the cause."""
        if self.chained:
            return next(f for f in self.findings if taken_by(f) is not None)
        own = [f for f in self.of(Code.OVERLAP) if taken_by(f) is None]
        return next(iter(own or self.of(Code.OVERLAP)), self.findings[0])

    @property
    def chained(self) -> bool:
        """It is about releases; a single one at the end of a late hold is but a part of that."""
        return len(self.takings) > 1 or taken_by(self.findings[0]) is not None

    @property
    def key(self) -> str:
        return self.findings[0].key

    @property
    def start_ns(self) -> int:
        return min(f.time_ns for f in self.findings)

    @property
    def effect(self) -> Verdict:
        return Verdict.merge(f.effect for f in self.findings)

    @property
    def holds(self) -> tuple[Hold, ...]:
        found = {hold_identity(h): h for f in self.findings for h in f.holds}
        return tuple(sorted(found.values(), key=lambda hold: hold.start_ns))

    @property
    def rivals(self) -> tuple[Hold, ...]:
        """Those who held the lock while the first holder of the incident still did."""
        first = self.main.holds[:1]
        overlaps = [f for f in self.of(Code.OVERLAP) if f.holds[:1] == first]
        found = {hold_identity(h): h for f in overlaps for h in f.holds[1:]}
        return tuple(sorted(found.values(), key=lambda hold: hold.start_ns))

    @property
    def takings(self) -> tuple[Operation, ...]:
        """The releases that took away somebody else's lock."""
        found = (taken_by(f) for f in self.findings)
        distinct = {operation_identity(o): o for o in found if o is not None}
        return tuple(sorted(distinct.values(), key=lambda o: o.start_ns))

    @property
    def guest(self) -> Hold | None:
        """Who was let in first because a release took the lock away."""
        thirds = [f.holds[2:3] for f in self.of(Code.FOREIGN_RELEASE)]
        thirds += [f.holds[1:2] for f in self.of(Code.OVERLAP) if taken_by(f) is not None]
        found = (third[0] for third in thirds if third)
        return min(found, key=lambda hold: hold.start_ns, default=None)

    def of(self, code: Code) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.code is code)


@dataclass(frozen=True, slots=True)
class Loss:
    """A write that was built on an old value, and the writes that are gone because of it."""

    overwriting: Operation
    lost: tuple[Operation, ...]

    @property
    def acknowledged(self) -> bool:
        return all(write.ok for write in self.lost)


def guilty_writes(finding: Finding) -> list[Operation]:
    """Of the writes in evidence those at fault: the earlier holder's, else the last."""
    writes = [o for o in finding.operations if o.f == F.WRITE]
    if finding.code is Code.STALE_WRITE and finding.holds:
        own = [o for o in writes if o.process == finding.holds[0].process]
        return own or writes[-1:]
    return writes[-1:]


def stale_writes(findings: Iterable[Finding]) -> frozenset[Identity]:
    """The writes that the storage accepted from somebody who was no longer the holder."""
    return frozenset(operation_identity(write) for write in _stale(findings))


def stale_in_order(findings: Iterable[Finding]) -> tuple[Operation, ...]:
    distinct = {operation_identity(write): write for write in _stale(findings)}
    return tuple(sorted(distinct.values(), key=lambda write: write.start_ns))


def _stale(findings: Iterable[Finding]) -> list[Operation]:
    stale = (f for f in findings if f.code is Code.STALE_WRITE)
    return [write for finding in stale for write in guilty_writes(finding)]


def losses(findings: Iterable[Finding]) -> tuple[Loss, ...]:
    """Lost updates by the write that overwrote them."""
    by_cause: dict[Identity, tuple[Operation, list[Operation]]] = {}
    for finding in findings:
        if finding.code is not Code.LOST_UPDATE:
            continue
        writes = [o for o in finding.operations if o.f == F.WRITE]
        if writes:
            cause = operation_identity(writes[-1])
            by_cause.setdefault(cause, (writes[-1], []))[1].extend(writes[:-1])
    found = (Loss(overwriting, tuple(lost)) for overwriting, lost in by_cause.values())
    return tuple(sorted(found, key=lambda loss: loss.overwriting.start_ns))


def taken_by(finding: Finding) -> Operation | None:
    """The release that took the lock away from somebody else."""
    if finding.blame.release is not None:
        return finding.blame.release
    releases = (o for o in finding.operations if o.f == F.RELEASE)
    return next(releases, None) if finding.code is Code.FOREIGN_RELEASE else None


def most_at_once(holds: Iterable[Hold]) -> int:
    """How many held the lock at the same time, at the worst moment."""
    edges = [edge for h in holds for edge in ((h.start_ns, 1), (h.end_ns, -1))]
    most = now = 0
    for _, change in sorted(edges):
        now += change
        most = max(most, now)
    return most


# --- what belongs together --------------------------------------------------------------------


def incidents(findings: Iterable[Finding]) -> tuple[Incident, ...]:
    """Findings that share a cause read as one."""
    every = tuple(findings)
    causes = [_causes(finding) for finding in every]
    joined = _Joined()
    for group in causes:
        for cause in group:
            joined.join(group[0], cause)
    groups: dict[Hashable, list[Finding]] = {}
    for finding, group in zip(every, causes, strict=True):
        groups.setdefault(joined.head(group[0]), []).append(finding)
    return tuple(Incident(tuple(group)) for group in groups.values())


def worst_first(found: Iterable[Incident]) -> tuple[Incident, ...]:
    """What counts comes first; in the order of time where it counts the same."""
    rank = list(Verdict)
    return tuple(sorted(found, key=lambda incident: -rank.index(incident.effect)))


def _causes(finding: Finding) -> list[Hashable]:
    """The late holder; or the release that took a lock away, who sent it, and who was robbed by
    it: whoever is robbed will take away the next one's lock with its own release.
    """
    release, key = taken_by(finding), finding.key
    if release is not None:
        parties = finding.holds[:2] if finding.code is Code.FOREIGN_RELEASE else finding.holds[:1]
        by = finding.blame.released_by
        known = [*parties, *([by] if by else [])]
        owners: list[Hashable] = [(key, "hold", hold_identity(hold)) for hold in known]
        return [(key, "release", operation_identity(release)), *owners]
    if finding.holds:
        return [(key, "hold", hold_identity(finding.holds[0]))]
    return [(key, finding.time_ns)]


class _Joined:
    """Union-find: what is joined has the same head."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}

    def head(self, item: Hashable) -> Hashable:
        path = []
        while (above := self._above.setdefault(item, item)) != item:
            path.append(item)
            item = above
        for passed in path:
            self._above[passed] = item
        return item

    def join(self, one: Hashable, other: Hashable) -> None:
        self._above[self.head(other)] = self.head(one)
