"""Sets signal handlers for a while and restores them on every way out."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | signal.Handlers
TERMINATING = (signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130  # the exit code of a run that was interrupted, by whichever of them


class Terminated(BaseException):
    """Like KeyboardInterrupt: not an Exception, so that no handler of errors catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def handling(numbers: Iterable[signal.Signals], handler: Handler) -> Iterator[None]:
    """Does nothing on other threads than the main one: Python runs handlers on that alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _ignored(_number: int, _frame: FrameType | None) -> None:
    """Not SIG_IGN: children would inherit that, and Python complains of one that came before it."""


def ignoring_signals() -> AbstractContextManager[None]:
    """A second Ctrl-C does not interrupt what must be completed."""
    return handling((signal.SIGINT, *TERMINATING), _ignored)


def interrupted_once() -> AbstractContextManager[None]:
    """SIGTERM and SIGHUP end a run in the same way as Ctrl-C; after the first of them all others
    are ignored, so that nothing interrupts the cleanup."""
    numbers = (signal.SIGINT, *TERMINATING)

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, _ignored)
        raise KeyboardInterrupt

    return handling(numbers, interrupt)


def unwinding_when_terminated() -> AbstractContextManager[None]:
    """Cleans up on the way out; the exit code still names the signal."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise Terminated(number)

    return handling(TERMINATING, leave)
