"""The command runs in a child, so that exit 0 and 1 mean a verdict and nothing else.

A library in C may end the process: BLAS calls `exit(1)` where it gets no memory, which a nightly
job would read as a violation. So the child adds DECIDED to the codes that it decided.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection
from contextlib import suppress

from lockcheck.signals import INTERRUPTING, end_with, heard_signals, interrupt_once

DECIDED = 64  # the highest code, 128 + SIGTERM, still fits a byte with it
ENDED_BY_ITSELF = 4


def supervise() -> None:
    """Returns in the child. The parent exits with its code, and passes signals on to it."""
    awaited = (*heard_signals(), signal.SIGCHLD)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it were ignored, no exit would be noticed
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        cure = "end some processes, or raise the limit (ulimit -u, or pids of the container)"
        say_barely(f"no process can be started: {error.strerror}", cure)
        os._exit(ENDED_BY_ITSELF)
    if child == 0:
        end_with(parent)  # a user knows of that one only
        interrupt_once()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    else:
        os._exit(_code_of(_status_of(child, awaited)))


def _status_of(child: int, awaited: Collection[signal.Signals]) -> int:
    """Passes on each signal, wherever it comes from: a terminal's Ctrl-C reaches the child, too,
    and a hangup may not. The child hears the first alone."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        heard = signal.sigwaitinfo(awaited).si_signo
        if heard != signal.SIGCHLD:
            os.kill(child, heard)


def _code_of(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    if code >= DECIDED:
        return code - DECIDED
    if -code in INTERRUPTING:  # it was on its way out
        return 128 - code
    how = f"ended with {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"
    say_barely(
        f"its process {how} before a verdict",
        "see the output above, and whether it ran out of memory",
    )
    return ENDED_BY_ITSELF


def say_barely(message: str, cure: str) -> None:
    """As `gate.print_error`, where that cannot be imported."""
    with suppress(OSError):  # closed: the exit code reports it, too
        os.write(2, f"lockcheck: {message}\n  cure: {cure}\n".encode())
