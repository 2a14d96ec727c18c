"""Small charts of how far the nodes' clocks were off the true ones, at the measured points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from lockcheck.history import Event, History
from lockcheck.results.story.seen import last_moment_ns
from lockcheck.words import natural, plain

CLOCKS = ("wall", "monotonic")
WIDTH, HEIGHT = 960, 96
# Points further apart in time than this are not joined: in between, nothing was measured.
WATCHED_NS = 1_000_000_000
OFF_MS = 1.0
MOST_NODES = 24
MOST_POINTS = 20_000
LONGEST_MS = 1e12
COLOURS = 6
Offsets = dict[str, tuple[float | None, float | None]]  # in ms, by node: wall, monotonic


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    colour: int
    path: str  # as SVG writes it
    furthest: str


@dataclass(frozen=True, slots=True)
class Chart:
    clock: str
    lines: tuple[Line, ...]
    right: int  # how many nodes were never off
    zero: float  # the height of an offset of zero
    top: str
    bottom: str


@dataclass(frozen=True, slots=True)
class Point:
    time_ns: int
    off_ms: float


def charts(history: History) -> list[Chart]:
    """Empty where no clock was moved."""
    read = [(event.time, each) for event in history.clocks[:MOST_POINTS] for each in _read(event)]
    drawn = (_chart(clock, n, read, last_moment_ns(history)) for n, clock in enumerate(CLOCKS))
    return [chart for chart in drawn if chart.lines]


def _read(event: Event) -> Iterable[Offsets]:
    """Skips what is no measurement: a file from elsewhere may hold anything."""
    try:
        read = msgspec.convert(event.value, Offsets)
    except msgspec.ValidationError:
        return
    yield {
        name: offsets
        for name, offsets in read.items()
        if all(off is None or abs(off) < LONGEST_MS for off in offsets)
    }


def _chart(clock: str, place: int, read: list[tuple[int, Offsets]], end_ns: int) -> Chart:
    points: dict[str, list[Point]] = {}
    for time_ns, by_node in read:
        for name, offsets in by_node.items():
            if (off_ms := offsets[place]) is not None:
                points.setdefault(name, []).append(Point(time_ns, off_ms))
    furthest = {
        name: max((point.off_ms for point in found), key=abs) for name, found in points.items()
    }
    off = {name: points[name] for name, off_ms in furthest.items() if abs(off_ms) >= OFF_MS}
    every = [point.off_ms for found in off.values() for point in found]
    low, high = min(0.0, *every, 0.0), max(0.0, *every, 0.0)
    names = sorted(off, key=natural)[:MOST_NODES]
    lines = tuple(
        Line(
            name=plain(name, 24),
            colour=n % COLOURS + 1,
            path=_path(off[name], end_ns, low, high),
            furthest=_seconds(furthest[name]),
        )
        for n, name in enumerate(names)
    )
    zero = _height(0.0, low, high)
    return Chart(clock, lines, len(points) - len(off), zero, _seconds(high), _seconds(low))


def _path(points: list[Point], end_ns: int, low: float, high: float) -> str:
    words = []
    before_ns = -WATCHED_NS
    for point in points:
        move = "M" if point.time_ns - before_ns >= WATCHED_NS else "L"
        x = min(1.0, point.time_ns / max(1, end_ns)) * WIDTH
        words.append(f"{move}{x:.1f} {_height(point.off_ms, low, high):.1f}")
        before_ns = point.time_ns
    return "".join(words)


def _height(off_ms: float, low: float, high: float) -> float:
    """From the top."""
    return round((high - off_ms) / ((high - low) or 1.0) * HEIGHT, 1)


def _seconds(ms: float) -> str:
    return f"{ms / 1000:+.3f} s" if abs(ms) >= OFF_MS else "0"
