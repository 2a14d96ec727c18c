"""The agent: beside the nodes, on their clock. `python -m lockcheck.compose.agent --workdir DIR`

It reads what the clients write the moment it is written, injects and proves the faults, and is
spoken to through its pipes (`link.py`, `orders.py`). The end of its input is the end of the run:
whatever became of the command line, faults are healed and the nodes are ended.

`--launch`: the nodes are plain processes, and the agent starts them (`local`). Without it they
are containers and are made known by `adopt` (`docker`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from lockcheck.compose.link import Message, Request
from lockcheck.compose.namespaces import inside_network_of
from lockcheck.compose.orders import (
    NEMESIS_FILE,
    STORAGE_FILE,
    AdoptedNode,
    BeginOrders,
    Ended,
    EndOrders,
    Probe,
)
from lockcheck.compose.starting import await_ready, check_clock_is_ours, main_process
from lockcheck.compose.tail import Tail
from lockcheck.compose.watching import Watch
from lockcheck.errors import ClusterError, LockcheckError
from lockcheck.history import Event, EventWriter, write_events
from lockcheck.nemesis import parse_nemesis
from lockcheck.nemesis.base import wait_until
from lockcheck.nemesis.schedule import Nemesis
from lockcheck.nodes import Node, Role
from lockcheck.storage import read_memory, witness_events
from lockcheck.workloads.worker import DONE, HISTORY, ORDERS


class Agent:
    def __init__(self, workdir: Path, nodes: dict[str, Node], send: Callable[[Message], None]):
        self._workdir = workdir
        self._nodes = nodes
        self._send = send
        self._origin_ns = time.monotonic_ns()
        self._nemesis: Nemesis | None = None
        self._own_events: EventWriter | None = None
        self._watch: Watch | None = None
        self.requests: dict[str, Callable[[object], Awaitable[object]]] = {
            "nodes": self._tell_nodes,
            "adopt": self._adopt,
            "await_ready": self._await_ready,
            "begin": self._begin,
            "end": self._end,
        }

    # --- getting to know the nodes -----------------------------------------------------------

    async def _tell_nodes(self, _body: object) -> object:
        return list(self._nodes.values())

    async def _adopt(self, body: object) -> object:
        for adopted in msgspec.convert(body, list[AdoptedNode]):
            pid = await main_process(adopted.pid, adopted.name)
            self._nodes[adopted.name] = Node(adopted.name, adopted.role, adopted.address, pid)
        return await self._tell_nodes(None)

    async def _await_ready(self, body: object) -> object:
        began = time.monotonic()
        await await_ready(self._nodes, msgspec.convert(body, list[Probe]), self._workdir)
        return round((time.monotonic() - began) * 1000)

    # --- the run -----------------------------------------------------------------------------

    async def _begin(self, body: object) -> object:
        orders = msgspec.convert(body, BeginOrders)
        for node in self._nodes.values():
            check_clock_is_ours(node)
        self._origin_ns = time.monotonic_ns()
        self._own_events = EventWriter(self._workdir / NEMESIS_FILE)
        folders = [self._workdir / worker.node for worker in orders.workers]
        specs = [spec for text in orders.nemesis if (spec := parse_nemesis(text)) is not None]
        self._nemesis = Nemesis(
            specs,
            nodes=self._nodes,
            ttl_ms=orders.ttl_ms,
            seed=orders.seed,
            now_ns=self._now_ns,
            until_ns=round(orders.time_limit_s * 1e9),
            record=self._record,
        )
        for worker, folder in zip(orders.workers, folders, strict=True):
            dated = msgspec.structs.replace(worker, origin_ns=self._origin_ns)
            _write_whole(folder / ORDERS, dated)
        self._watch = Watch(
            self._nodes,
            self._workdir,
            Tail([folder / HISTORY for folder in folders]),
            now_ns=self._now_ns,
            record=self._record,
            observe=self._nemesis.observe,
            send=self._send,
        )
        self._nemesis.start()
        self._watch.start()
        return None

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._origin_ns

    def _record(self, event: Event) -> None:
        """Never raises: a full disk must not keep a fault from being healed."""
        try:
            if self._own_events is not None:
                self._own_events.write(event)
        except OSError as error:
            self._send(Message(ended="the agent", last_words=f"it cannot write: {error}"))
        self._send(Message(event=event))

    async def _end(self, body: object) -> object:
        orders = msgspec.convert(body, EndOrders)
        if self._nemesis is None or self._watch is None:
            raise ClusterError("the run cannot end before it has begun")
        await self._nemesis.finish(at_once=orders.at_once)
        self._watch.nodes_may_end()
        ended = await self._end_clients(0.0 if orders.at_once else orders.grace_s)
        self._watch.stop()
        if orders.storage is not None:
            self._hear_storage(orders.storage)
        return ended

    async def _end_clients(self, grace_s: float) -> Ended:
        clients = [node for node in self._nodes.values() if node.role is Role.CLIENT]
        broken = tuple(node.name for node in clients if not node.alive and not self._done(node))
        for node in clients:
            _signal(node, signal.SIGTERM)
        with suppress(LockcheckError):  # those that do not leave are named by what we return
            await wait_until(
                lambda: not any(node.alive for node in clients), "clients leave", grace_s, 0.01
            )
        killed = tuple(node.name for node in clients if node.alive)
        for node in clients:
            _signal(node, signal.SIGKILL)
        await wait_until(lambda: not any(node.alive for node in clients), "clients die", 10, 0.01)
        return Ended(killed, broken)

    def _done(self, node: Node) -> bool:
        return (self._workdir / node.name / DONE).exists()

    def _hear_storage(self, probe: Probe) -> None:
        node = self._nodes[probe.node]
        with inside_network_of(node.pid):
            memories = read_memory((node.address, probe.port))
        write_events(self._workdir / STORAGE_FILE, witness_events(memories, self._now_ns()))

    async def leave(self) -> None:
        """On every way out: nothing stays stopped, and nothing stays."""
        try:
            if self._watch is not None:
                self._watch.nodes_may_end()
            if self._nemesis is not None:
                await self._nemesis.finish(at_once=True)
        finally:
            for node in self._nodes.values():
                _signal(node, signal.SIGKILL)


def _signal(node: Node, number: signal.Signals) -> None:
    if node.alive:
        with suppress(ProcessLookupError):
            os.kill(node.pid, number)


def _write_whole(path: Path, value: object) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(msgspec.json.encode(value))
    unfinished.rename(path)


async def converse(workdir: Path, nodes: dict[str, Node]) -> None:
    loop = asyncio.get_running_loop()
    hearing = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(hearing), sys.stdin.buffer)
    # Buffered without a limit: a command line that is slow, or stopped by Ctrl-Z, must not keep
    # the nemesis from healing in time.
    saying, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout.buffer)

    def send(message: Message) -> None:
        if not saying.is_closing():
            saying.write(msgspec.json.encode(message) + b"\n")

    agent = Agent(workdir, nodes, send)
    under_way: set[asyncio.Task[None]] = set()
    while line := await hearing.readline():
        request = msgspec.json.decode(line, type=Request)
        task = asyncio.create_task(_answer(agent, request, send))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await agent.leave()


async def _answer(agent: Agent, request: Request, send: Callable[[Message], None]) -> None:
    try:
        body = await agent.requests[request.do](request.body)
        send(Message(re=request.id, body=body))
    except LockcheckError as error:
        send(Message(re=request.id, error=error.message, cure=error.cure))
    except Exception as error:  # whoever asked waits for an answer, and must get the cause
        send(Message(re=request.id, error=f"the agent failed at {request.do!r}: {error!r}"))
        raise


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--launch", type=Path)
    arguments = parser.parse_args()
    nodes: dict[str, Node] = {}
    if arguments.launch is not None:
        from lockcheck.compose.local.launch import LaunchSpec, launch

        specs = msgspec.json.decode(arguments.launch.read_bytes(), type=list[LaunchSpec])
        nodes = launch(specs, arguments.workdir)
    asyncio.run(converse(arguments.workdir, nodes))


if __name__ == "__main__":
    main()
