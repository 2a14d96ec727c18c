"""Blind releases: those that delete whatever lock is there, without a check of its owner.

A release that compares before it deletes removes its own lock or none, so `removed` alone proves
nothing. Of a blind release it does, if the releaser's own lock was gone before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from lockcheck.checker.evidence.order import HoldIndex
from lockcheck.history import F, History, Hold, Operation, Terms


@dataclass(frozen=True, slots=True)
class BlindRelease:
    operation: Operation
    by: Hold  # the releaser's own, which it was meant to remove
    answered_ns: int | None  # when it had taken effect at the latest; None: unknown

    def may_be_foreign_to(self, victim: Hold) -> bool:
        """Whether it may have removed that hold; a shared one may lie beside the releaser's own."""
        others = victim.process != self.by.process and not (victim.shared and self.by.shared)
        return others and victim.acquire.start_ns > self.by.start_ns

    def was_foreign_to(self, victim: Hold) -> bool:
        """Whether its own lock was gone for certain: an exclusive lock was granted again before it
        began. One server decides, as it does for every backend with blind releases."""
        began_ns, removed = self.operation.start_ns, self.operation.ok
        return removed and self.may_be_foreign_to(victim) and victim.start_ns < began_ns


def gave_back(release: Operation | None, terms: Terms) -> bool:
    """Whether a release is known to have given its client's own lock back."""
    if release is None or not release.ok:
        return False
    return terms.tells_release and not release.unsaid


def removed_blindly(operation: Operation) -> bool:
    """Whether it is known to have removed a lock without a check of its owner."""
    value = operation.answer.value if operation.answer else None
    removed = value.get("removed") if isinstance(value, dict) else None
    return operation.ok and operation.blind and isinstance(removed, int) and removed >= 1


def blind_releases(
    history: History, holds_by_key: dict[str, list[Hold]], index: HoldIndex
) -> dict[str, list[BlindRelease]]:
    """By key, in order: the releases that may have removed another client's lock."""
    if history.terms.permits > 1:
        return {}  # another client's grant says nothing about the releaser's own permit
    releases = [operation for operation in history.operations if operation.f == F.RELEASE]
    found: defaultdict[str, list[BlindRelease]] = defaultdict(list)
    if any(operation.blind for operation in releases):  # then all of the lock's releases are
        asked = {key: sorted(h.acquire.start_ns for h in its) for key, its in holds_by_key.items()}
        for release in _with_holds(index, releases):
            if _was_asked_for_since(release, asked[release.by.key]):
                found[release.by.key].append(release)
    return found


def spare_permits(history: History, index: HoldIndex) -> dict[str, list[BlindRelease]]:
    """Of locks with permits, by key and in order: blind releases of permits whose lease was over.
    Another client may have had it by then, and from then on there is one more than there should be.
    """
    found: defaultdict[str, list[BlindRelease]] = defaultdict(list)
    if history.terms.permits > 1:
        releases = [o for o in history.operations if o.f == F.RELEASE and o.blind]
        for release in _with_holds(index, releases):
            until_ns = release.by.promised_until_ns(history.terms.ttl_ms)
            if until_ns is not None and until_ns <= release.operation.start_ns:
                found[release.by.key].append(release)
    return found


def _was_asked_for_since(release: BlindRelease, asked: list[int]) -> bool:
    """Whether another hold was asked for between the releaser's own grant and the release's end.
    Else it can only have removed its own lock: of a working lock that is nearly each of them."""
    position = bisect_right(asked, release.by.start_ns)
    answered_ns = release.answered_ns
    return position < len(asked) and (answered_ns is None or asked[position] < answered_ns)


def _with_holds(index: HoldIndex, releases: list[Operation]) -> Iterator[BlindRelease]:
    for operation in releases:
        hold = index.of(operation)
        if hold is not None and (operation.unknown or removed_blindly(operation)):
            # An unanswered release may wait in a server's socket and take effect later.
            yield BlindRelease(operation, hold, operation.end_ns)
