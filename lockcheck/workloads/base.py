"""What a workload is: what clients do under a lock, and which locks it suits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockcheck.backends.base import Promises
from lockcheck.client.session import Session


@dataclass(frozen=True, slots=True)
class Need:
    """A property of a lock without which the workload would show nothing."""

    words: str
    met_by: Callable[[Promises], bool]


EXCLUSION = Need("a lock that one client holds at a time", lambda lock: lock.permits == 1)
SHARING = Need("a lock that readers can share", lambda lock: lock.shared)
REENTRY = Need("a lock that its holder can enter again", lambda lock: lock.reentrant)
PERMITS = Need("a lock with several permits", lambda lock: lock.permits > 1)


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    summary: str
    run: Callable[[Session], None]  # until `session.stopping` is set
    stores: bool  # reads and writes under the lock, so the run has a storage, which is judged, too
    fewest: int = 0  # acquisitions (and accepted writes) that suffice for a verdict; 0: the usual
    needs: Need | None = None  # None: it suits every lock

    def suits(self, promises: Promises) -> bool:
        return self.needs is None or self.needs.met_by(promises)
