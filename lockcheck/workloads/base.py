"""What a workload is: what a client does while it believes that it holds the lock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lockcheck.workloads.session import Held, Session


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    summary: str
    section: Callable[[Session, Held], None]
    needs_storage: bool
