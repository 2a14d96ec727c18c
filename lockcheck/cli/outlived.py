"""Standard output whose reader may go away, as `head` does when it has read enough.

That is no failure: the rest is discarded, and the exit code is the same.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Pipe(io.FileIO):
    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nobody = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nobody, self.fileno())
            os.close(nobody)
            return memoryview(data).nbytes


def outlive_readers() -> None:
    said = sys.stdout
    try:
        file = _Pipe(said.fileno(), "wb", closefd=False)
    except (AttributeError, OSError, ValueError):  # it is closed, or no file
        return
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=said.encoding,
        errors=said.errors,
        line_buffering=file.isatty(),
    )
