"""Standard output whose reader may go away, as `head` does once it has seen enough.

That is no failure: the rest is written to nobody, and the exit code says what it would have said.
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
