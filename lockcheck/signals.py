"""What signals do: the first one interrupts the command, what must be completed is spared, and
children end with their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130  # the exit code of a run that was interrupted, by whichever of them
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_prctl = getattr(ctypes.CDLL(None), "prctl", None)  # Linux' own


def end_with(parent: int) -> None:
    """Called by a new child: it is killed when its parent ends, in whatever way."""
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # which ended before
        os.kill(os.getpid(), signal.SIGKILL)


def inherit_orphans() -> None:
    """Makes this process the parent of what its children leave behind when they end."""
    if _prctl is not None:
        _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Interrupted(KeyboardInterrupt):
    """Raised by the first of these signals: each ends a command in the same way as Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def heard_signals() -> list[signal.Signals]:
    """Those that this process was not started to ignore, as `nohup` asks. SIGINT counts all the
    same: shells ignore it for what they start in the background."""
    return [
        number
        for number in INTERRUPTING
        if number is signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN
    ]


def interrupt_once() -> None:
    """From now on the first signal raises Interrupted, and all later ones are ignored: the same
    Ctrl-C may arrive twice, and nothing interrupts the clean-up."""
    numbers = heard_signals()

    def interrupt(number: int, _frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, _ignored)
        raise Interrupted(number)

    for number in numbers:
        signal.signal(number, interrupt)


@contextmanager
def ignoring_signals() -> Iterator[None]:
    """Nothing interrupts what must be completed. Does nothing on other threads than the main one:
    Python runs handlers on that alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _ignored) for number in heard_signals()}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _ignored(_number: int, _frame: FrameType | None) -> None:
    """Not SIG_IGN: children would inherit that, and Python complains of one that came before it."""
