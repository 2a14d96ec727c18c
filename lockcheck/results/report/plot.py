"""What the page's charts over time share: the axis, the bands of faults, and scales."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from lockcheck.history import FaultSpan
from lockcheck.history.event import NS_PER_MS
from lockcheck.words import NS_PER_S, fault_name, plain

NARROWEST = 500  # pixels of a plot: a text that fits there fits anywhere
CHARACTER = 7.0  # about the width of one
MOST_LABELS = 6
EDGE = 0.04  # of the axis: labels there do not stand out
MOST_BANDS = 400
_MINUTE = 60 * NS_PER_S
_UNITS = (
    *((1440 * _MINUTE, "d"), (60 * _MINUTE, "h"), (_MINUTE, "min")),
    *((NS_PER_S, "s"), (NS_PER_MS, "ms"), (1_000, "µs"), (1, "ns")),
)
_ROUND = (
    *(digit * 10**power for power in range(10) for digit in (1, 2, 5)),
    *(seconds * NS_PER_S for seconds in (10, 20, 30)),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 20, 30)),
    *(hours * 60 * _MINUTE for hours in (1, 2, 4, 12)),
    *(days * 1440 * _MINUTE for digit in (1, 10, 100, 1000) for days in (digit, 2 * digit)),
)


def round_ns(length_ns: int, most: int) -> int:
    """The least round length of which at most so many fit into `length_ns`."""
    return next((each for each in _ROUND if each * most >= length_ns), length_ns)


def percent(ns: float, end_ns: int) -> str:
    """A place on the axis: SVG takes it whatever the width of the page."""
    return f"{100 * min(1.0, max(0.0, ns / max(1, end_ns))):.2f}%"


def long(ns: int) -> str:
    """A round length: 200 ms, 5 s, 20 min."""
    unit_ns, unit = next(each for each in _UNITS if ns % each[0] == 0)
    return f"{ns // unit_ns} {unit}"


def axis(end_ns: int) -> Markup:
    """The times below a chart."""
    times = range(0, end_ns + 1, round_ns(max(1, end_ns), MOST_LABELS))
    return strip("plot-axis", (_label(ns, end_ns) for ns in times))


def _label(ns: int, end_ns: int) -> Markup:
    at = ns / max(1, end_ns)
    anchor = "start" if at < EDGE else "end" if at > 1 - EDGE else "middle"
    unit_ns, unit = next(each for each in _UNITS if each[0] < end_ns or each[0] == 1)
    return text(percent(ns, end_ns), anchor, f"{ns / unit_ns:g} {unit}")


def spans_of(faults: Iterable[FaultSpan], end_ns: int) -> list[tuple[FaultSpan, int, int]]:
    """The proven ones with the time in which they were in effect, in the order of its start."""
    found = [
        (fault, fault.worked_from_ns, end_ns if fault.healed_ns is None else fault.healed_ns)
        for fault in faults
        if fault.proven_ns is not None
    ]
    return sorted(found, key=lambda each: each[1])[:MOST_BANDS]


def bands(faults: Iterable[FaultSpan], end_ns: int) -> Markup:
    return Markup("").join(
        Markup(
            '<rect class="o-fault" x="{}" y="0" width="{}" height="100%"><title>{}</title></rect>'
        ).format(percent(start, end_ns), percent(end - start, end_ns), fault_name(fault))
        for fault, start, end in spans_of(faults, end_ns)
    )


def names_of(faults: Iterable[FaultSpan], end_ns: int) -> Markup:
    """A line above the charts with the names of the bands, those for which there is room."""
    texts, free = [], 0.0
    for fault, start_ns, healed_ns in spans_of(faults, end_ns):
        name = plain(fault.name, 24)
        wide = CHARACTER * len(name)
        middle_ns = (start_ns + min(healed_ns, end_ns)) / 2
        x = middle_ns / max(1, end_ns) * NARROWEST
        anchor = "start" if x < wide / 2 else "end" if x > NARROWEST - wide / 2 else "middle"
        left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
        if left >= free:
            free = left + wide + CHARACTER
            texts.append(text(percent(middle_ns, end_ns), anchor, name))
    return strip("plot-names", texts)


def strip(name: str, texts: Iterable[Markup]) -> Markup:
    inside = Markup("").join(texts)
    return Markup('<svg class="{}" aria-hidden="true">{}</svg>').format(name, inside)


def text(x: str, anchor: str, text: str) -> Markup:
    return Markup('<text x="{}" y="13" text-anchor="{}">{}</text>').format(x, anchor, text)
