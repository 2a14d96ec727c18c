"""Grants, waits and holds over the time of a run, as small charts without script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from lockcheck.checker.finding import Judgement
from lockcheck.checker.whole_run.ungranted import Ungrants
from lockcheck.history.table import NEVER, Ints
from lockcheck.results.report.activity import Activity, activity_of
from lockcheck.results.report.plot import (
    axis,
    bands,
    long,
    names_of,
    percent,
    round_ns,
    strip,
    text,
)
from lockcheck.words import NS_PER_S, amount, moment, span

FEWEST = 10  # grants: fewer are on the timeline, one by one
FEWEST_OF_A_SHARE = 100  # of fewer, one in a hundred is none
MOST_BUCKETS = 80
MOST_DECADES = 7
MOST_GAPS = 12  # marked on the chart
PER = ((1, "second"), (60, "minute"), (3600, "hour"), (86_400, "day"))


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    about: str
    scale: tuple[str, ...]  # from the top
    drawn: Markup
    above: Markup = field(default_factory=Markup)  # a strip


@dataclass(frozen=True, slots=True)
class OverTime:
    numbers: str
    rows: tuple[Row, ...]
    names: Markup  # of the faults
    not_shown: str
    axis: Markup


def over_time(judgement: Judgement) -> OverTime | None:
    """None: no lock, or hardly a grant."""
    activity = activity_of(judgement)
    if activity is None or len(activity.granted) < FEWEST or not activity.end_ns:
        return None
    faults, end_ns = judgement.case.history.faults, activity.end_ns
    rows = tuple(_Charts(activity, bands(faults, end_ns)).rows())
    return OverTime(
        _numbers(activity), rows, names_of(faults, end_ns), _not_shown(activity), axis(end_ns)
    )


# --- numbers -------------------------------------------------------------------------------------


def _numbers(activity: Activity) -> str:
    parts = [amount(len(activity.granted), "grant"), f"waited {_summary(activity.waited)}"]
    known = _known(activity.held)
    if len(known):
        parts.append(f"held {_summary(known)}")
    longest_ns = int(activity.ungranted.length_ns.max())
    parts.append(f"longest time without a grant {span(longest_ns)}")
    return "; ".join(parts) + "."


def _not_shown(activity: Activity) -> str:
    if activity.held is None:
        return "How long it was held is not shown: only a part of this history was read in full."
    missing = int((activity.held == NEVER).sum())
    return f"Without {amount(missing, 'hold')} whose end is not known." if missing else ""


def _known(held: Ints | None) -> Ints:
    return np.zeros(0, np.int64) if held is None else held[held != NEVER]


def _summary(lengths: Ints) -> str:
    ordered = np.sort(lengths)
    many = len(ordered) >= FEWEST_OF_A_SHARE
    shares = ((0.5, "median"), (0.99, "p99"), (1.0, "longest"))
    return ", ".join(
        f"{span(_nearest(ordered, share))} ({name})"
        for share, name in shares
        if many or share != 0.99
    )


def _nearest(ordered: Ints, share: float) -> int:
    """The least of them that at least this share does not exceed."""
    return int(ordered[math.ceil(share * len(ordered)) - 1])


# --- charts --------------------------------------------------------------------------------------


class _Charts:
    def __init__(self, activity: Activity, behind: Markup) -> None:
        self._activity, self._behind = activity, behind
        self._end_ns = activity.end_ns
        self._width_ns = round_ns(self._end_ns, MOST_BUCKETS)
        edges = [*range(0, self._end_ns, self._width_ns), self._end_ns]
        if len(edges) > 2 and edges[-1] - edges[-2] < self._width_ns / 2:
            del edges[-2]  # the rest is too short for a rate of its own
        self._edges = np.array(edges, np.int64)
        self._buckets = np.searchsorted(self._edges[1:-1], activity.granted, "right")

    def rows(self) -> Iterator[Row]:
        yield self._grants()
        asked = "from the first request to the grant"
        yield self._lengths("Waited", asked, self._activity.waited)
        held = self._activity.held
        if held is not None and (held != NEVER).any():
            yield self._lengths("Held", "from the grant to the release, or the loss", held)

    def _grants(self) -> Row:
        counts = np.bincount(self._buckets, minlength=len(self._edges) - 1)
        rates = counts / np.diff(self._edges) * NS_PER_S
        top = float(rates.max())
        seconds, unit = next((each for each in PER if top * each[0] >= 1), PER[-1])
        bars = (
            self._bar(bucket, "o-bar", 0.0, rate / top)
            for bucket, rate in enumerate(rates.tolist())
            if rate
        )
        highest = f"{top * seconds:,.0f}" if top * seconds >= 100 else f"{top * seconds:.3g}"
        return Row(
            f"Grants a {unit}",
            f"in each {long(self._width_ns)}; red line: asked for and not granted",
            (highest, "0"),
            self._drawn(bars),
            strip("plot-gaps", _gaps(self._activity.ungranted, self._width_ns, self._end_ns)),
        )

    def _lengths(self, name: str, about: str, lengths: Ints) -> Row:
        """Each bucket's median, and up to its longest, on a scale of powers of ten."""
        known = lengths != NEVER
        order = np.lexsort((lengths[known], self._buckets[known]))
        buckets, ordered = self._buckets[known][order], lengths[known][order]
        groups = np.split(ordered, np.flatnonzero(np.diff(buckets)) + 1)
        found = [(_nearest(each, 0.5), int(each[-1])) for each in groups]
        scale = _Decades.of(found)
        bars = []
        for bucket, (median, longest) in zip(np.unique(buckets).tolist(), found, strict=True):
            low, high = scale.height(median), scale.height(longest)
            bars.append(self._bar(bucket, "o-longest", low, high))
            bars.append(self._bar(bucket, "o-median", low - 0.02, low + 0.02))
        return Row(name, about, scale.labels(), self._drawn([scale.lines(), *bars]))

    def _drawn(self, parts: Iterable[Markup]) -> Markup:
        return self._behind + Markup("").join(parts)

    def _bar(self, bucket: int, kind: str, low: float, high: float) -> Markup:
        start, end = (int(edge) for edge in self._edges[bucket : bucket + 2])
        low, high = max(0.0, low), min(1.0, high)
        return Markup('<rect class="{}" x="{}" y="{:.1f}%" width="{}" height="{:.1f}%"/>').format(
            kind,
            percent(start, self._end_ns),
            100 * (1 - high),
            percent(0.85 * (end - start), self._end_ns),
            100 * (high - low),
        )


