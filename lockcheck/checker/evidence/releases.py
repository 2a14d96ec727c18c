"""Blind releases: those that delete whatever lock is there, without looking whose it is.

A release that compares before it deletes removes its own lock or none. So `removed` alone proves
nothing; together with `blind` it does, where the releaser's own lock was gone before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from lockcheck.checker.evidence.order import HoldIndex
from lockcheck.history import F, History, Hold, Operation


@dataclass(frozen=True, slots=True)
class BlindRelease:
    operation: Operation
    by: Hold  # whose lock it should have removed
    answered_ns: int | None  # the last moment at which it may have taken effect; None: any time

    @property
    def certain(self) -> bool:
        """It is known to have removed a lock, one or the other."""
        return self.operation.ok

    def may_be_foreign_to(self, victim: Hold) -> bool:
        """Those who share the lock with the releaser may have been let in beside it."""
        others = victim.process != self.by.process and not (victim.shared and self.by.shared)
        return others and victim.acquire.start_ns > self.by.start_ns

    def was_foreign_to(self, victim: Hold) -> bool:
        """Its own lock was gone for certain: an exclusive lock was granted again before it began.

        That takes one server that decides; for a backend with a blind release there is one.
        """
        return (
            self.certain
            and self.may_be_foreign_to(victim)
            and victim.start_ns < self.operation.start_ns
        )


def removed_blindly(operation: Operation) -> bool:
    """It is known to have removed something, and not to have looked what."""
    value = operation.answer.value if operation.answer else None
    removed = value.get("removed") if isinstance(value, dict) else None
    return operation.ok and operation.blind and isinstance(removed, int) and removed >= 1


def blind_releases(
    history: History, holds_by_key: dict[str, list[Hold]], index: HoldIndex
) -> dict[str, list[BlindRelease]]:
    """By key, in order: those that may have removed a lock other than their own."""
    if history.terms.permits > 1:
        return {}  # that somebody else was let in says nothing about the releaser's own permit
    releases = [operation for operation in history.operations if operation.f == F.RELEASE]
    found: defaultdict[str, list[BlindRelease]] = defaultdict(list)
    if any(operation.blind for operation in releases):  # a backend's are, or are not
        asked = {key: sorted(_asked_ns(holds)) for key, holds in holds_by_key.items()}
        for release in _with_holds(index, releases):
            if _somebody_asked_since(release, asked[release.by.key]):
                found[release.by.key].append(release)
    return found


def _asked_ns(holds: list[Hold]) -> list[int]:
    return [hold.acquire.start_ns for hold in holds]


def _somebody_asked_since(release: BlindRelease, asked: list[int]) -> bool:
    """Another hold was asked for after the releaser's own grant and before the release was over.

    All others, in a lock that works nearly all, can only have removed their own lock.
    """
    position = bisect_right(asked, release.by.start_ns)
    answered_ns = release.answered_ns
    return position < len(asked) and (answered_ns is None or asked[position] < answered_ns)


def _with_holds(index: HoldIndex, releases: list[Operation]) -> Iterator[BlindRelease]:
    for operation in releases:
        hold = index.of(operation)
        if hold is not None and (operation.unknown or removed_blindly(operation)):
            # One that was given up may still wait in a server's socket, and take effect later.
            answered_ns = operation.end_ns
            yield BlindRelease(operation, hold, answered_ns)
