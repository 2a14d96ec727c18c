"""SIGTERM and SIGHUP while a cluster is up: it is ended before the process dies of the signal.

Only on the main thread, and only where nothing else handles or ignores the signal: there it would
end the process at once, and leave containers.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATING = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """Unwinds as Ctrl-C does: test runners end their fixtures, and run no other test."""


@contextmanager
def dying_after() -> Iterator[None]:
    """The first signal unwinds the `with` block; at its end the process dies of it, as it would
    have before."""
    owner, received = os.getpid(), list[int]()

    def unwind(number: int, _frame: FrameType | None) -> None:
        if os.getpid() != owner:  # a fork of the test's own, which has no cluster to end
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        received.append(number)
        if len(received) == 1:
            raise Terminated(signal.Signals(number).name)

    unhandled = [each for each in TERMINATING if signal.getsignal(each) is signal.SIG_DFL]
    try:
        with _handling(unhandled, unwind):
            yield
    finally:
        for number in received[:1]:
            signal.raise_signal(number)


@contextmanager
def postponed() -> Iterator[None]:
    """Whatever comes during the `with` block takes effect after it, except for a second Ctrl-C."""
    received = list[int]()
    numbers = (signal.SIGINT, *TERMINATING)
    try:
        with _handling(numbers, lambda number, _frame: received.append(number)):
            yield
    finally:
        for number in {*received} & {*TERMINATING}:
            signal.raise_signal(number)


@contextmanager
def _handling(
    numbers: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], object]
) -> Iterator[None]:
    """Does nothing on other threads than the main one: Python runs handlers on that alone. Leaves
    handlers alone that are not Python's (None), and those that are set meanwhile."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, handler)
        for number in numbers
        if signal.getsignal(number) is not None
    }
    try:
        yield
    finally:
        for number, earlier in before.items():
            if signal.getsignal(number) is handler:
                signal.signal(number, earlier)
