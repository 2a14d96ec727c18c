"""A user's own program on a node, where it can be stopped, killed and cut off."""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence

from lockcheck.agent.link import Message
from lockcheck.agent.orders import ProgramOrders, Signal
from lockcheck.library.switchboard import Switchboard

PATIENCE_S = 10.0


class Program:
    """Takes and prints lines. Its standard error is in `nodes/NODE/output.log` of the folder."""

    def __init__(
        self,
        switchboard: Switchboard,
        node: str,
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        self.node = node
        self._switchboard = switchboard
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._begun = b""  # a line that is not whole yet
        self._ended = threading.Event()
        self._code = 0
        self._stream = switchboard.new(self._hear)
        orders = ProgramOrders(self._stream, node, tuple(command), dict(environment))
        switchboard.link.ask("run", orders)

    def say(self, line: str) -> None:
        """Writes a line to its standard input."""
        self._switchboard.send(self._stream, line.encode() + b"\n")

    def hear(self, timeout_s: float = PATIENCE_S) -> str:
        """The next line that it prints. TimeoutError if there is none in time, EOFError if it has
        ended. The program has to flush its output."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(
                f"the program on {self.node} printed no line for {timeout_s:g} s"
            ) from None
        if line is None:
            self._lines.put(None)  # for the next call
            raise EOFError(f"the program on {self.node} has ended with {self._code}")
        return line

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """Waits for its end: returns its exit code, or minus the signal that ended it."""
        if not self._ended.wait(timeout_s):
            raise TimeoutError(f"the program on {self.node} did not end within {timeout_s:g} s")
        return self._code

    def signal(self, number: int) -> None:
        self._switchboard.link.ask("signal", Signal(self._stream, number))

    def _hear(self, message: Message) -> None:
        *lines, self._begun = (self._begun + message.data).split(b"\n")
        if message.over and self._begun:
            lines.append(self._begun)
        for line in lines:
            self._lines.put(line.decode(errors="replace"))
        if message.over:
            self._code = message.code or 0
            self._ended.set()
            self._lines.put(None)
