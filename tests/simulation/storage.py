"""What the lock protects: it decides, numbers and remembers like the real storage."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lockcheck.errors import InternalError
from lockcheck.history import Event, F
from lockcheck.storage.base import Ask as Remembered
from lockcheck.storage.base import ledger_events
from tests.simulation.world import Ask, Reply


class Storage:
    def __init__(self, guard: str) -> None:
        self._guard = guard
        self._values: dict[str, str] = {}
        self._highest: dict[str, int] = {}
        self._highest_alone: dict[str, int] = {}  # of those that did not share: readers go by it
        self._ledger: list[Remembered] = []

    def handle(self, ask: Ask, wall_ns: int) -> Reply:
        current = self._values.get(ask.key)
        refusal = self._refusal(ask, current)
        if ask.f == F.WRITE and ask.value is not None and not refusal:
            self._values[ask.key] = ask.value
        told = ask.value if ask.f == F.WRITE or refusal else current
        seq = len(self._ledger) + 1
        entry = Remembered(ask.f, ask.key, ask.process, value=told, base=ask.base, token=ask.token)
        self._ledger.append(msgspec.structs.replace(entry, seq=seq, refusal=refusal or None))
        return Reply(not refusal, refusal, value=told, seq=seq)

    def _refusal(self, ask: Ask, current: str | None) -> str:
        if self._guard == "fence":
            return self._below_the_highest(ask)
        if self._guard == "cas" and ask.f == F.WRITE and ask.base != current:
            base, there = ask.base or "nothing", current or "nothing"
            return f"cas: based on {base}, but the value is {there}"
        return ""

    def _below_the_highest(self, ask: Ask) -> str:
        if ask.token is None:
            return "fenced: no token"
        limit = (self._highest_alone if ask.shared else self._highest).get(ask.key)
        if limit is not None and ask.token < limit:
            return f"fenced: token {ask.token} is below {limit}"
        self._highest[ask.key] = max(ask.token, self._highest.get(ask.key, ask.token))
        if not ask.shared:
            self._highest_alone[ask.key] = ask.token
        return ""

    def forget(self) -> None:
        raise InternalError("the storage is never faulted")

    def ledger(self, time_ns: int) -> Iterator[Event]:
        return ledger_events(self._ledger, time_ns)
