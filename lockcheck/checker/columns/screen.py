"""What the columns of a long history can clear for one check, before any event is read.

A screen may suspect too much, and then the check looks at the events and finds nothing. It may
never clear what the check would find: `tests/checker/columns/test_screens.py` holds each to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lockcheck.checker.columns.stored import Stored
from lockcheck.history.scan import Scan
from lockcheck.history.table import Ints

# Of a history that is wrong all over, this many places are looked at.
MOST_PLACES = 1_000
MOST_IN_A_RUN = 100_000  # of ours that has faults: there it is what they are for


def most_places(scan: Scan) -> int:
    return MOST_IN_A_RUN if scan.context.faults else MOST_PLACES


@dataclass(frozen=True, slots=True)
class Screen:
    """Either it names the rows that the check has to see, or it says when that takes all events."""

    reason: str = ""  # why the whole history is read event by event, where `whole` says so
    whole: Callable[[Scan], bool] = lambda _: False
    # The same of what a storage numbered, if it fits together.
    stored: Callable[[Scan, Stored], bool] = lambda _, __: False
    # Groups of rows in which there may be something to find. Nothing that one of them is about
    # lies outside of it and its time.
    places: Callable[[Scan], Iterable[Ints]] = lambda _: ()
    of_writes: bool = False  # the rows are those of writes that `stretches` suspects


WHOLE = Screen("a check that has no screen", lambda _: True)
WRITES = Screen(of_writes=True)
CLEAR = Screen()  # the check takes all that it needs from the columns
