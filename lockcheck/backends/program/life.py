"""One life of a user's client program: a child of lockcheck's own client, so on its node, and
struck by every fault that strikes that.

It may die, hang, flood, or say what is no message: each is bounded here, and ends its life.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, Any

import msgspec

from lockcheck.backends.program.beside import ProgramBeside
from lockcheck.backends.program.messages import ANSWERS, Answer, Mistaken, Notice, read, written
from lockcheck.nodes.node import children_of
from lockcheck.signals import end_with, inherit_orphans

LONGEST_LINE = 1 << 16
MOST_AT_ONCE = 1000  # lines within a second that are no answers
MOST_OUTPUT = 1 << 20  # bytes of its standard error that are kept
ENDS_S = 0.5  # from the end of its output until it has to have ended
LAST_S = 2.0  # from the end of its input until it is killed

Hear = Callable[[Notice | Answer], None]  # on the thread that reads; an answer that came too late


class NotAnsweredError(Exception):
    """The program did not answer in time."""


class NotUnderstoodError(Exception):
    """Its answer is of a wrong type."""


class EndedError(Exception):
    """The program has ended, or had to be ended."""


class Program:
    def __init__(
        self,
        command: Sequence[str],
        folder: str,
        *,
        node: str,
        hear: Hear,
        ended: Callable[[str, int], None],
        door: str = "",
    ) -> None:
        """Raises OSError if it cannot be started. `ended` is called once, unless it is closed: with
        the reason, and the last moment at which it certainly lived."""
        self._node = node
        self._hear = hear
        self._tell_end = ended
        self._number = 0
        self._awaited: int | None = None
        self._answer: Answer | Mistaken | None = None
        self._answered = threading.Condition()
        self._lines, self._counted_from = 0, time.monotonic()
        self._closed = False
        self.gone = threading.Event()  # with all that it started
        self.why_ended = ""
        self._lived_ns = time.monotonic_ns()
        self._output = _Output()
        self._others = frozenset(children_of(os.getpid()))
        self._child, self._input = _started(command, folder, door)
        for stream, follow in (
            (self._child.stdout, self._read),
            (self._child.stderr, self._output.pass_on),
        ):
            threading.Thread(target=follow, args=(stream,), daemon=True).start()
        threading.Thread(target=self._wait, daemon=True).start()

    @property
    def asked(self) -> int:
        """The number of the latest request."""
        return self._number

    def ask(self, kind: str, patience_s: float, **content: Any) -> Answer:
        """Raises EndedError, NotAnsweredError or NotUnderstoodError."""
        with self._answered:
            self._number += 1
            self._awaited, self._answer = self._number, None
        try:
            self._say(kind, self._number, content)
            with self._answered:
                self._answered.wait_for(lambda: self._answer or self.why_ended, patience_s)
                answer = self._answer
        finally:
            with self._answered:
                self._awaited = None
        if answer is None:
            if self.why_ended:
                raise EndedError(self.why_ended)
            raise NotAnsweredError(f"nothing within {patience_s:.1f} s")
        if isinstance(answer, Mistaken):
            raise NotUnderstoodError(answer.why)
        return answer

    def tell(self, kind: str, **content: Any) -> None:
        """A request that needs no answer."""
        with suppress(EndedError):
            self._say(kind, None, content)

    def _say(self, kind: str, number: int | None, content: dict[str, Any]) -> None:
        if self._closed or self.why_ended:  # its descriptor may be another's by now
            raise EndedError(self.why_ended)
        try:
            os.write(self._input, written(self._node, kind, number, content))
        except BlockingIOError:  # thousands of requests that it never read
            self.end("it does not read its input")
            raise EndedError(self.why_ended) from None
        except OSError as error:
            self.gone.wait(ENDS_S)
            raise EndedError(self.why_ended or f"its input is closed: {error}") from error

    # --- what it says ------------------------------------------------------------------------

    def _read(self, stream: IO[bytes]) -> None:
        while line := stream.readline(LONGEST_LINE):
            self._lived_ns = time.monotonic_ns()
            if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
                self.end(f"it printed {LONGEST_LINE} bytes without a newline")
                break
            self._take(line)
            if self._floods():
                self.end(f"it printed {MOST_AT_ONCE} lines in a second, and no answer")
                break
        if not self._closed and not self.gone.wait(ENDS_S):
            self.end("it closed its output")

    def _wait(self) -> None:
        """What it started may have its output, go on without it, and keep its lock alive."""
        code = self._child.wait()
        _kill_children(but=self._others)
        self.gone.set()
        self._is_over(_in_words(code))

    def _floods(self) -> bool:
        now = time.monotonic()
        if now - self._counted_from > 1:
            self._lines, self._counted_from = 0, now
        self._lines += 1
        return self._lines > MOST_AT_ONCE

    def _take(self, line: bytes) -> None:
        try:
            message = read(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._output.write(b"program: no message: " + line)
            return
        if not isinstance(message, (*ANSWERS, Mistaken)):
            self._hear(message)
            return
        with self._answered:
            if message.in_reply_to == self._awaited and self._answer is None:
                self._answer, self._lines = message, 0
                self._answered.notify_all()
                return
        if not isinstance(message, Mistaken):
            self._hear(message)

    # --- its end -----------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        return bool(self.why_ended)

    def end(self, why: str) -> None:
        """Kills it, with all that it started. Another can be begun afterwards."""
        self._is_over(why)
        self._child.kill()
        self.gone.wait(LAST_S)

    def _is_over(self, why: str) -> None:
        with self._answered:
            if self.why_ended:
                return
            self.why_ended = why
            self._answered.notify_all()
        if not self._closed:
            self._tell_end(why, self._lived_ns)

    def close(self) -> None:
        """The end of its input is the end of its work."""
        if not self._closed:
            self._closed = True
            os.close(self._input)
        self.gone.wait(LAST_S)
        self.end("it was closed")


def _started(
    command: Sequence[str], folder: str, door: str
) -> tuple[subprocess.Popen[bytes] | ProgramBeside, int]:
    """The child, and the end of its input to write to, which never blocks."""
    theirs, ours = os.pipe()
    try:
        child = (
            ProgramBeside(door, command, theirs) if door else _as_a_child(command, folder, theirs)
        )
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    os.set_blocking(ours, False)
    return child, ours


def _as_a_child(command: Sequence[str], folder: str, stdin: int) -> subprocess.Popen[bytes]:
    inherit_orphans()  # what it leaves behind becomes ours, to be ended
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=partial(end_with, os.getpid()),  # noqa: PLW1509 - it takes no lock
    )


def _kill_children(*, but: Collection[int]) -> None:
    """All that the program has started, which is ours once it has ended itself."""
    while left := set(children_of(os.getpid())) - set(but):
        for pid in left:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


class _Output:
    """Its standard error, and what is no message, go to the node's output, up to a limit. The rest
    is read and dropped."""

    def __init__(self) -> None:
        self._left = MOST_OUTPUT
        self._writing = threading.Lock()

    def pass_on(self, stream: IO[bytes]) -> None:
        while data := os.read(stream.fileno(), LONGEST_LINE):
            self.write(data)

    def write(self, data: bytes) -> None:
        with self._writing:
            if not self._left:
                return
            os.write(2, data[: self._left])
            self._left = max(0, self._left - len(data))
            if not self._left:
                text = f"\nprogram: it printed more than {MOST_OUTPUT} bytes: the rest is dropped\n"
                os.write(2, text.encode())


def _in_words(code: int) -> str:
    if code >= 0:
        return f"it ended with {code}"
    return f"it was killed by {signal.Signals(-code).name}"
