"""When the leases of clients are about to expire, as far as the history shows."""

from __future__ import annotations

from typing import NamedTuple

from lockcheck.history import Event, EventType, F

NEAR_EXPIRY = 0.75  # the part of the lease, or of the time between two renewals, that has passed


class _Lease(NamedTuple):
    """Times are in seconds, by the clock that `observe` is given."""

    since: float  # the last grant or renewal
    near_expiry: float


class Leases:
    """The lease of each (node, key)."""

    def __init__(self) -> None:
        self._leases: dict[tuple[str, str], _Lease] = {}
        self._asked_ms: dict[str, int] = {}  # the lease that each node asks for

    def observe(self, event: Event, now: float) -> None:
        if event.node is None or event.f not in (F.ACQUIRE, F.RENEW):
            return
        if event.ttl_ms is not None:
            self._asked_ms[event.node] = event.ttl_ms
        if event.type is EventType.OK:
            self._begin(event, event.node, now)

    def _begin(self, granted: Event, node: str, now: float) -> None:
        hold = (node, granted.key or "")
        lasts_ms = granted.valid_ms
        if lasts_ms is None:  # the lock reports no validity
            lasts_ms = self._asked_ms.get(node, 0)
        before = self._leases.get(hold) if granted.f == F.RENEW else None
        renewed_after = now - before.since if before else float("inf")
        near_expiry = now + NEAR_EXPIRY * min(lasts_ms / 1000, renewed_after)
        self._leases[hold] = _Lease(now, near_expiry)

    def near_expiry(self, node: str, key: str) -> float | None:
        """When its lease is about to expire; None if no lease is known."""
        lease = self._leases.get((node, key))
        return None if lease is None else lease.near_expiry
