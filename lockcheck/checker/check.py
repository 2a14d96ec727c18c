"""What a check is: a rule for one kind of mistake, with all that others need to know about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lockcheck.checker.case import Case
from lockcheck.checker.columns.screen import WHOLE, Screen
from lockcheck.checker.finding import Blame, Culprit, Finding, Verdict
from lockcheck.checker.wording import Words
from lockcheck.history import Terms
from lockcheck.history.event import TRANSACTION

GUARDS = frozenset({"fence", "cas", TRANSACTION})
EXCUSING = frozenset({Culprit.MACHINE, Culprit.CLOCKS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    code: str
    meaning: str  # one line
    explanation: str  # for `lockcheck explain CODE`
    find: Callable[[Case], Iterable[Finding]]
    words: Words
    screen: Screen = WHOLE  # what columns can clear: a history without it is read event by event
    kept_out_by: frozenset[str] = frozenset()  # guards that promise that it never happens
    despite_guards: bool = False  # it counts behind every guard
    damages_data: bool = False
    endangers_data: bool = False  # two believed that they hold the lock, or tokens did not tell
    by_storage: bool = False  # its evidence is what clients and the storage say of the data
    workload: str = ""  # the one whose runs it judges; empty: every history

    @property
    def name(self) -> str:
        return str(self.code)

    def judges(self, terms: Terms) -> bool:
        return self.workload in ("", terms.workload)

    def effect(self, terms: Terms, blame: Blame) -> Verdict:
        """What a finding does to the verdict, by the guard that the storage had.

        Behind a guard the property is the data's: what the lock alone did wrong is shown, and only
        what the guard promised to keep out counts. A guard that is not known is no guard: the
        strictest reading.
        """
        if terms.guard in GUARDS and not self.despite_guards:
            return Verdict.VIOLATION if terms.guard in self.kept_out_by else Verdict.OK
        return Verdict.UNKNOWN if blame.who in EXCUSING else Verdict.VIOLATION
