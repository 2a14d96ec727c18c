"""Reads several growing histories as they are written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from lockcheck.history import Event
from lockcheck.history.event import decode_event

CHUNK = 1 << 16


class Tail:
    """Reads new events of several files, which may not exist yet."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._unopened = list(paths)
        self._open: dict[int, int] = {}  # by descriptor: up to where its whole lines were read

    def read(self) -> Iterator[Event]:
        """New events. An unfinished line is left for the next call: it may yet be removed."""
        for path in list(self._unopened):
            with suppress(FileNotFoundError):
                self._open[os.open(path, os.O_RDONLY | os.O_CLOEXEC)] = 0
                self._unopened.remove(path)
        for descriptor in self._open:
            yield from self._read_one(descriptor)

    def _read_one(self, descriptor: int) -> Iterator[Event]:
        length = CHUNK
        while chunk := os.pread(descriptor, length, self._open[descriptor]):
            *lines, torn = chunk.split(b"\n")
            if not lines and len(chunk) < length:
                return
            length = CHUNK if lines else 2 * length
            self._open[descriptor] += len(chunk) - len(torn)
            for line in lines:
                yield decode_event(line)
