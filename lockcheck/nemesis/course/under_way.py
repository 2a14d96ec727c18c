"""One fault from injection to healing, recorded in the history with any error it raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field

from msgspec import structs

from lockcheck.errors import LockcheckError
from lockcheck.history import Event, EventType, Notice
from lockcheck.history.event import NEMESIS
from lockcheck.nemesis.base import DidNotLastError, Step, Strike
from lockcheck.nemesis.network.links import Link
from lockcheck.nemesis.scene import Scene
from lockcheck.nemesis.triggers import Trigger

# So that a fault that hangs cannot keep the others from being healed.
STRIKE_TIMEOUT_S = 30.0
HEAL_TIMEOUT_S = 60.0
HEAL_TRIES = 3
BETWEEN_TRIES_S = 0.1


@dataclass(slots=True, eq=False)
class UnderWay:
    step: Step
    nodes: tuple[str, ...]
    _: KW_ONLY
    scene: Scene
    trigger: Trigger
    number: int
    lasts_ms: int | None  # None: until `end` is called
    now_ns: Callable[[], int]
    record: Callable[[Event], object]
    on_struck: Callable[[], object] = lambda: None
    on_ending: Callable[[], object] = lambda: None  # right before it is healed
    on_healed: Callable[[], object] = lambda: None
    _links: tuple[Link, ...] = field(init=False)
    _strike: Strike | None = None
    _end: asyncio.Event = field(default_factory=asyncio.Event)
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._links = self.step.kind.links(self.step, self.nodes, self.scene)

    async def run(self) -> None:
        """Injects and proves the fault, waits until its time is over, and heals it."""
        try:
            if await self._inject():
                await is_set_within(self._end, self.lasts_ms and self.lasts_ms / 1000)
        finally:
            self.on_ending()
            await self._heal()
            self.on_healed()
            self._over.set()

    async def end(self) -> None:
        """Ends it early. Returns when it is healed."""
        self._end.set()
        await self._over.wait()

    async def _inject(self) -> bool:
        """Whether it has taken effect and was proven."""
        name = self.step.kind.name
        links = tuple((link.sender, link.receiver) for link in self._links) or None
        effect, asked = self.step.kind.effect, self.step.asked
        why = self.trigger.words
        self._note(EventType.INVOKE, name, effect=effect, links=links, asked=asked, value=why)
        try:
            async with asyncio.timeout(STRIKE_TIMEOUT_S):
                self._strike = self.step.kind.strike(self.step, self.nodes, self.scene)
                before = await self._strike.inject()
                since = self.now_ns() if before is None else before
                self.on_struck()
                proof = await self._strike.prove()
        except Exception as error:  # noqa: BLE001 - the other faults must still be healed
            self._note(EventType.INFO, name, error=in_words(error))
            return False
        self._note(EventType.OK, name, value=proof, since=since)
        return True

    async def _heal(self) -> None:
        for _ in range(HEAL_TRIES):
            self._note(EventType.INVOKE, Notice.HEAL)
            try:
                async with asyncio.timeout(HEAL_TIMEOUT_S):
                    if self._strike is not None:
                        await self._strike.heal()
            except DidNotLastError as error:
                self._note(EventType.INFO, Notice.HEAL, error=in_words(error))
                return
            except Exception as error:  # noqa: BLE001 - it is recorded, and tried again
                self._note(EventType.INFO, Notice.HEAL, error=in_words(error))
                await asyncio.sleep(BETWEEN_TRIES_S)
            else:
                self._note(EventType.OK, Notice.HEAL)
                return

    def _note(self, kind: EventType, f: str, **more: object) -> None:
        one = self.nodes[0] if len(self.nodes) == 1 else None
        several = None if one else self.nodes
        event = Event(self.now_ns(), NEMESIS, kind, f, fault=self.number, node=one, nodes=several)
        self.record(structs.replace(event, **more))


def in_words(error: Exception) -> str:
    """Its message; for an error that is not ours, with its type."""
    if isinstance(error, LockcheckError):
        return error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def first_set(*events: asyncio.Event, within_s: float) -> None:
    """Waits for any of the events, or for so long."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waiting, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


async def is_set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Waits for the event, `seconds` at most (None: without a limit)."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
