"""A node that exits unexpectedly is reported to the command line; one that was ended is not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lockcheck.agent.fleet import Fleet
from lockcheck.agent.link import Message
from lockcheck.agent.orders import NodeOrders
from lockcheck.agent.place import PlacedNode
from lockcheck.agent.tail import Tail
from lockcheck.agent.watching import WATCH_POLL_S, Watch
from lockcheck.nodes.waiting import wait_until
from tests.processes import node_of, started


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Two nodes whose processes have exited; one of them printed why."""
    fleet = Fleet(tmp_path)
    for name in ("r1", "r2"):
        process = started("import threading; threading.Event().wait()")
        node = node_of(process, name)
        orders = NodeOrders(spec=node.spec, command=())
        fleet.nodes[name] = PlacedNode(
            spec=node.spec, address=node.address, network=node.network, orders=orders
        )
        process.kill()
        process.wait()
    (tmp_path / "r2").mkdir()
    (tmp_path / "r2" / "output.log").write_text("one\ntwo\nthree\nout of memory\n")
    return fleet


def heard(fleet: Fleet, looks: int) -> list[tuple[str | None, str]]:
    sent: list[Message] = []

    async def scene() -> None:
        watch = Watch(
            fleet,
            Tail([]),
            now_ns=lambda: 0,
            record=lambda _: None,
            observe=lambda _: None,
            send=sent.append,
        )
        watch.start()
        await wait_until(lambda: bool(sent), "it reports something", 10)
        await asyncio.sleep(looks * WATCH_POLL_S)  # and would say it again by now
        watch.stop()

    asyncio.run(scene())
    return [(message.ended, message.last_words) for message in sent]


def test_only_what_nobody_ended_is_told_and_once(fleet: Fleet) -> None:
    fleet.nodes["r1"].down = True
    assert heard(fleet, looks=4) == [("r2", "two / three / out of memory")]


def test_whoever_said_nothing_is_told_of_too(fleet: Fleet) -> None:
    assert heard(fleet, looks=1) == [
        ("r1", "its output cannot be read"),
        ("r2", "two / three / out of memory"),
    ]
