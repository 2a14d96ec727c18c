"""How simulated clients write history: as the real ones do, in virtual time."""

from __future__ import annotations

from collections.abc import Callable

from lockcheck.history import Event, EventType, Notice
from tests.simulation.world import World


class Recorder:
    """One per client. Its process is retired by an answer that nobody heard."""

    def __init__(
        self, world: World, record: Callable[[Event], None], node: str, index: int, clients: int
    ) -> None:
        self._world = world
        self._record = record
        self._node = node
        self._clients = clients
        self.process = index

    def invoke(
        self,
        f: str,
        key: str,
        *,
        value: str | None = None,
        base: str | None = None,
        token: int | None = None,
        ttl_ms: int | None = None,
        of: int | None = None,
        shared: bool = False,
    ) -> Event:
        event = Event(
            time=self._world.now_ns,
            process=self.process,
            type=EventType.INVOKE,
            f=f,
            key=key,
            value=value,
            node=self._node,
            token=token,
            base=base,
            ttl_ms=ttl_ms,
            of=of,
            shared=shared,
        )
        self._record(event)
        return event

    def answer(
        self,
        invoke: Event,
        outcome: EventType,
        error: str | None = None,
        *,
        value: object = None,
        token: int | None = None,
        valid_ms: float | None = None,
        seq: int | None = None,
    ) -> None:
        self._record(
            Event(
                time=self._world.now_ns,
                process=self.process,
                type=outcome,
                f=invoke.f,
                key=invoke.key,
                value=value,
                node=self._node,
                token=token,
                error=error or None,
                seq=seq,
                base=invoke.base,
                valid_ms=valid_ms,
                shared=invoke.shared,
            )
        )
        if outcome is EventType.INFO:
            self.process += self._clients

    def lost(self, key: str, why: str) -> None:
        self._notice(Notice.LOST, key, why)

    def queued(self, key: str) -> None:
        self._notice(Notice.QUEUED, key, None)

    def _notice(self, f: str, key: str, why: str | None) -> None:
        self._record(
            Event(
                time=self._world.now_ns,
                process=self.process,
                type=EventType.INFO,
                f=f,
                key=key,
                node=self._node,
                error=why,
            )
        )
