"""A history that is judged, with what several checks derive from it: each once, on demand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from lockcheck.checker.evidence.blame import Attribution
from lockcheck.checker.evidence.order import HoldIndex, by_key
from lockcheck.checker.evidence.outages import Outages
from lockcheck.checker.evidence.reads import StaleRead, stale_reads
from lockcheck.checker.evidence.releases import BlindRelease, blind_releases, spare_permits
from lockcheck.checker.evidence.rivals import Reentries
from lockcheck.checker.evidence.vacancies import (
    Interval,
    Vacancy,
    faulty,
    vacancies,
    without_majority,
)
from lockcheck.checker.evidence.versions import Knowledge, Versions, read_versions
from lockcheck.checker.evidence.writes import Ledger, Stretches, read_ledger
from lockcheck.checker.whole_run.together import Together, together
from lockcheck.history import F, History, Hold, Operation, Terms


@dataclass(frozen=True)
class Case:
    history: History
    stretches: Stretches | None = None  # of writes, if this is only a part of a history

    @property
    def terms(self) -> Terms:
        return self.history.terms

    @property
    def operations(self) -> tuple[Operation, ...]:
        return self.history.operations

    @property
    def holds(self) -> tuple[Hold, ...]:
        return self.history.holds

    @cached_property
    def holds_by_key(self) -> dict[str, list[Hold]]:
        """Each key's holds in the order of their starts."""
        return by_key(self.holds)

    @cached_property
    def acquires_by_key(self) -> dict[str, list[Operation]]:
        return by_key(operation for operation in self.operations if operation.f == F.ACQUIRE)

    @cached_property
    def last_heard_ns(self) -> dict[int | str, int]:
        """When the last operation of each process was answered, or else sent."""
        last_ns: dict[int | str, int] = {}
        for operation in self.operations:
            last_ns[operation.process] = max(last_ns.get(operation.process, 0), operation.last_ns)
        return last_ns

    @cached_property
    def in_vain(self) -> dict[str, list[Vacancy]]:
        """Of each lock the times in which requests were refused although it was free."""
        free = self._vacancies(faulty(self.history))
        return {key: [each for each in found if each.in_vain] for key, found in free.items()}

    @cached_property
    def unserved(self) -> dict[str, list[Vacancy]]:
        """Of each lock the times in which a majority of its servers was up, and granted nothing."""
        free = self._vacancies(without_majority(self.history))
        faults = self.history.faults
        return {
            key: [each for each in found if each.unserved(faults)] for key, found in free.items()
        }

    def _vacancies(self, disturbed: list[Interval]) -> dict[str, Iterator[Vacancy]]:
        return {
            key: vacancies(self.history, asked, self.holds_by_key.get(key, []), disturbed)
            for key, asked in self.acquires_by_key.items()
        }

    @cached_property
    def together(self) -> Together:
        return together(self.holds_by_key)

    @cached_property
    def index(self) -> HoldIndex:
        return HoldIndex(self.holds)

    @cached_property
    def ledger(self) -> Ledger:
        return read_ledger(self.history, self.index, self.stretches)

    @cached_property
    def knowledge(self) -> Knowledge:
        return Knowledge(self.history, self.index)

    @cached_property
    def versions(self) -> list[Versions]:
        """The versions of each register that was written."""
        groups = self.ledger.accepted()
        return [read_versions(self.ledger, self.knowledge, writes) for writes in groups]

    @cached_property
    def stale_reads(self) -> dict[int, StaleRead]:
        """By the identity of the read."""
        return {id(stale.read): stale for stale in stale_reads(self.history, self.ledger)}

    @cached_property
    def releases(self) -> dict[str, list[BlindRelease]]:
        return blind_releases(self.history, self.holds_by_key, self.index)

    @cached_property
    def attribution(self) -> Attribution:
        return Attribution(self.history, self.releases, spare_permits(self.history, self.index))

    @cached_property
    def outages(self) -> Outages:
        return Outages(self.history)

    @cached_property
    def reentries(self) -> Reentries:
        return Reentries(self.history)
