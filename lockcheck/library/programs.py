"""A user's own program on a node, where it can be stopped, killed and cut off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec

from lockcheck.agent.flow import WINDOW, Receipts
from lockcheck.agent.link import Message
from lockcheck.agent.orders import NotStarted, ProgramOrders, Signal
from lockcheck.errors import UserError
from lockcheck.library.given import check_text
from lockcheck.library.switchboard import Switchboard

PATIENCE_S = 10.0
LONGEST_LINE = WINDOW // 2  # so that a line that is too long is seen before the program must wait


class Program:
    """Takes and prints lines. Its standard error is in `nodes/NODE/output.log` of the folder.

    Lines that are not heard yet, or not read by it, are limited as in a pipe: then it waits, or
    `say` does."""

    def __init__(
        self,
        switchboard: Switchboard,
        node: str,
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        self.node = node
        self._switchboard = switchboard
        self._changed = threading.Condition()
        self._printed = bytearray()  # and not heard yet
        self._searched = 0  # up to where there is no end of a line
        self._unread = 0  # how many bytes wait to be read by it
        self._over = False
        self._code: int | None = None
        self._stream = switchboard.new(self._take)
        self._heard = Receipts(partial(switchboard.report, self._stream))
        orders = ProgramOrders(self._stream, node, tuple(command), dict(environment))
        refused = msgspec.convert(switchboard.link.ask("run", orders), NotStarted | None)
        if refused is not None:
            raise UserError(refused.reason, cure=refused.cure)

    def say(self, line: str, timeout_s: float | None = PATIENCE_S) -> None:
        """Writes a line to its standard input. EOFError if it has ended, TimeoutError if it does
        not read what was written before."""
        check_text(line, "a line")
        data = line.encode() + b"\n"
        if len(data) > LONGEST_LINE:
            raise UserError(
                f"a line of {len(data):,} bytes for the program on {self.node} is too long",
                cure=f"say lines of at most {LONGEST_LINE:,} bytes, or have it read a file",
            )
        with self._changed:
            room = self._await(lambda: self._unread + len(data) <= WINDOW, timeout_s)
            self._check_end("say")
            if not room:
                raise TimeoutError(
                    f"the program on {self.node} has read nothing for {timeout_s:g} s, and "
                    f"{self._unread:,} bytes wait for it"
                )
            self._unread += len(data)
        self._switchboard.send(self._stream, data)

    def hear(self, timeout_s: float | None = PATIENCE_S) -> str:
        """The next line that it prints. TimeoutError if there is none in time, EOFError if it has
        ended. The program has to flush its output."""
        with self._changed:
            self._await(lambda: self._line() is not None, timeout_s)
            line = self._line()
            if line is None:
                self._check_end("hear")
                raise TimeoutError(
                    f"the program on {self.node} printed no line for {timeout_s:g} s"
                )
            if len(line) > LONGEST_LINE:
                raise UserError(
                    f"the program on {self.node} printed a line of more than {LONGEST_LINE:,} "
                    "bytes, the longest that can be heard",
                    cure="have it print shorter lines, or write a file",
                )
            del self._printed[: len(line) + 1]
            self._searched = 0
        self._heard.add(len(line) + 1)
        return line.decode(errors="replace")

    def wait(self, timeout_s: float | None = PATIENCE_S) -> int:
        """Waits for its end: returns its exit code, or minus the signal that ended it."""
        with self._changed:
            self._await(lambda: self._over, timeout_s)
            if self._code is not None:
                return self._code
            self._check_end("wait")
            waits = len(self._printed) >= LONGEST_LINE
            why = (
                f": {len(self._printed):,} bytes that it printed wait to be heard" if waits else ""
            )
            raise TimeoutError(
                f"the program on {self.node} did not end within {timeout_s:g} s{why}"
            )

    def signal(self, number: int) -> None:
        """Sends it a signal, as `os.kill` does; without effect once it has ended."""
        if number not in signal.valid_signals():
            raise UserError(f"{number!r} is no signal", cure="take one of signal.Signals: SIGTERM")
        self._switchboard.link.ask("signal", Signal(self._stream, int(number)))

    def _await(self, condition: Callable[[], bool], timeout_s: float | None) -> bool:
        """Whether it holds within this time, or until the end."""
        most_s = None if timeout_s is None else min(timeout_s, threading.TIMEOUT_MAX)
        self._changed.wait_for(lambda: condition() or self._over, most_s)
        return condition()

    def _check_end(self, do: str) -> None:
        if self._code is not None:
            raise EOFError(f"the program on {self.node} has ended with {self._code}")
        if self._over:
            raise self._switchboard.link.lost(do)

    def _line(self) -> bytes | None:
        """The first line, or the beginning of one that is too long; None if it is not whole."""
        end = self._printed.find(b"\n", self._searched)
        if end < 0:
            self._searched = end = len(self._printed)
            if not self._printed or not (self._over or end > LONGEST_LINE):
                return None
        return bytes(self._printed[:end])

    def _take(self, message: Message) -> None:
        with self._changed:
            self._printed += message.data
            self._unread -= message.taken
            if message.over:
                self._over, self._code = True, message.code
            self._changed.notify_all()
