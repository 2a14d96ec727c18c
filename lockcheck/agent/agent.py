"""The agent: beside the nodes, on their clock. `python -m lockcheck.agent.agent --workdir DIR`

It starts the nodes, reads the clients' files as they are written, injects and proves the faults,
and takes requests through its pipes (`link.py`, `orders.py`). The end of its input is the end of
the run: even if the command line was killed, faults are healed and the nodes are ended.

`--networks N`: makes N networks for the nodes, and mounts DIR for them (`local`). Without it the
nodes are in existing containers (`docker`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from lockcheck.agent.by_hand import FaultsByHand
from lockcheck.agent.doors import Doors
from lockcheck.agent.fleet import Fleet
from lockcheck.agent.link import LONGEST_REQUEST, NO_REPLY, Handler, Message, Request, taking
from lockcheck.agent.orders import (
    NEMESIS_FILE,
    STORAGE_FILE,
    BeginOrders,
    Ended,
    EndOrders,
    LedgerOrders,
    NemesisOrders,
    NodeOrders,
)
from lockcheck.agent.own_folder import OWN_FOLDER, mount_own_folder
from lockcheck.agent.own_networks import Network, make_networks
from lockcheck.agent.relays import Relays
from lockcheck.agent.streams import Streams
from lockcheck.agent.tail import Tail
from lockcheck.agent.watching import MAKE_ROOM, Watch
from lockcheck.client.worker import DONE, GO, HISTORY, ORDERS, Go
from lockcheck.errors import ClusterError, LockcheckError, is_out_of_space
from lockcheck.history import Event, EventWriter, write_events
from lockcheck.nemesis import Plan, step_of
from lockcheck.nemesis.course.schedule import Nemesis
from lockcheck.nemesis.fitting import check_machine
from lockcheck.nodes.node import Node, Role
from lockcheck.nodes.waiting import wait_until
from lockcheck.storage import open_storage, port_of
from lockcheck.storage.base import Guard, ledger_events


class Agent:
    def __init__(
        self, folder: Path, networks: list[Network], send: Callable[[Message], None]
    ) -> None:
        self._own_folder = folder if networks else None
        self._workdir = workdir = OWN_FOLDER if networks else folder
        self._fleet = Fleet(workdir, networks)
        self._nodes = self._fleet.nodes
        self._send = send
        self._origin_ns = time.monotonic_ns()
        self._nemesis: Nemesis | None = None
        self._own_events: EventWriter | None = None
        self._watch: Watch | None = None
        self._by_hand: FaultsByHand | None = None
        self._streams = Streams(self._fleet, workdir, send)
        self._relays = Relays(self._streams, send)
        self._doors = Doors(workdir)
        self.requests: dict[str, Handler] = {
            "launch": taking(list[NodeOrders], self._launch),
            "networks": self._networks,
            "await_ready": self._await_ready,
            "nemesis": taking(NemesisOrders, self._take_nemesis),
            "begin": taking(BeginOrders, self._begin),
            "end": taking(EndOrders, self._end),
            "by_hand": taking(Plan, self._take_faults_by_hand),
            **self._streams.requests,
        }

    # --- before the run -----------------------------------------------------------------------

    async def _launch(self, orders: list[NodeOrders]) -> dict[str, str]:
        if self._own_folder is not None:
            mount_own_folder(self._own_folder)
        versions = await self._fleet.launch(orders)
        await self._relays.open(self._nodes.values())
        self._doors.open(self._nodes.values())
        return versions

    async def _networks(self, _body: object) -> dict[str, str]:
        """Where the nodes' network namespaces are found in the agent's /proc, by their names."""
        own = f"/proc/{os.getpid()}/fd"
        return {name: f"{own}/{node.network}" for name, node in self._nodes.items()}

    async def _await_ready(self, _body: object) -> dict[str, str]:
        """The addresses of the nodes, by their names."""
        await self._fleet.await_ready()
        return {name: node.address for name, node in self._nodes.items()}

    async def _take_nemesis(self, orders: NemesisOrders) -> None:
        """Takes the faults; raises a UserError if the machine lacks what one needs."""
        sequences = [tuple(map(step_of, sequence)) for sequence in orders.sequences]
        check_machine(sequences)
        self._nemesis = Nemesis(
            sequences,
            nodes=self._nodes,
            fleet=self._fleet,
            plan=orders.plan,
            workdir=self._workdir,
            seed=orders.plan.seed,
            now_ns=self._now_ns,
            record=self._record,
        )

    # --- the run -----------------------------------------------------------------------------

    async def _begin(self, orders: BeginOrders) -> None:
        if self._nemesis is None:
            raise ClusterError("the run cannot begin before its faults are known")
        self._fleet.check_clocks()
        folders = [self._workdir / worker.node for worker in orders.workers]
        for worker, folder in zip(orders.workers, folders, strict=True):
            _write_whole(folder / ORDERS, worker)
        await self._fleet.await_open(worker.node for worker in orders.workers)
        self._origin_ns = time.monotonic_ns()
        self._own_events = EventWriter(self._workdir / NEMESIS_FILE)
        for folder in folders:
            _write_whole(folder / GO, Go(self._origin_ns))
        self._watch = Watch(
            self._fleet,
            Tail([folder / HISTORY for folder in folders]),
            now_ns=self._now_ns,
            record=self._record,
            observe=self._nemesis.observe,
            send=self._send,
        )
        self._nemesis.start()
        self._watch.start()

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._origin_ns

    def _record(self, event: Event) -> None:
        """Writes the agent's event. Never raises: a full disk must not keep a fault unhealed."""
        try:
            if self._own_events is not None:
                self._own_events.write(event)
        except OSError as error:
            cure = MAKE_ROOM if is_out_of_space(error) else ""
            words = f"it cannot write: {error.strerror}"
            self._send(Message(ended="the agent", last_words=words, cure=cure))
        self._send(Message(event=event))

    async def _end(self, orders: EndOrders) -> Ended:
        if self._nemesis is None or self._watch is None:
            raise ClusterError("the run cannot end before it has begun")
        await self._nemesis.finish(at_once=orders.at_once)
        if not orders.at_once:
            await self._nemesis.quiet()
        self._watch.nodes_may_end()
        ended = await self._end_clients(0.0 if orders.at_once else orders.grace_s)
        self._watch.stop()
        if orders.ledger is not None:
            self._fetch_ledger(orders.ledger)
        return ended

    async def _end_clients(self, grace_s: float) -> Ended:
        clients = [node for node in self._nodes.values() if node.role is Role.CLIENT]
        broken = tuple(
            node.name
            for node in clients
            if not node.down and not node.alive and not self._done(node)
        )
        for node in clients:
            node.ask_to_leave()
        with suppress(LockcheckError):  # those that do not exit are returned as killed
            await wait_until(
                lambda: not any(node.alive for node in clients),
                "clients are still running",
                grace_s,
                0.01,
            )
        killed = tuple(node.name for node in clients if node.alive)
        for node in clients:
            node.signal(signal.SIGKILL)
        await wait_until(
            lambda: not any(node.alive for node in clients), "clients are still alive", 10, 0.01
        )
        return Ended(killed, broken)

    def _done(self, node: Node) -> bool:
        return (self._workdir / node.name / DONE).exists()

    def _fetch_ledger(self, wanted: LedgerOrders) -> None:
        node, port = self._nodes[wanted.node], port_of(wanted.storage)
        address = node.address, port
        with (
            node.inside_network(),
            closing(open_storage(wanted.storage, address, Guard.NONE)) as storage,
        ):
            ledger = storage.ledger()
        write_events(self._workdir / STORAGE_FILE, ledger_events(ledger, self._now_ns()))

    # --- instead of a run --------------------------------------------------------------------

    async def _take_faults_by_hand(self, plan: Plan) -> None:
        """From now on the library's user begins and ends faults."""
        self._by_hand = FaultsByHand(self._fleet, self._workdir, plan, self._send)
        self.requests |= self._by_hand.requests

    async def leave(self) -> None:
        """On every way out: heals, and ends the nodes."""
        try:
            if self._watch is not None:
                self._watch.nodes_may_end()
            if self._nemesis is not None:
                await self._nemesis.finish(at_once=True)
            if self._by_hand is not None:
                await self._by_hand.finish()
        finally:
            self._fleet.leave()


