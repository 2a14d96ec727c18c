"""What a fault waits for: a client stays where it is to be struck, and is let go in time."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from lockcheck.client.aims import waits_there
from lockcheck.history import Effect, Event, EventType
from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.base import FaultKind
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.course.hunt import hunting
from lockcheck.nemesis.triggers import Trigger
from lockcheck.nodes.node import Role
from lockcheck.nodes.waiting import wait_until
from tests.nemesis.client_events import asks, grant, granted, release
from tests.nemesis.made_up import PaperFleet, PaperKind, PaperNode, Play, acted, play
from tests.nemesis.plans import plan

NAMES = ("c1", "c2", "c3")
NODES = [PaperNode("r1", Role.SERVER), *(PaperNode(name, Role.CLIENT) for name in NAMES)]
WITH_STORAGE = plan("redis", 1, writes=True)


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name / "aims").mkdir(parents=True)
    return tmp_path


def marks(workdir: Path, node: str) -> list[str]:
    """The points at which it is asked to stay."""
    return sorted(path.name.partition("-")[0] for path in (workdir / node / "aims").iterdir())


def stands(workdir: Path, node: str) -> None:
    for path in (workdir / node / "aims").iterdir():
        os.truncate(path, 1)


def stood(workdir: Path, node: str) -> bool:
    return any(map(waits_there, (workdir / node / "aims").iterdir()))


@pytest.mark.parametrize(
    ("text", "plan", "trigger"),
    [
        ("pause", WITH_STORAGE, Trigger.WRITE),
        ("pause", replace(WITH_STORAGE, writes=False), Trigger.ACQUIRE),
        ("partition", WITH_STORAGE, Trigger.ACQUIRE),
        ("kill:holder", WITH_STORAGE, Trigger.ACQUIRE),
        ("pause:server", WITH_STORAGE, Trigger.SCHEDULE),
        ("pause:client", WITH_STORAGE, Trigger.SCHEDULE),
        ("kill:server,when=release", WITH_STORAGE, Trigger.RELEASE),
        ("pause:when=expiry", WITH_STORAGE, Trigger.EXPIRY),
    ],
)
def test_what_is_waited_for(text: str, plan: Plan, trigger: Trigger) -> None:
    (step,) = parse_nemesis(text)
    assert step.trigger(plan) is trigger


@pytest.mark.parametrize(
    ("trigger", "point"), [(Trigger.WRITE, "write"), (Trigger.RELEASE, "release")]
)
def test_who_stands_at_the_point_is_caught(trigger: Trigger, point: str, workdir: Path) -> None:
    async def scene() -> None:
        holders = Holders(workdir)
        with hunting(holders, trigger, NAMES, lambda _: True) as hunt:
            catching = asyncio.create_task(hunt.catch())
            await wait_until(lambda: marks(workdir, "c2") == [point], "it is asked to", 30)
            grant(holders, "c1")  # that is not the point
            await asyncio.sleep(0.05)
            assert not catching.done()
            stands(workdir, "c2")
            let_go = hunt.keep(await catching, at_work=True)
        assert [marks(workdir, name) for name in NAMES] == [[], [point], []]
        let_go()
        assert marks(workdir, "c2") == []

    acted(scene)


def test_near_expiry_counts_from_the_last_renewal(workdir: Path) -> None:
    def event(kind: EventType, f: str, **more: int | float) -> Event:
        return replace_all(Event(time=0, process=0, type=kind, f=f, key="k1", node="c1"), more)

    async def scene() -> None:
        holders, loop = Holders(workdir), asyncio.get_running_loop()
        with hunting(holders, Trigger.EXPIRY, NAMES, lambda _: True) as hunt:
            holders.observe(event(EventType.INVOKE, "acquire", ttl_ms=400))
            holders.observe(event(EventType.OK, "acquire"))  # without a validity
            catching = asyncio.create_task(hunt.catch())
            await asyncio.sleep(0.2)
            began = loop.time()
            holders.observe(event(EventType.OK, "renew", valid_ms=400.0))
            assert await catching == "c1"
            # As long after it as three quarters of what lay between it and the grant.
            assert 0.14 <= loop.time() - began < 5
            assert marks(workdir, "c1") == ["lease"]
            let_go = hunt.keep("c1", at_work=True)
            assert marks(workdir, "c1") == ["work"]  # from here on, however long it takes
            let_go()

    acted(scene)


def replace_all(event: Event, more: dict[str, int | float]) -> Event:
    return structs.replace(event, **more)


def kind(effect: Effect) -> FaultKind:
    return PaperKind().kind("fault", effect, lasts_ms=300)


@pytest.mark.parametrize(
    ("text", "effect", "while_active"),
    [
        ("fault:holder,when=acquire", Effect.STOPS, ["work"]),
        ("fault:holder,when=acquire", Effect.CUTS, ["work"]),
        ("fault:holder,when=acquire", Effect.ENDS, []),
        ("fault:holder,when=acquire", Effect.SKEWS, ["lease"]),  # its work takes no longer for that
        ("fault:holder,when=expiry", Effect.CUTS, ["work"]),
        ("fault:holder,when=write", Effect.STOPS, ["write"]),
        ("fault:holder,when=write", Effect.CUTS, []),
        ("fault:server,when=write", Effect.STOPS, []),
        ("fault:server,when=acquire", Effect.CUTS, []),
        ("fault:leader,when=release", Effect.ENDS, []),
    ],
)
def test_how_long_a_client_is_kept(
    text: str, effect: Effect, while_active: list[str], workdir: Path
) -> None:
    """A struck client that runs feels the fault at work; none stands still for long because of us,
    nor for a fault that strikes another node."""

    async def scene() -> None:
        fleet = PaperFleet(leading="r1")
        acting = play([f"{text},gap=1ms"], [kind(effect)], workdir, nodes=NODES, fleet=fleet)
        acting.nemesis.start()
        node = await struck_at(acting, workdir)
        assert acting.events[0].node == (node if "holder" in text else "r1")
        assert marks(workdir, node) == while_active
        await acting.nemesis.finish(at_once=True)
        assert marks(workdir, node) == []

    acted(scene)


async def struck_at(acting: Play, workdir: Path) -> str:
    """Lets clients come and go, and stand where they are asked to; returns the one that was struck,
    or stood there when a server was. On a busy machine the next one may be there already."""
    while True:
        for node in NAMES:
            acting.nemesis.observe(asks(node))
            acting.nemesis.observe(valid(granted(node)))
            stands(workdir, node)
            await asyncio.sleep(0.03)
            if any(event.type is EventType.OK for event in acting.events):
                struck = acting.events[0].node
                return struck if struck in NAMES else node
            release(acting.nemesis, node)


def valid(event: Event) -> Event:
    return replace_all(event, {"valid_ms": 10.0})


def test_while_there_is_nobody_to_strike_nobody_is_kept(workdir: Path) -> None:
    async def scene() -> None:
        fleet = PaperFleet()
        text = "fault:leader,when=write,gap=1ms"
        acting = play([text], [kind(Effect.ENDS)], workdir, nodes=NODES, fleet=fleet)
        acting.nemesis.start()
        while not marks(workdir, "c1"):
            grant(acting.nemesis, "c1")
            await asyncio.sleep(0.01)
        for _ in range(3):
            await wait_until(lambda: marks(workdir, "c1") == ["write"], "it is asked to", 30)
            stands(workdir, "c1")
            await wait_until(lambda: not stood(workdir, "c1"), "it was let go", 30)
        assert not acting.events
        fleet.leading = "r1"
        await struck_at(acting, workdir)
        await acting.nemesis.finish(at_once=True)

    acted(scene)


def test_the_history_says_what_it_waited_for(workdir: Path) -> None:
    async def scene() -> None:
        texts = ["fault:holder,when=write,gap=1ms"]
        acting = play(texts, [kind(Effect.STOPS)], workdir, nodes=NODES)
        acting.nemesis.start()
        await struck_at(acting, workdir)
        await acting.nemesis.finish(at_once=True)
        assert acting.events[0].value == "on write"

    acted(scene)
