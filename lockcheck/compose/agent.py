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
from lockcheck.compose.tail import Tail
from lockcheck.errors import ClusterError, LockcheckError
from lockcheck.history import Event, EventType, EventWriter, Notice, write_events
from lockcheck.history.event import NS_PER_MS, RUN
from lockcheck.nemesis import parse_nemesis
from lockcheck.nemesis.base import wait_until
from lockcheck.nemesis.schedule import Nemesis
from lockcheck.nodes import Node, Role
from lockcheck.storage import read_memory, witness_events
from lockcheck.workloads.worker import DONE, HISTORY, ORDERS, READY

TAIL_POLL_S = 0.002
WATCH_POLL_S = 0.05
INITS = {"docker-init", "tini"}
# The host's wall clock is what Redis expires by. A correction below this is not worth a word.
CLOCK_STEP_MS = 20.0


class Agent:
    def __init__(self, workdir: Path, nodes: dict[str, Node], send: Callable[[Message], None]):
        self._workdir = workdir
        self._nodes = nodes
        self._send = send
        self._origin_ns = time.monotonic_ns()
        self._nemesis: Nemesis | None = None
        self._own_events: EventWriter | None = None
        self._tail: Tail | None = None
        self._watching: list[asyncio.Task[None]] = []
        self._ending = False
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
            pid = await _main_process(adopted.pid, adopted.name)
            self._nodes[adopted.name] = Node(adopted.name, adopted.role, adopted.address, pid)
        return await self._tell_nodes(None)

    async def _await_ready(self, body: object) -> object:
        """Servers answer, seen from a client: the way the clients will come. Clients wait."""
        began = time.monotonic()
        probes = msgspec.convert(body, list[Probe])
        clients = [node for node in self._nodes.values() if node.role is Role.CLIENT]
        await asyncio.gather(
            *(self._await_answer(probe, clients) for probe in probes),
            *(self._await_client(client) for client in clients),
        )
        return round((time.monotonic() - began) * 1000)

    async def _await_answer(self, probe: Probe, clients: list[Node]) -> None:
        node = self._nodes[probe.node]
        viewer = next(iter(clients), node)
        await self._await_start(
            node,
            lambda: _answers(viewer.pid, node.address, probe.port),
            f"answers at {node.address}:{probe.port}",
        )

    async def _await_client(self, node: Node) -> None:
        ready = self._workdir / node.name / READY
        await self._await_start(node, ready.exists, "is ready for its orders")

    async def _await_start(self, node: Node, begun: Callable[[], bool], what: str) -> None:
        try:
            await wait_until(
                lambda: not node.alive or begun(), f"{node.name} {what}", timeout_s=30, poll_s=0.01
            )
        finally:
            if not node.alive:
                raise ClusterError(
                    f"{node.name} ended as soon as it was started: {self._last_words(node.name)}",
                    cure=f"its output is in nodes/{node.name}/output.log",
                )

    def _last_words(self, name: str) -> str:
        with suppress(OSError):
            lines = (self._workdir / name / "output.log").read_text(errors="replace").splitlines()
            return " / ".join(lines[-3:]) or "it said nothing"
        return "it left no output here"

    # --- the run -----------------------------------------------------------------------------

    async def _begin(self, body: object) -> object:
        orders = msgspec.convert(body, BeginOrders)
        self._origin_ns = time.monotonic_ns()
        self._own_events = EventWriter(self._workdir / NEMESIS_FILE)
        folders = [self._workdir / worker.node for worker in orders.workers]
        self._tail = Tail([folder / HISTORY for folder in folders])
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
        self._nemesis.start()
        self._watching = [
            asyncio.create_task(self._follow_clients(), name="follow"),
            asyncio.create_task(self._watch_nodes(), name="watch nodes"),
            asyncio.create_task(self._watch_clock(), name="watch clock"),
        ]
        for task in self._watching:
            task.add_done_callback(self._tell_if_broken)
        return None

    def _tell_if_broken(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._send(Message(ended="the agent", last_words=f"{task.get_name()}: {error!r}"))

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

    async def _follow_clients(self) -> None:
        while True:
            self._pass_on_what_is_new()
            await asyncio.sleep(TAIL_POLL_S)

    def _pass_on_what_is_new(self) -> None:
        if self._tail is None or self._nemesis is None:
            return
        for event in self._tail.read():
            self._nemesis.observe(event)
            self._send(Message(event=event))

    async def _watch_nodes(self) -> None:
        """A node that ends although nobody ended it is a word for the command line."""
        watched = dict(self._nodes)
        while watched and not self._ending:
            for name, node in list(watched.items()):
                if not node.alive and not self._ending:
                    del watched[name]
                    self._send(Message(ended=name, last_words=self._last_words(name)))
            await asyncio.sleep(WATCH_POLL_S)

    async def _watch_clock(self) -> None:
        apart_ns = time.time_ns() - time.monotonic_ns()
        while True:
            await asyncio.sleep(WATCH_POLL_S)
            now_apart_ns = time.time_ns() - time.monotonic_ns()
            step_ms = (now_apart_ns - apart_ns) / NS_PER_MS
            if abs(step_ms) > CLOCK_STEP_MS:
                self._record(
                    Event(
                        time=self._now_ns(),
                        process=RUN,
                        type=EventType.INFO,
                        f=Notice.CLOCK_STEP,
                        value=round(step_ms, 3),
                    )
                )
                apart_ns = now_apart_ns

    async def _end(self, body: object) -> object:
        orders = msgspec.convert(body, EndOrders)
        self._ending = True
        if self._nemesis is not None:
            await self._nemesis.finish(at_once=orders.at_once)
        ended = await self._end_clients(0.0 if orders.at_once else orders.grace_s)
        for task in self._watching:
            task.cancel()
        self._pass_on_what_is_new()
        if orders.storage is not None and self._tail is not None:
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
        self._ending = True
        if self._nemesis is not None:
            await self._nemesis.finish(at_once=True)
        for node in self._nodes.values():
            _signal(node, signal.SIGKILL)


def _signal(node: Node, number: signal.Signals) -> None:
    if node.alive:
        with suppress(ProcessLookupError):
            os.kill(node.pid, number)


def _answers(viewer_pid: int, address: str, port: int) -> bool:
    """One PING. A client cut off from the world has no view: the caller gave one that has."""
    import socket

    try:
        with (
            inside_network_of(viewer_pid),
            socket.create_connection((address, port), timeout=0.3) as connection,
        ):
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False


async def _main_process(pid: int, name: str) -> int:
    """The node's own process: a container's init is only its parent."""
    proc = Path(f"/proc/{pid}")

    def children() -> list[str]:
        return (proc / "task" / str(pid) / "children").read_text().split()

    try:
        if (proc / "comm").read_text().strip() not in INITS:
            return pid
        await wait_until(lambda: bool(children()), f"{name} starts its program", 10)
        return int(children()[0])
    except (FileNotFoundError, ProcessLookupError, IndexError) as error:
        raise ClusterError(f"{name} ended as soon as it was started") from error


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
