"""SIGSTOP: the process is there, its connections are open, and it does not run.

What a garbage collection, a swapped-out page, a suspended virtual machine or a busy host does.
"""

from __future__ import annotations

import os
import signal

from lockcheck.errors import FaultError
from lockcheck.nemesis.base import FaultKind, Target, wait_until
from lockcheck.nodes import Node

PROOF_TIMEOUT_S = 5.0
STOPPED = {"T", "t"}


class Pause:
    def __init__(self) -> None:
        self._proven = False

    async def inject(self, node: Node) -> str:
        self._signal(node, signal.SIGSTOP)
        await wait_until(
            lambda: not node.alive or set(node.thread_states()) <= STOPPED,
            f"every thread of {node.name} stopped",
            PROOF_TIMEOUT_S,
        )
        states = node.thread_states()
        stopped = sum(state in STOPPED for state in states)
        if not node.alive or stopped < len(states):
            raise FaultError(f"{node.name} did not stay stopped: its threads are {states}")
        self._proven = True
        return f"{stopped} of {len(states)} threads in state T"

    async def heal(self, node: Node) -> None:
        if not node.alive:
            return
        woken = self._proven and not set(node.thread_states()) <= STOPPED
        self._proven = False
        self._signal(node, signal.SIGCONT)
        await wait_until(
            lambda: "T" not in node.thread_states(),
            f"every thread of {node.name} runs again",
            PROOF_TIMEOUT_S,
        )
        if woken:
            raise FaultError(f"somebody else had woken {node.name} before its time")

    def _signal(self, node: Node, number: signal.Signals) -> None:
        try:
            os.kill(node.pid, number)
        except ProcessLookupError as error:
            raise FaultError(f"{node.name} has no process {node.pid} any more") from error


KIND = FaultKind(
    name="pause",
    summary="SIGSTOP for longer than the lease; by default the client that has just acquired",
    make=Pause,
    targets=(Target.HOLDER, Target.SERVER, Target.RANDOM),
    # The lease has run out, and there is time for somebody else to get in and to write.
    duration_ms=lambda ttl_ms: ttl_ms + ttl_ms // 2 + 500,
)
