"""The smallest part of a history that is the same violation, in words."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter

from lockcheck.history import History
from lockcheck.words import amount, call, exactly, fault_name, moment, outcome, plain

NOT_ALL = "The search was stopped early: fewer may suffice."


@dataclass(frozen=True, slots=True)
class Row:
    when: str
    who: str
    what: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Smallest:
    """A part of a history that is the same violation. Unless `cut_short`, no operation, hold or
    fault of it can be left out."""

    history: History
    in_all: int  # operations of the whole history
    cut_short: bool
    path: str = ""  # where it is stored, if it is

    @property
    def title(self) -> str:
        number = len(self.history.operations)
        return f"{amount(number, 'operation')} of {self.in_all:,} suffice{'s' * (number == 1)}"

    @property
    def command(self) -> str:
        """That judges what is stored; empty if it is not."""
        return shlex.join(["lockcheck", "check", self.path]) if self.path else ""

    @property
    def explanation(self) -> str:
        alone = "Judged alone, they are the same violation, with the same blame."
        return f"{alone} {NOT_ALL}" if self.cut_short else alone

    @property
    def rows(self) -> list[Row]:
        """Its operations and faults, in the order of their starts."""
        rows = sorted(self._rows(moment), key=itemgetter(0))
        if len({row.when for _, row in rows}) < len(rows):  # too close to each other
            rows = sorted(self._rows(exactly), key=itemgetter(0))
        return [row for _, row in rows]

    def _rows(self, clock: Callable[[int], str]) -> Iterator[tuple[int, Row]]:
        for operation in self.history.operations:
            node, what = plain(operation.node), call(operation)
            ended = operation.end_ns
            at = "" if ended is None else f" ({clock(ended)})"
            started_ns = operation.start_ns
            yield started_ns, Row(clock(started_ns), node, what, f"{outcome(operation)}{at}")
        for fault in self.history.faults:
            healed = "not healed" if fault.healed_ns is None else f"until {clock(fault.healed_ns)}"
            yield fault.start_ns, Row(clock(fault.start_ns), "fault", fault_name(fault), healed)
