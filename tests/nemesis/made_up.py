"""Nodes, a fleet and faults that exist on paper, and a nemesis that plays with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lockcheck.history import Effect, Event, EventType
from lockcheck.nemesis.aims import CLIENT, HOLDER, LEADER, SERVER
from lockcheck.nemesis.base import FaultKind, Plan, Step
from lockcheck.nemesis.course.schedule import Nemesis
from lockcheck.nemesis.grammar import parse
from lockcheck.nemesis.parameters import choice, duration, flag, number, signed_duration
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Node, NodeSpec, Role


class PaperNode(Node):
    def __init__(self, name: str, role: Role) -> None:
        super().__init__(NodeSpec(name, role), "192.0.2.1", network=-1)


@dataclass
class PaperFleet:
    leading: str | None = None
    breaks: Exception | None = None

    async def end(self, name: str) -> None: ...

    async def start(self, name: str, *, data: bool = True) -> None: ...

    async def ready(self, name: str) -> None: ...

    async def leader(self) -> str | None:
        if self.breaks is not None:
            raise self.breaks
        return self.leading


@dataclass
class Paper:
    """A fault that only notes the calls of its methods."""

    nodes: tuple[str, ...]
    calls: list[str]
    raises: dict[str, list[Exception]]  # by what it is doing, one after the other
    before_ns: int | None = None  # the last moment without an effect

    async def _do(self, what: str) -> None:
        self.calls.append(f"{what} {'+'.join(self.nodes)}")
        await asyncio.sleep(0)
        if self.raises.get(what):
            raise self.raises[what].pop(0)

    async def inject(self) -> int | None:
        await self._do("inject")
        return self.before_ns

    async def prove(self) -> str:
        await self._do("prove")
        return "seen on paper"

    async def heal(self) -> None:
        await self._do("heal")


@dataclass
class PaperKind:
    calls: list[str] = field(default_factory=list)
    raises: dict[str, list[Exception]] = field(default_factory=dict)
    before_ns: int | None = None

    def kind(self, name: str, effect: Effect = Effect.STOPS, lasts_ms: int | None = 1) -> FaultKind:
        def strike(_step: Step, nodes: tuple[str, ...], _scene: Scene) -> Paper:
            return Paper(nodes, self.calls, self.raises, self.before_ns)

        return FaultKind(
            name=name,
            summary="made up",
            effect=effect,
            aims=(SERVER, HOLDER, CLIENT, LEADER),
            strike=strike,
            parameters=(
                signed_duration("jump", "by how much"),
                number("rate", "how fast", low=0, high=10, default=1.0),
                choice("clock", "which", ("wall", "monotonic"), default="wall"),
                duration("ramp", "how long it takes", or_word="never"),
                flag("smooth", "bit by bit"),
            ),
            lasts_ms=lambda _step, _plan: lasts_ms,
        )


@dataclass
class Play:
    """A nemesis on paper, and the events that it records."""

    nemesis: Nemesis
    events: list[Event]

    def recorded(self, kind: EventType | None = None) -> list[str]:
        return [
            f"{event.type} {event.f} {'+'.join(event.nodes or (event.node or '',))}"
            for event in self.events
            if kind in (None, event.type)
        ]


def play(
    texts: Iterable[str],
    kinds: Iterable[FaultKind],
    workdir: Path,
    *,
    nodes: Iterable[PaperNode] = (),
    fleet: PaperFleet | None = None,
    time_limit_ms: int = 1_000_000,
    now_ns: Callable[[], int] | None = None,
) -> Play:
    """Call it inside the event loop."""
    loop, events = asyncio.get_running_loop(), list[Event]()
    began = loop.time()
    known = {kind.name: kind for kind in kinds}
    of_it = {node.name: node for node in nodes} or {"r1": PaperNode("r1", Role.SERVER)}
    nemesis = Nemesis(
        [parse(text, known) for text in texts],
        nodes=of_it,
        fleet=fleet or PaperFleet(),
        plan=Plan(backend="b", ttl_ms=100, time_limit_ms=time_limit_ms, clients=2, servers=1),
        workdir=workdir,
        seed=1,
        now_ns=now_ns or (lambda: int((loop.time() - began) * 1e9)),
        record=events.append,
    )
    return Play(nemesis, events)


def acted(scene: Callable[[], object]) -> None:
    """Runs it with a limit, so that what hangs fails."""

    async def limited() -> None:
        async with asyncio.timeout(60):
            await scene()  # type: ignore[misc]

    asyncio.run(limited())
