"""Which of too many items are drawn: those near a finding, and every nth of the rest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


def chosen(
    items: Sequence[T], most: int, windows: Iterable[range], start_ns: Callable[[T], int]
) -> Sequence[T]:
    """At most `most` of the items, which are in the order of their starts, and stay so."""
    if len(items) <= most:
        return items
    near = _near(items, most // 2, windows, start_ns)
    room = most - len(near)
    spread = {number * len(items) // room for number in range(room)}
    return [items[index] for index in sorted(near | spread)]


def _near(
    items: Sequence[T], most: int, windows: Iterable[range], start_ns: Callable[[T], int]
) -> set[int]:
    near: set[int] = set()
    for window in windows:
        first = bisect_left(items, window.start, key=start_ns)
        last = bisect_right(items, window.stop, key=start_ns)
        near.update(range(first, min(last, first + most - len(near))))
        if len(near) >= most:
            break
    return near


def merged(windows: Iterable[range]) -> list[range]:
    """The same stretches of time, in order and without overlaps."""
    apart: list[range] = []
    for window in sorted(windows, key=lambda window: window.start):
        if apart and window.start <= apart[-1].stop:
            apart[-1] = range(apart[-1].start, max(apart[-1].stop, window.stop))
        else:
            apart.append(window)
    return apart


def within(apart: Sequence[range], at_ns: int) -> bool:
    index = bisect_right(apart, at_ns, key=lambda window: window.start)
    return index > 0 and at_ns <= apart[index - 1].stop
