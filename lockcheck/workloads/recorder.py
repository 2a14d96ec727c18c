"""How clients write history: the invocation before it is sent, the answer once it is known."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lockcheck.history import Event, EventType, EventWriter, Notice


def stall_ms(ttl_ms: int) -> float:
    """Shorter hiccups are every machine's daily life, and far below the lease."""
    return min(50.0, ttl_ms / 10)


@dataclass(frozen=True, slots=True)
class Pending:
    invoke: Event


class Recorder:
    """One per client process. Safe to be used by the client and by its ticker."""

    def __init__(
        self, path: Path, node: str, index: int, clients: int, *, origin_ns: int, stall_ms: float
    ) -> None:
        self._writer = EventWriter(path)
        self._writing = threading.Lock()  # time and line are one step, or the file is not in order
        self._node = node
        self._clients = clients
        self._origin_ns = origin_ns
        self._stall_ms = stall_ms
        self.process = index

    def invoke(
        self,
        f: str,
        key: str,
        *,
        value: object = None,
        base: object = None,
        token: int | None = None,
        ttl_ms: int | None = None,
    ) -> Pending:
        return Pending(
            self._write(
                EventType.INVOKE, f, key, value=value, base=base, token=token, ttl_ms=ttl_ms
            )
        )

    def answer(
        self,
        pending: Pending,
        outcome: EventType,
        error: str | None = None,
        *,
        value: object = None,
        token: int | None = None,
        valid_ms: float | None = None,
        seq: int | None = None,
    ) -> None:
        invoke = pending.invoke
        self._write(
            outcome,
            invoke.f,
            invoke.key,
            value=value,
            base=invoke.base,
            token=token,
            valid_ms=None if valid_ms is None else round(valid_ms, 3),
            seq=seq,
            error=error,
        )
        if outcome is EventType.INFO:
            self.process += self._clients  # nobody knows what the old one did: it is retired

    def lost(self, key: str, reason: str) -> None:
        self._write(EventType.INFO, Notice.LOST, key, error=reason)

    def stalled_if_long(self, length_ms: float) -> None:
        """Time in which this client could not do its work, through no doing of the lock."""
        if length_ms > self._stall_ms:
            self._write(EventType.INFO, Notice.STALL, None, value=round(length_ms, 3))

    def _write(
        self,
        kind: EventType,
        f: str,
        key: str | None,
        *,
        value: object = None,
        base: object = None,
        token: int | None = None,
        ttl_ms: int | None = None,
        valid_ms: float | None = None,
        seq: int | None = None,
        error: str | None = None,
    ) -> Event:
        with self._writing:
            event = Event(
                time=time.monotonic_ns() - self._origin_ns,
                process=self.process,
                type=kind,
                f=f,
                key=key,
                value=value,
                node=self._node,
                base=base,
                token=token,
                ttl_ms=ttl_ms,
                valid_ms=valid_ms,
                seq=seq,
                error=error,
            )
            began = time.monotonic()
            self._writer.write(event)
            took_ms = (time.monotonic() - began) * 1000
        if f != Notice.STALL:
            self.stalled_if_long(took_ms)  # a disk that makes us wait is the machine's hiccup, too
        return event

    def close(self) -> None:
        self._writer.close()
