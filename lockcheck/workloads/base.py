"""What a workload is: what a client does all day, and what that shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockcheck.backends.base import Promises
from lockcheck.client.session import Session


@dataclass(frozen=True, slots=True)
class Need:
    """What a lock must be, or the workload would tell nothing of it."""

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
    stores: bool  # it reads and writes under the lock, so a run has a storage, which is judged too
    fewest: int = 0  # acquisitions (and accepted writes) that are enough to tell; 0: the usual
    needs: Need | None = None  # None: it tells something of every lock

    def suits(self, promises: Promises) -> bool:
        return self.needs is None or self.needs.met_by(promises)
