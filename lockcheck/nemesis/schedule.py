"""When a fault strikes, and whom. Runs in the agent, beside the nodes and on their clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import count

from lockcheck.errors import FaultError
from lockcheck.history import Event, EventType, F, Notice
from lockcheck.history.event import NEMESIS, NS_PER_MS
from lockcheck.nemesis import FAULTS, NemesisSpec, Target
from lockcheck.nemesis.base import FaultKind
from lockcheck.nodes import Node, Role

# Between two faults: time for the lock to change hands a few times undisturbed.
GAP_S = (0.3, 0.9)


class Nemesis:
    def __init__(
        self,
        specs: Iterable[NemesisSpec],
        *,
        nodes: dict[str, Node],
        ttl_ms: int,
        seed: int,
        now_ns: Callable[[], int],
        until_ns: int,
        record: Callable[[Event], None],
    ) -> None:
        self._specs = list(specs)
        self._nodes = nodes
        self._ttl_ms = ttl_ms
        self._seed = seed
        self._now_ns = now_ns
        self._until_ns = until_ns
        self._record = record
        self._numbers = count(1)
        self._no_more = asyncio.Event()  # begin no further fault
        self._at_once = asyncio.Event()  # heal those that are active before their time
        self._hunters: list[asyncio.Queue[str]] = []
        self._struck: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._haunt(spec, random.Random(f"{self._seed}/{number}/{spec}")))
            for number, spec in enumerate(self._specs)
        ]

    def observe(self, event: Event) -> None:
        """What the clients write, the moment it is read."""
        if event.f == F.ACQUIRE and event.type is EventType.OK and event.node:
            for hunter in self._hunters:
                hunter.put_nowait(event.node)

    async def finish(self, *, at_once: bool) -> None:
        """Returns when no fault is active. Unless `at_once`, those that are run their course."""
        self._no_more.set()
        if at_once:
            self._at_once.set()
        if self._tasks:
            await asyncio.gather(*self._tasks)

    async def _haunt(self, spec: NemesisSpec, choices: random.Random) -> None:
        kind = FAULTS[spec.fault]
        duration_ms = kind.duration_ms(self._ttl_ms)
        while not await _is_set_within(self._no_more, choices.uniform(*GAP_S)):
            if self._now_ns() + duration_ms * NS_PER_MS > self._until_ns:
                return
            name = await self._choose(spec.target, choices)
            if name is not None and name not in self._struck:
                await self._strike(kind, self._nodes[name], duration_ms / 1000)

    async def _choose(self, target: Target, choices: random.Random) -> str | None:
        if target is Target.HOLDER:
            return await self._next_holder(choices.randrange(len(self._names(Role.CLIENT))))
        names = self._names(Role.SERVER)
        if target is Target.RANDOM:
            names += self._names(Role.CLIENT)
        return choices.choice(names)

    async def _next_holder(self, skip: int) -> str | None:
        """Whoever is granted the lock next, after letting `skip` others have it in peace."""
        grants: asyncio.Queue[str] = asyncio.Queue()
        self._hunters.append(grants)
        try:
            for _ in range(skip):
                if await self._or_no_more(grants.get()) is None:
                    return None
            return await self._or_no_more(grants.get())
        finally:
            self._hunters.remove(grants)

    async def _or_no_more(self, grant: Coroutine[None, None, str]) -> str | None:
        waiting = asyncio.create_task(grant)
        over = asyncio.create_task(self._no_more.wait())
        await asyncio.wait((waiting, over), return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if waiting.done():
            return waiting.result()
        waiting.cancel()
        return None

    async def _strike(self, kind: FaultKind, node: Node, duration_s: float) -> None:
        number, fault = next(self._numbers), kind.make()
        self._struck.add(node.name)
        self._say(EventType.INVOKE, kind.name, node, number)
        try:
            proof = await fault.inject(node)
            self._say(EventType.OK, kind.name, node, number, value=proof)
            await _is_set_within(self._at_once, duration_s)
        except FaultError as error:
            self._say(EventType.INFO, kind.name, node, number, error=error.message)
        finally:
            self._say(EventType.INVOKE, Notice.HEAL, node, number)
            try:
                await fault.heal(node)
                self._say(EventType.OK, Notice.HEAL, node, number)
            except FaultError as error:
                self._say(EventType.INFO, Notice.HEAL, node, number, error=error.message)
            self._struck.discard(node.name)

    def _say(
        self,
        kind: EventType,
        f: str,
        node: Node,
        number: int,
        *,
        value: str | None = None,
        error: str | None = None,
    ) -> None:
        self._record(
            Event(
                time=self._now_ns(),
                process=NEMESIS,
                type=kind,
                f=f,
                node=node.name,
                fault=number,
                value=value,
                error=error,
            )
        )

    def _names(self, role: Role) -> list[str]:
        return [name for name, node in self._nodes.items() if node.role is role]


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
