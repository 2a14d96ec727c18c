"""SIGTERM and SIGHUP while a cluster is up: it is ended before the process dies of the signal.

Only on the main thread, and only where nothing else handles or ignores the signal: there it would
end the process at once, and leave containers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lockcheck.signals import TERMINATING, handling


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
        with handling(unhandled, unwind):
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
        with handling(numbers, lambda number, _frame: received.append(number)):
            yield
    finally:
        for number in {*received} & {*TERMINATING}:
            signal.raise_signal(number)
