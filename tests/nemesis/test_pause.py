"""A pause is real, proven and healed; what cannot be proven is said to be unproven."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lockcheck.errors import FaultError, UserError
from lockcheck.history import Event, EventType
from lockcheck.nemesis import FAULTS, NemesisSpec, Target, nemesis_choices, parse_nemesis
from lockcheck.nemesis.base import wait_until
from lockcheck.nemesis.pause import Pause
from lockcheck.nemesis.schedule import Nemesis
from lockcheck.nodes import Node, Role
from tests.waiting import wait_for

TWO_THREADS = "import threading; threading.Thread(target=input).start(); input()"


@pytest.fixture
def node() -> Iterator[Node]:
    process = subprocess.Popen([sys.executable, "-c", TWO_THREADS], stdin=subprocess.PIPE)
    node = Node("c1", Role.CLIENT, "192.0.2.1", process.pid)
    wait_for(lambda: len(node.thread_states()) == 2, "both threads are there")
    yield node
    process.kill()
    process.wait()


def test_every_thread_stops_and_runs_again(node: Node) -> None:
    pause = Pause()
    assert asyncio.run(pause.inject(node)) == "2 of 2 threads in state T"
    assert node.thread_states() == ["T", "T"]
    asyncio.run(pause.heal(node))
    assert "T" not in node.thread_states()


def test_healing_twice_or_a_dead_process_is_harmless(node: Node) -> None:
    pause = Pause()
    asyncio.run(pause.inject(node))
    asyncio.run(pause.heal(node))
    asyncio.run(pause.heal(node))
    os.kill(node.pid, signal.SIGKILL)
    wait_for(lambda: not node.alive, "it is dead")
    asyncio.run(pause.heal(node))


def test_a_process_that_is_not_there_proves_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    with pytest.raises(FaultError):
        asyncio.run(Pause().inject(Node("c1", Role.CLIENT, "192.0.2.1", process.pid)))


def test_a_zombie_proves_nothing() -> None:
    process = subprocess.Popen(["true"])
    gone = Node("c1", Role.CLIENT, "192.0.2.1", process.pid)
    wait_for(lambda: not gone.alive, "it has ended")
    with pytest.raises(FaultError):
        asyncio.run(_soon(Pause(), gone))
    process.wait()


async def _soon(pause: Pause, node: Node) -> None:
    async with asyncio.timeout(20):
        await pause.inject(node)


def grant_to(node: str, time: int = 0) -> Event:
    return Event(time=time, process=0, type=EventType.OK, f="acquire", key="k1", node=node)


def haunt(nodes: list[Node], spec: NemesisSpec, *, at_once: bool) -> list[Event]:
    """A nemesis for a lease of 100 ms, until its first fault has been healed."""
    said: list[Event] = []

    async def scene() -> None:
        began = asyncio.get_running_loop().time()
        nemesis = Nemesis(
            [spec],
            nodes={node.name: node for node in nodes},
            ttl_ms=100,
            seed=1,
            now_ns=lambda: int((asyncio.get_running_loop().time() - began) * 1e9),
            until_ns=10**12,
            record=said.append,
        )
        nemesis.start()
        while not any(event.type is EventType.OK for event in said):
            nemesis.observe(grant_to(nodes[0].name))
            await asyncio.sleep(0.005)
        await nemesis.finish(at_once=at_once)

    asyncio.run(asyncio.wait_for(scene(), 60))
    return said


@pytest.mark.parametrize("at_once", [False, True])
def test_it_strikes_the_holder_says_so_and_heals(node: Node, at_once: bool) -> None:
    other = Node("c2", Role.CLIENT, "192.0.2.2", os.getpid())
    said = haunt([node, other], NemesisSpec("pause", Target.HOLDER), at_once=at_once)
    assert [(event.type, event.f, event.node) for event in said] == [
        (EventType.INVOKE, "pause", "c1"),
        (EventType.OK, "pause", "c1"),
        (EventType.INVOKE, "heal", "c1"),
        (EventType.OK, "heal", "c1"),
    ]
    lasted_ms = (said[2].time - said[1].time) / 1e6
    assert at_once or lasted_ms >= FAULTS["pause"].duration_ms(100)
    assert "T" not in node.thread_states()


def test_a_server_is_struck_when_asked_for(node: Node) -> None:
    server = Node("r1", Role.SERVER, "192.0.2.3", node.pid)
    client = Node("c1", Role.CLIENT, "192.0.2.1", os.getpid())
    said = haunt([server, client], NemesisSpec("pause", Target.SERVER), at_once=True)
    assert {event.node for event in said} == {"r1"}


def test_what_did_not_take_is_recorded_as_such() -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    gone = Node("r1", Role.SERVER, "192.0.2.3", process.pid)
    said: list[Event] = []

    async def scene() -> None:
        nemesis = Nemesis(
            [NemesisSpec("pause", Target.SERVER)],
            nodes={"r1": gone},
            ttl_ms=100,
            seed=1,
            now_ns=lambda: 0,
            until_ns=10**12,
            record=said.append,
        )
        nemesis.start()
        await wait_until(lambda: len(said) >= 2, "it says that it did not take", 30)
        await nemesis.finish(at_once=True)

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert [event.type for event in said[:2]] == [EventType.INVOKE, EventType.INFO]
    assert "no process" in (said[1].error or "")


def test_no_fault_is_begun_that_cannot_end_in_time() -> None:
    said: list[Event] = []

    async def scene() -> None:
        nemesis = Nemesis(
            [NemesisSpec("pause", Target.SERVER)],
            nodes={"r1": Node("r1", Role.SERVER, "192.0.2.3", os.getpid())},
            ttl_ms=1000,
            seed=1,
            now_ns=lambda: 0,
            until_ns=FAULTS["pause"].duration_ms(1000) * 10**6 - 1,
            record=said.append,
        )
        nemesis.start()
        await asyncio.gather(*nemesis._tasks)  # it ends by itself

    asyncio.run(asyncio.wait_for(scene(), 60))
    assert said == []


def test_a_pause_outlasts_the_lease() -> None:
    assert all(FAULTS["pause"].duration_ms(ttl_ms) > ttl_ms for ttl_ms in (50, 1000, 60_000))


@pytest.mark.parametrize("text", nemesis_choices())
def test_what_is_offered_is_taken(text: str) -> None:
    spec = parse_nemesis(text)
    assert (spec is None) == (text == "none")


@pytest.mark.parametrize("text", ["", "pause:", "paus", "pause:holder:x", "none:holder", ":holder"])
def test_what_is_not_offered_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="no nemesis"):
        parse_nemesis(text)
