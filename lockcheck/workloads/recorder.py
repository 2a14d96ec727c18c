"""How clients write history: the invocation before it is sent, the answer once it is known."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from lockcheck.history import Event, EventType, EventWriter, Notice


@dataclass(frozen=True, slots=True)
class Pending:
    invoke: Event


class Recorder:
    """One per client process. Safe to be used by the client and by its ticker."""

    def __init__(self, path: Path, node: str, index: int, clients: int, origin_ns: int) -> None:
        self._writer = EventWriter(path)
        self._writing = threading.Lock()  # time and line are one step, or the file is not in order
        self._node = node
        self._clients = clients
        self._origin_ns = origin_ns
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

    def stalled(self, length_ms: float) -> None:
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
            self._writer.write(event)
        return event

    def close(self) -> None:
        self._writer.close()
