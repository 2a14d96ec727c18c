"""Stops all processes of a node by SIGSTOP: their connections stay open, and they do not run."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from itertools import count

from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis.aims import CLIENT, HOLDER, LEADER, MAJORITY, MINORITY, RANDOM, SERVER
from lockcheck.nemesis.base import DidNotLastError, FaultKind, each_of
from lockcheck.nodes.node import Node
from lockcheck.nodes.waiting import wait_until

TIMEOUT_S = 5.0
TRIES_BEFORE_SIGCONT = 20
STOPPED = {"T", "t"}


class Pause:
    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = tuple(nodes)
        self._proven: set[str] = set()

    async def inject(self) -> None:
        await each_of(_stop(node) for node in self._nodes)

    async def prove(self) -> str:
        proofs = [self._prove(node) for node in self._nodes]
        if len(proofs) == 1:
            return proofs[0]
        names = (node.name for node in self._nodes)
        return "; ".join(map(": ".join, zip(names, proofs, strict=True)))

    def _prove(self, node: Node) -> str:
        processes, states = len(node.pids()), node.thread_states()
        stopped = sum(state in STOPPED for state in states)
        if not states or stopped < len(states):
            raise FaultError(
                f"{node.name} did not stay stopped: the states of its threads are {states}"
            )
        self._proven.add(node.name)
        of = f" of {processes} processes" if processes > 1 else ""
        return f"{stopped} of {len(states)} threads{of} in state T"

    async def heal(self) -> None:
        woken = [
            node.name
            for node in self._nodes
            if node.name in self._proven and node.alive and not _is_stopped(node)
        ]
        self._proven.clear()
        await each_of(_wake(node) for node in self._nodes)
        if woken:
            raise DidNotLastError(f"another process resumed {', '.join(woken)} too early")


async def _stop(node: Node) -> None:
    tries = count(1)

    def stopped() -> bool:
        if not node.alive or _is_stopped(node):
            return True
        if next(tries) % TRIES_BEFORE_SIGCONT == 0:
            # A vfork parent stops only after its child has gone on: let both run for a moment.
            node.signal(signal.SIGCONT)
        else:
            node.signal(signal.SIGSTOP)  # again: a process that still ran may have forked
        return False

    await wait_until(stopped, f"{node.name} still has running threads", TIMEOUT_S)
    if not node.alive:
        raise FaultError(f"{node.name} has no process left")


async def _wake(node: Node) -> None:
    def runs() -> bool:
        if STOPPED & set(node.thread_states()):
            node.signal(signal.SIGCONT)
            return False
        return True

    await wait_until(runs, f"{node.name} still has stopped threads", TIMEOUT_S)


def _is_stopped(node: Node) -> bool:
    """All processes: a stopped one cannot fork, so two equal listings prove there is no other."""
    pids, states = node.pids(), node.thread_states()
    return bool(states) and set(states) <= STOPPED and node.pids() == pids


KIND = FaultKind(
    name="pause",
    summary="SIGSTOP for longer than the lease; by default a holder that is about to write",
    effect=Effect.STOPS,
    aims=(HOLDER, CLIENT, SERVER, LEADER, RANDOM, MINORITY, MAJORITY),
    strike=lambda _step, nodes, scene: Pause(scene.nodes[name] for name in nodes),
)
