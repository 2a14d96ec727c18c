"""After the last fault a run goes on until its locks are granted again, or are known not to be."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.history import Event, EventType
from lockcheck.nemesis.base import Plan
from lockcheck.nemesis.course.quiet import Quiet, longest_quiet_ms
from lockcheck.nodes.node import Role
from lockcheck.nodes.waiting import wait_until
from tests.nemesis.client_events import granted
from tests.nemesis.made_up import PaperKind, PaperNode, acted, play

PLAN = Plan(backend="b", ttl_ms=200, time_limit_ms=1000, clients=2, servers=1, keys=("k1", "k2"))
INVOKE, OK, INFO = EventType.INVOKE, EventType.OK, EventType.INFO


BEGAN_NS = 7


def asked(key: str = "k1", time: int = BEGAN_NS) -> Event:
    return Event(time=time, process=1, type=INVOKE, f="acquire", key=key, node="c1")


def got(key: str = "k1", time: int = BEGAN_NS) -> Event:
    return granted("c1", key, time)


def test_it_ends_when_each_lock_was_asked_for_and_granted_since() -> None:
    async def scene() -> None:
        events: list[Event] = []
        quiet = Quiet(replace(PLAN, ttl_ms=60_000), now_ns=lambda: BEGAN_NS, record=events.append)
        passing = asyncio.create_task(quiet.wait())
        await asyncio.sleep(0)
        late = (asked("k2", BEGAN_NS - 1), got("k2", BEGAN_NS - 1))  # read late
        for event in (got(), asked(), got(), *late, got("k2"), asked("k2")):
            quiet.observe(event)
            await asyncio.sleep(0.01)
            assert not passing.done()
        quiet.observe(got("k2"))
        await passing
        assert [(event.type, event.f, event.fault) for event in events] == [
            (INVOKE, "quiet", None),
            (OK, "quiet", None),
        ]

    acted(scene)


def test_it_ends_in_vain_and_says_so() -> None:
    async def scene() -> None:
        events: list[Event] = []
        quiet = Quiet(replace(PLAN, ttl_ms=1), now_ns=lambda: BEGAN_NS, record=events.append)
        await quiet.wait()
        assert (events[1].type, events[1].error) == (INFO, "no client was granted k1, k2")

    acted(scene)


@pytest.mark.parametrize(
    ("plan", "longest_ms"),
    [
        (PLAN, 400 + 1000 + 1000),
        (replace(PLAN, ttl_ms=2000), 4000 + 4000 + 1000),
        (replace(PLAN, ttl_ms=2000, lapses_after=3), 6000 + 4000 + 1000),
        (replace(PLAN, ttl_ms=1000, patience_ttls=4), 2000 + 20_000 + 1000),
        (replace(PLAN, ttl_ms=3_600_000), 120_000),
    ],
)
def test_it_lasts_until_a_lock_is_known_to_be_stuck(plan: Plan, longest_ms: int) -> None:
    assert longest_quiet_ms(plan) == longest_ms


@pytest.mark.parametrize("down", [False, True])
def test_there_is_none_where_a_server_never_comes_back(down: bool, tmp_path: Path) -> None:
    async def scene() -> None:
        server = PaperNode("r1", Role.SERVER)
        acting = play(["slow:gap=1ms"], [PaperKind().kind("slow")], tmp_path, nodes=[server])
        acting.nemesis.start()
        await wait_until(lambda: bool(acting.events), "it has struck", 30)
        await acting.nemesis.finish(at_once=True)
        server.down = down
        await acting.nemesis.quiet()
        assert ("quiet" in {event.f for event in acting.events}) is not down

    acted(scene)


def test_a_run_without_a_fault_ends_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        acting = play(["none"], [], tmp_path)
        acting.nemesis.start()
        await acting.nemesis.finish(at_once=False)
        await acting.nemesis.quiet()
        assert not acting.events

    acted(scene)
