"""Whether clocks explain what was found: those of several hosts may be some time apart.

Times of different hosts are compared as if their clocks agreed. Where one constant per host makes
all answers fit, nothing is proven. Constants are looked for that everything known so far allows;
the history is judged with the clocks set by them, and what is found then excludes them in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Generic

import numpy as np

from lockcheck.checker.doubt import Ahead, Clocks, Doubt, DoubtCode
from lockcheck.checker.finding import Code, Finding, Judgement, Verdict
from lockcheck.checker.logs.offsets import Choice, Gaps, Search, split
from lockcheck.checker.logs.witnesses import Witnesses, choice_of
from lockcheck.history import Event, History, Notice, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.hosts import Hosts, Past, hosts_of, with_clocks_set
from lockcheck.history.scan import Scan
from lockcheck.history.table import Codes, Ints

FARTHEST_NS = 1_000 * NS_PER_MS  # that clocks are taken to be apart where that is not known
MOST_HOSTS = 100
MOST_TURNS = 24
MOST_ROUNDS = 100
SHARES = (0.5, 0.25, 0.75, 0.1, 0.9)  # of what is possible, where nothing else says what to try


def with_clocks(history: Past, judge: Callable[[Past], Judgement]) -> Judgement:
    """The judgement, after a look at what clocks explain of it."""
    found, terms = judge(history), history.terms
    if found.verdict is not Verdict.VIOLATION or terms.one_clock:
        return found
    hosts = hosts_of(history)
    if not 1 < len(hosts.names) <= MOST_HOSTS or not (hosts.named or terms.clock_error_is_given):
        return found
    known, limit = _limits(terms, hosts)
    witnesses = Witnesses.of(history.table, hosts, terms, _losers(history))
    gaps = witnesses.gaps(np.zeros(len(hosts.names), np.int64), FARTHEST_NS)
    search = _Explaining(history, hosts, judge, witnesses, gaps)
    explained = search.within(limit, found)
    if explained is not None:
        return explained if known else _in_doubt(explained)
    farther = search.within(np.maximum(limit, FARTHEST_NS - 1), found) if known else None
    unexplained = Clocks(None, decided=search.decided)
    return replace(found, clocks=unexplained if farther is None else farther.clocks)


def _limits(terms: Terms, hosts: Hosts) -> tuple[bool, Ints]:
    """Whether it is given how far apart each two clocks may be, and how far: less than the larger
    of what is given for either host."""
    others_ms = terms.clock_error_ms
    of_each = [terms.clock_errors_ms.get(name, others_ms) for name in hosts.names]
    known = [FARTHEST_NS if ms is None else round(ms * NS_PER_MS) for ms in of_each]
    limit = np.maximum.outer(known, known) - 1
    return None not in of_each, np.where(np.eye(len(known)) == 1, 0, np.maximum(0, limit))


def _in_doubt(explained: Judgement) -> Judgement:
    doubt = Doubt(DoubtCode.CLOCKS_APART, clocks=explained.clocks)
    verdict = Verdict.merge([explained.verdict, Verdict.UNKNOWN])
    return replace(explained, verdict=verdict, doubts=(doubt, *explained.doubts))


@dataclass(slots=True)
class _Explaining(Generic[Past]):
    history: Past
    hosts: Hosts
    judge: Callable[[Past], Judgement]
    witnesses: Witnesses
    gaps: Gaps  # between holds, so far
    sure: dict[Choice, None] = field(default_factory=dict)  # of the findings so far
    likely: dict[Choice, None] = field(default_factory=dict)  # of those that no order explains
    decided: bool = True

    def within(self, limit: Ints, found: Judgement) -> Judgement | None:
        """The judgement with clocks that far apart, if that leaves no violation."""
        judgement, offsets = found, np.zeros(len(self.hosts.names), np.int64)
        tried, shares = {offsets.tobytes()}, [*SHARES]
        for _ in range(MOST_TURNS):
            if not self._learn(judgement.findings, offsets):
                return None
            next_ns = self._nearest({**self.sure, **self.likely}, None, limit)
            while next_ns is None or next_ns.tobytes() in tried:
                if not shares or (next_ns is None and not self.likely):
                    return None
                next_ns = self._nearest(self.sure, shares.pop(0), limit)
            offsets = next_ns
            tried.add(offsets.tobytes())
            later_ns = dict(zip(self.hosts.names, offsets.tolist(), strict=True))
            judgement = self.judge(with_clocks_set(self.history, later_ns))
            if judgement.verdict is not Verdict.VIOLATION:
                bounds = self._search(self.sure, None).around(offsets, limit)
                return replace(judgement, clocks=self._clocks(offsets, bounds))
        return None

    def _search(self, choices: Iterable[Choice], share: float | None) -> Search:
        gaps, others = split(choices)
        return Search(self.gaps.and_these(gaps), others, share)

    def _nearest(self, choices: Iterable[Choice], share: float | None, limit: Ints) -> Ints | None:
        """Offsets with which no two holds exclude each other."""
        for _ in range(MOST_ROUNDS):
            search = self._search(choices, share)
            found = search.nearest(limit)
            self.decided = found is not None or search.left > 0
            if found is None:
                return None
            self.gaps = self.gaps.and_these(self.witnesses.gaps(found, int(limit.max())))
            if not self.gaps.exclude(found):
                return found
        return None

    def _learn(self, findings: tuple[Finding, ...], offsets: Ints) -> bool:
        """False: one of them has no way out. That no order explains the answers about an object
        adds nothing to what else was found about it."""
        host = {name: at for at, name in enumerate(self.hosts.names)}
        accusing = [finding for finding in findings if finding.effect is Verdict.VIOLATION]
        elsewhere = {finding.key for finding in accusing if finding.proof is None}
        for finding in accusing:
            if finding.proof is not None and finding.key in elsewhere:
                continue
            choice = choice_of(finding, host, self.history.terms)
            if not choice and finding.proof is None:
                return False
            if choice:
                moved = ((a, b, int(most + offsets[a] - offsets[b])) for a, b, most in choice)
                which = self.sure if finding.code == Code.OVERLAP else self.likely
                which[tuple(moved)] = None
        return True

    def _clocks(self, offsets: Ints, most: Ints) -> Clocks:
        """How far clocks are certainly ahead of the one with which most agree."""
        certain = np.minimum(most, most.T) < 0
        usual = int(certain.sum(axis=0).argmin())
        ahead = (
            Ahead(self.hosts.names[at], int(-most[at, usual]), int(most[usual, at]))
            for at in np.flatnonzero(certain[usual]).tolist()
        )
        return Clocks(int(offsets.max() - offsets.min()), tuple(ahead))


def _losers(history: History | Scan) -> Codes:
    events: tuple[Event, ...] = (history.context if isinstance(history, Scan) else history).events
    numbers = {history.table.symbols.number(e.process) for e in events if e.f == Notice.LOST}
    return np.array(sorted(numbers), np.int32)
