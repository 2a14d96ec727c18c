"""Which findings have one cause: a late holder that meets many others is one incident."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from lockcheck.checker.finding import Code, Finding, Verdict
from lockcheck.results.story.incidents import Incident, foreign_release_of, identity
from lockcheck.results.story.wording.codes import by_evidence, by_holds

_Shared = Callable[[Finding], list[Hashable]]


def incidents(findings: Iterable[Finding]) -> tuple[Incident, ...]:
    """Findings that share a cause read as one."""
    every = tuple(findings)
    order = {id(finding): number for number, finding in enumerate(every)}
    groups = _grouped(list(filter(by_holds, every)), _causes)
    groups += _grouped(_left_alone(groups, every), _things)
    for group in groups:
        group.sort(key=lambda finding: order[id(finding)])
    groups.sort(key=lambda group: order[id(group[0])])
    return tuple(Incident(tuple(group)) for group in groups)


def worst_first(found: Iterable[Incident]) -> tuple[Incident, ...]:
    """Violations first, then what is unknown; each in the order of time."""
    rank = list(Verdict)
    return tuple(sorted(found, key=lambda incident: -rank.index(incident.effect)))


def _grouped(findings: Sequence[Finding], shared: _Shared) -> list[list[Finding]]:
    causes = [shared(finding) for finding in findings]
    joined = _Joined()
    for group in causes:
        for cause in group:
            joined.join(group[0], cause)
    groups: dict[Hashable, list[Finding]] = {}
    for finding, group in zip(findings, causes, strict=True):
        groups.setdefault(joined.head(group[0]), []).append(finding)
    return list(groups.values())


def _left_alone(groups: list[list[Finding]], findings: Iterable[Finding]) -> list[Finding]:
    """Adds findings to the first group that has a hold or operation of theirs: two that have
    different causes stay apart. Returns the others."""
    at = {thing: group for group in reversed(groups) for f in group for thing in _things(f)}
    alone = []
    for finding in filter(by_evidence, findings):
        group = next((at[thing] for thing in _things(finding) if thing in at), None)
        if group is None:
            alone.append(finding)
        else:
            group.append(finding)
    return alone


def _causes(finding: Finding) -> list[Hashable]:
    """The late holder; or the release of another client's lock, its sender and its victim, whose
    own release may then take away the next holder's lock."""
    release, key = foreign_release_of(finding), finding.key
    if release is not None:
        parties = finding.holds[:2] if finding.code == Code.FOREIGN_RELEASE else finding.holds[:1]
        by = finding.blame.released_by
        known = [*parties, *([by] if by else [])]
        owners: list[Hashable] = [(key, "hold", identity(hold)) for hold in known]
        return [(key, "release", identity(release)), *owners]
    if finding.holds:
        return [(key, "hold", identity(finding.holds[0]))]
    return [(key, finding.time_ns)]


def _things(finding: Finding) -> list[Hashable]:
    """All operations that it is about: of a hold, those that began and ended it."""
    return list(_operations_of(finding)) or [(finding.code, finding.key, finding.time_ns)]


def _operations_of(finding: Finding) -> Iterator[Hashable]:
    for hold in finding.holds:
        yield identity(hold.acquire)
        if hold.release is not None:
            yield identity(hold.release)
    yield from map(identity, finding.operations)
    if (release := foreign_release_of(finding)) is not None:
        yield identity(release)


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