def _write_whole(path: Path, value: object) -> None:
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(msgspec.json.encode(value))
    unfinished.rename(path)


async def converse(folder: Path, networks: list[Network]) -> None:
    loop = asyncio.get_running_loop()
    incoming = asyncio.StreamReader(limit=LONGEST_REQUEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(incoming), sys.stdin.buffer)
    # Buffered without a limit: a command line that is slow, or stopped by Ctrl-Z, must not keep
    # the nemesis from healing in time.
    output, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout.buffer)

    def send(message: Message) -> None:
        if not output.is_closing():
            output.write(msgspec.json.encode(message) + b"\n")

    agent = Agent(folder, networks, send)
    under_way: set[asyncio.Task[None]] = set()
    while line := await incoming.readline():
        request = msgspec.json.decode(line, type=Request)
        task = asyncio.create_task(_answer(agent, request, send))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await agent.leave()


async def _answer(agent: Agent, request: Request, send: Callable[[Message], None]) -> None:
    try:
        reply = Message(re=request.id, body=await agent.requests[request.do](request.body))
    except LockcheckError as error:
        reply = Message(re=request.id, error=error.message, cure=error.cure)
    except Exception as error:  # the caller waits for a reply, and needs the cause
        why = f"{type(error).__name__}: {error}"
        send(Message(re=request.id, error=f"the agent failed at {request.do!r}: {why}"))
        raise
    if request.id != NO_REPLY:
        send(reply)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--networks", type=int, default=0)
    arguments = parser.parse_args()
    asyncio.run(converse(arguments.workdir, make_networks(arguments.networks)))


if __name__ == "__main__":
    main()
