"""Faults that are begun and ended from outside: proven, healed, cancelled; here at one process."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from lockcheck.agent.by_hand import FaultsByHand
from lockcheck.agent.fleet import Fleet
from lockcheck.agent.orders import StrikeOrders, Struck
from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis import Plan, parse_nemesis
from tests.processes import OneProcess

PLAN = Plan(backend="redis", ttl_ms=1000, time_limit_ms=60_000, clients=1, servers=0)


@pytest.fixture
def node() -> Iterator[OneProcess]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield OneProcess("c1", process.pid)
        process.kill()


def by_hand(node: OneProcess, folder: Path) -> FaultsByHand:
    fleet = cast("Fleet", SimpleNamespace(nodes={node.name: node}))
    return FaultsByHand(fleet, folder, PLAN, lambda _message: None)


def orders(number: int, asked: str, *nodes: str) -> object:
    (step,) = parse_nemesis(asked)
    return msgspec.to_builtins(StrikeOrders(number, step.orders(), nodes))


async def struck(faults: FaultsByHand, number: int, asked: str, *nodes: str) -> Struck:
    reply = await faults.requests["strike"](orders(number, asked, *nodes))
    return msgspec.convert(msgspec.to_builtins(reply), Struck)  # as it comes through the pipe


def test_it_is_proven_and_lasts_until_it_is_healed(node: OneProcess, tmp_path: Path) -> None:
    async def strike_and_heal() -> Struck:
        faults = by_hand(node, tmp_path)
        events = await struck(faults, 7, "pause", "c1")
        assert set(node.thread_states()) == {"T"}
        await faults.requests["heal"](7)
        assert "T" not in node.thread_states()
        await faults.requests["heal"](7)  # harmless
        return events

    events = asyncio.run(strike_and_heal())
    assert (events.begun.asked, events.begun.struck, events.begun.fault) == ("pause:c1", ("c1",), 7)
    assert events.begun.effect is Effect.STOPS
    assert events.proven.value == "1 of 1 threads in state T"


def test_an_aim_chooses_and_the_end_heals_what_is_left(node: OneProcess, tmp_path: Path) -> None:
    async def strike_and_leave() -> None:
        faults = by_hand(node, tmp_path)
        assert (await struck(faults, 1, "pause:client")).begun.struck == ("c1",)
        await faults.finish()

    asyncio.run(strike_and_leave())
    assert "T" not in node.thread_states()


def test_what_is_not_proven_is_told_with_its_cause(node: OneProcess, tmp_path: Path) -> None:
    node.pid = 2**22 + 1  # no process has it
    with pytest.raises(FaultError, match="pause:c1 was not proven: c1 has no process left"):
        asyncio.run(struck(by_hand(node, tmp_path), 1, "pause", "c1"))


def test_what_was_called_off_before_it_struck_never_does(node: OneProcess, tmp_path: Path) -> None:
    async def call_off() -> None:
        faults = by_hand(node, tmp_path)
        node.down = True  # then there is no node to aim at
        striking = asyncio.create_task(struck(faults, 1, "pause:client"))
        await asyncio.sleep(0)
        await faults.requests["heal"](1)
        node.down = False
        await striking

    with pytest.raises(FaultError, match="was cancelled"):
        asyncio.run(call_off())
    assert "T" not in node.thread_states()
