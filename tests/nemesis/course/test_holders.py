"""A holder that is aimed at goes on holding, and no other client has to wait for it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from lockcheck.history import Event, EventType
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.course.hunt import hunting
from lockcheck.nemesis.triggers import Trigger
from lockcheck.nodes.waiting import wait_until
from tests.nemesis.client_events import asks, grant, granted, lost, release, released
from tests.nemesis.made_up import acted

NAMES = ("c1", "c2", "c3")


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name / "aims").mkdir(parents=True)
    return tmp_path


def asked(workdir: Path) -> list[str]:
    """Which clients are asked to go on with what they do under the lock."""
    return [name for name in NAMES if list((workdir / name / "aims").iterdir())]


def test_who_holds_what(tmp_path: Path) -> None:
    holders = Holders(tmp_path)

    def now() -> dict[str, list[str]]:
        return {node: sorted(keys) for node, keys in holders.now().items()}

    grant(holders, "c1")
    grant(holders, "c2")
    assert now() == {"c1": ["k1"], "c2": ["k1"]}
    holders.observe(released("c1"))  # not answered yet
    assert now() == {"c2": ["k1"]}
    grant(holders, "c2")
    release(holders, "c2")
    assert now() == {"c2": ["k1"]}  # entered twice
    holders.observe(lost("c2"))
    assert now() == {}
    release(holders, "c2")
    holders.observe(lost("c3"))
    assert now() == {}
    grant(holders, "c3")
    assert now() == {"c3": ["k1"]}
    holders.ended("c3", time.monotonic_ns())
    assert now() == {}


@pytest.mark.parametrize(
    ("f", "of", "holds"),
    [
        ("write", None, False),  # a retired client goes on with nothing, and releases nothing
        ("renew", None, False),
        ("renew", 1, True),  # it is its keeper that is retired
        ("stall", None, True),
        ("queued", None, True),
    ],
)
def test_a_client_of_which_no_more_is_known_holds_nothing(
    tmp_path: Path, f: str, of: int | None, holds: bool
) -> None:
    holders = Holders(tmp_path)
    grant(holders, "c1")
    process = 1 if of is None else "c1-keeper-1"
    for kind in (EventType.INVOKE, EventType.INFO)[f in ("stall", "queued") :]:
        holders.observe(Event(time.monotonic_ns(), process, kind, f, "k1", node="c1", of=of))
    assert bool(holders.now()) is holds


def test_what_is_read_late_of_a_client_that_was_ended_is_over_with_its_next_life(
    tmp_path: Path,
) -> None:
    holders = Holders(tmp_path)
    holders.observe(asks("c1", at_ns=1))
    holders.ended("c1", 3)
    holders.observe(granted("c1", at_ns=2))  # and only now its last line is read
    assert holders.now() == {}
    holders.observe(Event(4, 500, EventType.INVOKE, "acquire", "k1", node="c1"))
    holders.observe(Event(5, 500, EventType.OK, "acquire", "k1", node="c1"))
    assert holders.now() == {"c1": frozenset({"k1"})}


def test_a_client_that_is_another_process_holds_nothing_of_what_it_held(tmp_path: Path) -> None:
    holders = Holders(tmp_path)
    grant(holders, "c1")
    holders.observe(Event(time.monotonic_ns(), 500, EventType.INVOKE, "acquire", "k1", node="c1"))
    assert holders.now() == {}


def test_all_are_asked_the_first_is_kept_and_the_others_are_let_go(workdir: Path) -> None:
    async def scene() -> None:
        holders = Holders(workdir)
        with hunting(holders, Trigger.ACQUIRE, NAMES, lambda _: True) as hunt:
            catching = asyncio.create_task(hunt.catch(skip=0))
            await asyncio.sleep(0)
            assert asked(workdir) == ["c1", "c2", "c3"]
            grant(holders, "c2")
            node = await catching
            let_go = hunt.keep(node, at_work=True)
        assert node == "c2"
        assert asked(workdir) == ["c2"]
        let_go()
        let_go()
        assert asked(workdir) == []

    acted(scene)


def test_some_have_it_in_peace_before(workdir: Path) -> None:
    async def scene() -> None:
        holders = Holders(workdir)
        with hunting(holders, Trigger.ACQUIRE, NAMES, lambda _: True) as hunt:
            catching = asyncio.create_task(hunt.catch(skip=2))
            for node in ("c1", "c2"):
                await asyncio.sleep(0.005)
                assert asked(workdir) == []
                grant(holders, node)
                release(holders, node)
            await asyncio.sleep(0.005)
            assert asked(workdir) == ["c1", "c2", "c3"]
            grant(holders, "c3")
            assert await catching == "c3"

    acted(scene)


def test_one_that_holds_it_already_and_goes_on_is_caught(workdir: Path) -> None:
    """It was asked while it worked under the lock, and no other client can be granted it now."""

    async def scene() -> None:
        holders = Holders(workdir)
        grant(holders, "c3")
        with hunting(holders, Trigger.ACQUIRE, NAMES, lambda _: True) as hunt:
            assert await hunt.catch(skip=0) == "c3"

    acted(scene)


def test_one_that_lets_go_after_all_is_not_caught(workdir: Path) -> None:
    async def scene() -> None:
        holders = Holders(workdir)
        grant(holders, "c3")
        with hunting(holders, Trigger.ACQUIRE, NAMES, lambda _: True) as hunt:
            catching = asyncio.create_task(hunt.catch(skip=0))
            await asyncio.sleep(0)
            release(holders, "c3")
            await asyncio.sleep(0.1)
            assert not catching.done()
            grant(holders, "c1")
            assert await catching == "c1"

    acted(scene)


def test_those_whom_another_fault_struck_do_not_wait_for_this_one(workdir: Path) -> None:
    async def scene() -> None:
        holders, struck = Holders(workdir), {"c1"}
        with hunting(holders, Trigger.ACQUIRE, NAMES, lambda name: name not in struck) as hunt:
            catching = asyncio.create_task(hunt.catch(skip=0))
            await asyncio.sleep(0)
            assert asked(workdir) == ["c2", "c3"]
            struck.add("c2")
            grant(holders, "c2")
            await wait_until(lambda: asked(workdir) == ["c3"], "c2 need not wait", 30)
            assert not catching.done()
            struck.clear()
            grant(holders, "c2")
            assert await catching == "c2"

    acted(scene)


@pytest.mark.parametrize("skip", [0, 2])
def test_a_hunt_that_is_given_up_leaves_nothing(workdir: Path, skip: int) -> None:
    async def scene() -> None:
        holders = Holders(workdir)

        async def hunts() -> None:
            with hunting(holders, Trigger.ACQUIRE, NAMES, lambda _: True) as hunt:
                await hunt.catch(skip=skip)

        task = asyncio.create_task(hunts())
        await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.wait([task])
        assert asked(workdir) == []
        grant(holders, "c1")  # after the hunt

    acted(scene)


def test_clients_that_know_of_no_aims_are_caught_all_the_same(tmp_path: Path) -> None:
    async def scene() -> None:
        holders = Holders(tmp_path)
        with hunting(holders, Trigger.ACQUIRE, NAMES, lambda _: True) as hunt:
            catching = asyncio.create_task(hunt.catch(skip=0))
            await asyncio.sleep(0)
            grant(holders, "c2")
            hunt.keep(await catching, at_work=True)()
        assert not list(tmp_path.iterdir())

    acted(scene)
