"""Reads from a pipe without missing a signal while it waits."""

from __future__ import annotations

import io
import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol

SIGNALS_AT_ONCE = 64


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


@contextmanager
def awaited(stream: BinaryIO | io.FileIO) -> Iterator[Readable]:
    """The stream, from which nothing was read before, so that signals interrupt a wait."""
    descriptor = _descriptor_of(stream)
    if descriptor is None or threading.current_thread() is not threading.main_thread():
        yield stream
        return
    with _woken_by_signals() as woken:
        yield _Awaited(descriptor, woken)


def _descriptor_of(stream: BinaryIO | io.FileIO) -> int | None:
    try:
        return stream.fileno()
    except io.UnsupportedOperation:  # not a file of the system: reading it never blocks
        return None


@contextmanager
def _woken_by_signals() -> Iterator[int]:
    """A descriptor that becomes readable when a signal arrives, so that a wait on it ends.

    A signal that arrives just before a blocking read, or in another thread, would be handled only
    after that read. Handlers run in the main thread, so only the main thread can use this.
    """
    woken, wake = os.pipe()
    try:
        os.set_blocking(wake, False)
        before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        try:
            yield woken
        finally:
            signal.set_wakeup_fd(before)
    finally:
        os.close(woken)
        os.close(wake)


class _Awaited:
    def __init__(self, descriptor: int, woken: int) -> None:
        self._descriptor = descriptor
        self._woken = woken

    def read(self, size: int, /) -> bytes:
        while self._woken in select.select([self._descriptor, self._woken], [], [])[0]:
            os.read(self._woken, SIGNALS_AT_ONCE)  # the handler runs now, and may raise
        return os.read(self._descriptor, size)
