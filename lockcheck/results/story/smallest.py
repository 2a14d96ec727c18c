"""The smallest part of a history that is the same violation, in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from lockcheck.history import History
from lockcheck.words import amount, call, fault_name, moment, outcome, plain

NOT_ALL = "The search was stopped early: fewer may suffice."


@dataclass(frozen=True, slots=True)
class Row:
    time_ns: int
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
        return sorted(self._rows(), key=lambda row: row.time_ns)

    def _rows(self) -> Iterator[Row]:
        for operation in self.history.operations:
            node, what = plain(operation.node), call(operation)
            ended = operation.end_ns
            when = "" if ended is None else f" at {moment(ended)}"
            yield Row(operation.start_ns, node, what, f"{outcome(operation)}{when}")
        for fault in self.history.faults:
            healed = "not healed" if fault.healed_ns is None else f"until {moment(fault.healed_ns)}"
            yield Row(fault.start_ns, "fault", fault_name(fault), healed)