def _gaps(ungranted: Ungrants, least_ns: int, end_ns: int) -> Iterator[Markup]:
    """The longest, with its length; and others that lasted a bucket, without."""
    line = Markup('<rect x="{}" y="15" width="{}" height="4"><title>{}</title></rect>')
    order = np.argsort(-ungranted.length_ns, kind="stable")[:MOST_GAPS].tolist()
    for place, row in enumerate(order):
        since_ns, length_ns = int(ungranted.since_ns[row]), int(ungranted.length_ns[row])
        if place and length_ns < least_ns:
            break
        about = f"no grant for {span(length_ns)}, from {moment(since_ns)} on"
        yield line.format(percent(since_ns, end_ns), percent(length_ns, end_ns), about)
        if not place:
            left = since_ns < end_ns / 2
            at = percent(since_ns if left else since_ns + length_ns, end_ns)
            yield text(at, "start" if left else "end", f"{span(length_ns)} without a grant")


@dataclass(frozen=True, slots=True)
class _Decades:
    """A scale from one power of ten (of ns) to another."""

    low: int
    high: int

    @staticmethod
    def of(found: Iterable[tuple[int, int]]) -> _Decades:
        every = list(found)
        high = max(1, math.ceil(math.log10(max(1, *(longest for _, longest in every)))))
        low = math.floor(math.log10(max(1, min(median for median, _ in every))))
        return _Decades(max(min(low, high - 1), high - MOST_DECADES), high)

    def height(self, ns: int) -> float:
        return max(0.0, (math.log10(max(1, ns)) - self.low) / (self.high - self.low))

    def labels(self) -> tuple[str, ...]:
        return tuple(long(10**power) for power in range(self.high, self.low - 1, -1))

    def lines(self) -> Markup:
        places = range(1, self.high - self.low)
        line = Markup('<line class="o-grid" x1="0" x2="100%" y1="{0:.1f}%" y2="{0:.1f}%"/>')
        return Markup("").join(line.format(100 * n / (self.high - self.low)) for n in places)
