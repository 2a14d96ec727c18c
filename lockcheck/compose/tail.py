"""Reading several growing histories the moment something is written to them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from lockcheck.history import Event
from lockcheck.history.event import decode_event


class Tail:
    def __init__(self, paths: Iterable[Path]) -> None:
        self._unopened = list(paths)
        self._open: dict[int, bytes] = {}  # by descriptor: the part of a line read so far

    def read(self) -> Iterator[Event]:
        """What is new; a line that is still being written is left for the next time."""
        for path in list(self._unopened):
            with suppress(FileNotFoundError):
                self._open[os.open(path, os.O_RDONLY | os.O_CLOEXEC)] = b""
                self._unopened.remove(path)
        for descriptor in self._open:
            yield from self._read_one(descriptor)

    def _read_one(self, descriptor: int) -> Iterator[Event]:
        while chunk := os.read(descriptor, 1 << 16):
            *lines, rest = (self._open[descriptor] + chunk).split(b"\n")
            self._open[descriptor] = rest
            for line in lines:
                yield decode_event(line)
