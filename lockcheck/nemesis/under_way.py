"""One fault from its beginning to its end, as the history tells it. Nothing it raises gets out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from lockcheck.errors import LockcheckError
from lockcheck.history import Event, EventType, Notice
from lockcheck.history.event import NEMESIS
from lockcheck.nemesis.base import DidNotLastError, Step, Strike
from lockcheck.nemesis.links import Link
from lockcheck.nemesis.triggers import Trigger

# Only so that a fault that hangs cannot keep the others from being healed.
STRIKE_TIMEOUT_S = 30.0
HEAL_TIMEOUT_S = 60.0
HEAL_TRIES = 3
BETWEEN_TRIES_S = 0.1


class UnderWay:
    def __init__(
        self,
        step: Step,
        nodes: tuple[str, ...],
        *,
        trigger: Trigger,
        make: Callable[[], Strike],
        links: tuple[Link, ...] = (),
        number: int,
        lasts_ms: int | None,
        now_ns: Callable[[], int],
        record: Callable[[Event], None],
        struck: Callable[[], None],  # called when it has taken effect,
        ending: Callable[[], None],  # right before it is healed,
        healed: Callable[[], None],  # and when it is over
    ) -> None:
        self.lasts_ms = lasts_ms  # None: until it is ended
        self._step = step
        self._nodes = nodes
        self._links = links
        self._trigger = trigger
        self._make = make
        self._number = number
        self._now_ns = now_ns
        self._record = record
        self._struck = struck
        self._ending = ending
        self._healed = healed
        self._strike: Strike | None = None
        self._end = asyncio.Event()
        self._over = asyncio.Event()

    async def run(self) -> None:
        try:
            if await self._takes():
                await is_set_within(self._end, self.lasts_ms and self.lasts_ms / 1000)
        finally:
            self._ending()
            await self._heal()
            self._healed()
            self._over.set()

    async def end(self) -> None:
        """Before its time. Returns when it is healed."""
        self._end.set()
        await self._over.wait()

    async def _takes(self) -> bool:
        name = self._step.kind.name
        links = tuple((link.sender, link.receiver) for link in self._links) or None
        effect, asked = self._step.kind.effect, str(self._step)
        why = self._trigger.words
        self._say(EventType.INVOKE, name, effect=effect, links=links, asked=asked, value=why)
        try:
            async with asyncio.timeout(STRIKE_TIMEOUT_S):
                self._strike = self._make()
                before = await self._strike.inject()
                since = self._now_ns() if before is None else before
                self._struck()
                proof = await self._strike.prove()
        except Exception as error:  # noqa: BLE001 - whatever it is, the others must be healed
            self._say(EventType.INFO, name, error=in_words(error))
            return False
        self._say(EventType.OK, name, value=proof, since=since)
        return True

    async def _heal(self) -> None:
        for _ in range(HEAL_TRIES):
            self._say(EventType.INVOKE, Notice.HEAL)
            try:
                async with asyncio.timeout(HEAL_TIMEOUT_S):
                    if self._strike is not None:
                        await self._strike.heal()
            except DidNotLastError as error:
                self._say(EventType.INFO, Notice.HEAL, error=in_words(error))
                return
            except Exception as error:  # noqa: BLE001 - it is recorded, and tried again
                self._say(EventType.INFO, Notice.HEAL, error=in_words(error))
                await asyncio.sleep(BETWEEN_TRIES_S)
            else:
                self._say(EventType.OK, Notice.HEAL)
                return

    def _say(self, kind: EventType, f: str, **more: object) -> None:
        one = self._nodes[0] if len(self._nodes) == 1 else None
        several = None if one else self._nodes
        self._record(
            Event(
                time=self._now_ns(),
                process=NEMESIS,
                type=kind,
                f=f,
                fault=self._number,
                node=one,
                nodes=several,
                **more,  # type: ignore[arg-type]
            )
        )


def in_words(error: Exception) -> str:
    if isinstance(error, LockcheckError):
        return error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def is_set_within(event: asyncio.Event, seconds: float | None) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
