"""How clients write history: the invocation before it is sent, the answer once it is known."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from msgspec import structs

from lockcheck.history import Event, EventType, F, Notice, Refusal
from lockcheck.history.event import NS_PER_MS

# Processes, keepers and marks of a client that was restarted are numbered from a multiple of this,
# so that they differ from those before. A run has fewer milliseconds, and each process takes
# longer.
A_LIFE = 100_000_000


def stall_ms(ttl_ms: int) -> float:
    """The shortest stall that is recorded: far below the lease, above a machine's usual hiccups."""
    return min(50.0, ttl_ms / 10)


class Writer(Protocol):
    def write(self, event: Event) -> object: ...

    def close(self) -> None: ...


class Recorder:
    """Writes one client's history. Thread-safe: the client, its ticker and its keepers use it."""

    def __init__(
        self,
        writer: Writer,
        node: str,
        index: int,
        clients: int,
        *,
        origin_ns: int,
        stall_ms: float,
        generation: int = 0,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._writer = writer
        self._writing = threading.Lock()  # time and line in one step, so that the file is in order
        self._node = node
        self._clients = clients
        self._origin_ns = origin_ns
        self._now_ns = now_ns
        self._stall_ms = stall_ms
        self._closed = False
        self.process = index + clients * A_LIFE * generation
        self._keepers = A_LIFE * generation  # their number so far
        self._idle_keepers: list[str] = []

    def invoke(
        self,
        f: str,
        key: str,
        *,
        value: object = None,
        base: object = None,
        token: int | None = None,
        ttl_ms: int | None = None,
        shared: bool = False,
    ) -> Event:
        """Begins an operation; `answer` ends it."""
        asked = 0, self.process, EventType.INVOKE, f, key, value
        return self._write(Event(*asked, token=token, base=base, ttl_ms=ttl_ms, shared=shared))

    def keeper_renews(self, key: str, ttl_ms: int, *, of: int) -> Event:
        """Begins a renewal: an operation of a keeper, on behalf of the process `of`."""
        return self._beside(Event(0, "", EventType.INVOKE, F.RENEW, key, ttl_ms=ttl_ms, of=of))

    def begins_to_write(
        self, f: str, key: str, *, value: object, base: object, token: int | None
    ) -> Event:
        """Begins a write that is under way, beside others, until the release is confirmed."""
        of = self.process
        write = Event(0, "", EventType.INVOKE, f, key, value=value, base=base, token=token, of=of)
        return self._beside(write)

    def _beside(self, event: Event) -> Event:
        with self._writing:
            if self._idle_keepers:
                keeper = self._idle_keepers.pop()
            else:
                self._keepers += 1
                keeper = f"{self._node}-keeper-{self._keepers}"
        return self._write(structs.replace(event, process=keeper))

    def answer(
        self,
        invoke: Event,
        outcome: EventType,
        error: str | None = None,
        refused: Refusal | None = None,
        *,
        value: object = None,
        token: int | None = None,
        valid_ms: float | None = None,
        seq: int | None = None,
        blind: bool = False,
    ) -> None:
        answer = structs.replace(
            invoke,
            type=outcome,
            value=value,
            token=token,
            valid_ms=None if valid_ms is None else round(valid_ms, 3),
            seq=seq,
            error=error,
            refused=refused,
            blind=blind,
            ttl_ms=None,
        )
        self._write(answer)
        self._retire_or_reuse(answer.process, outcome)

    def _retire_or_reuse(self, process: int | str, outcome: EventType) -> None:
        """After an `info` it may still be under way, so its process is never used again."""
        retired = outcome is EventType.INFO
        if isinstance(process, int):
            self.process += self._clients if retired else 0
        elif not retired:
            with self._writing:
                self._idle_keepers.append(process)

    def queued(self, key: str) -> None:
        self._write(Event(0, self.process, EventType.INFO, Notice.QUEUED, key))

    def lost(self, key: str, reason: str) -> None:
        self._write(Event(0, self.process, EventType.INFO, Notice.LOST, key, error=reason))

    def mishap(self, what: str, lived_ns: int) -> None:
        """Records the end of the program that the client works through, and when it lived last."""
        since = lived_ns - self._origin_ns
        program = Event(0, self.process, EventType.INFO, Notice.PROGRAM, error=what, since=since)
        self._write(program)

    def stalled_if_long(self, length_ms: float, why: str | None = None) -> None:
        """Records time in which this client could not work, for a reason other than the lock."""
        if length_ms > self._stall_ms:
            length = round(length_ms, 3)
            stall = Event(0, self.process, EventType.INFO, Notice.STALL, value=length, error=why)
            self._write(stall)

    def _write(self, event: Event) -> Event:
        with self._writing:
            now_ns = self._now_ns()
            event = structs.replace(event, time=now_ns - self._origin_ns, node=self._node)
            if not self._closed:  # a late keeper's renewal stays without an answer
                self._writer.write(event)
            took_ms = (self._now_ns() - now_ns) / NS_PER_MS
        if event.f != Notice.STALL:
            self.stalled_if_long(took_ms)  # a wait for the disk is a stall of the machine, too
        return event

    def close(self) -> None:
        with self._writing:
            self._closed = True
            self._writer.close()
