"""Standard output that is closed, or whose reader leaves early, as `head` and a terminal's window
do: the rest is discarded."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

STANDARD_STREAMS = 3


class _Output(io.FileIO):
    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "wb", closefd=False)
        self._left = {errno.EPIPE, errno.EIO} if self.isatty() else {errno.EPIPE}

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno not in self._left:
                raise
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return memoryview(data).nbytes


def outlive_readers() -> None:
    _occupy_what_is_closed()
    before = sys.stdout
    try:
        file = _Output(before.fileno())
    except (AttributeError, OSError, ValueError):  # not a file
        return
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=file.isatty(),
    )


def _occupy_what_is_closed() -> None:
    """Otherwise a file that is opened gets the number of a standard stream."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while os.open(os.devnull, os.O_RDWR) < STANDARD_STREAMS:
        pass
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
