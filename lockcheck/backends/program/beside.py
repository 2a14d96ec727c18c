"""A program in a container of the user's own image, beside its client's: the agent starts it there,
with pipes of this process's (`agent/doors.py`)."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Sequence

import msgspec

DOOR = "door"  # in the client's folder
LONGEST_COMMAND = 1 << 16
STARTS_S = 30.0  # on a busy machine, after the end of one before


class Begin(msgspec.Struct, frozen=True):
    command: tuple[str, ...]


class Begun(msgspec.Struct, frozen=True):
    """It runs; or why it cannot be started."""

    error: int = 0
    words: str = ""


AGENT_GONE = Begun(errno.ECONNRESET, "the run's agent is gone")


class Over(msgspec.Struct, frozen=True):
    code: int  # as of a child


class ProgramBeside:
    """Like a child process, as far as that is used here."""

    def __init__(self, door: str, command: Sequence[str], stdin: int) -> None:
        """Raises OSError if it cannot be started."""
        out, theirs_out = os.pipe()
        err, theirs_err = os.pipe()
        self.stdout, self.stderr = os.fdopen(out, "rb"), os.fdopen(err, "rb")
        self._door = socket.socket(socket.AF_UNIX)
        self._door.settimeout(STARTS_S)
        try:
            self._door.connect(door)
            begin = msgspec.json.encode(Begin(tuple(command)))
            socket.send_fds(self._door, [begin], [stdin, theirs_out, theirs_err])
        finally:
            os.close(theirs_out)
            os.close(theirs_err)
        self._answers = self._door.makefile("rb")
        answer = self._answers.readline()
        begun = msgspec.json.decode(answer, type=Begun) if answer else AGENT_GONE
        if begun.error:
            raise OSError(begun.error, begun.words)
        self._door.settimeout(None)

    def wait(self) -> int:
        """When it returns, nothing is left of what it started."""
        answer = self._answers.readline()
        return msgspec.json.decode(answer, type=Over).code if answer else -signal.SIGKILL

    def kill(self) -> None:
        self._door.shutdown(socket.SHUT_WR)
