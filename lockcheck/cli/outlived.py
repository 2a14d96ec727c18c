"""Standard output whose reader may leave early, as `head` does: the rest is discarded."""

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
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self.fileno())
            os.close(null)
            return memoryview(data).nbytes


def outlive_readers() -> None:
    before = sys.stdout
    try:
        file = _Pipe(before.fileno(), "wb", closefd=False)
    except (AttributeError, OSError, ValueError):  # closed, or not a file
        return
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=file.isatty(),
    )
