"""The command runs in a child, so that exit 0 and 1 mean a verdict and nothing else.

A library in C may end the process: BLAS calls `exit(1)` where it gets no memory, which a nightly
job would read as a violation. So the child adds DECIDED to the codes that it decided.

A child that only reads and judges is bounded: whatever it is doing, in C or in Python, the parent
ends it when it takes more memory than it may, or does not end soon after a signal.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress

from lockcheck.signals import INTERRUPTING, end_with, heard_signals, interrupt_once

DECIDED = 64  # the highest code, 128 + SIGTERM, still fits a byte with it
ENDED_BY_ITSELF = 4
LOOK_EVERY_S = 0.05
GRACE_S = 1.5  # for a bounded child to end by itself after a signal
BESIDES = 128 << 20  # bytes of the process itself: Python, the libraries and what they keep
CURSOR_SHOWN_AGAIN = b"\r\x1b[K\x1b[?25h"

# Shared with the child: the bytes that it may take; 0 while it is not bounded.
_bound = ctypes.c_int64.from_buffer(mmap.mmap(-1, mmap.PAGESIZE))


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
        os._exit(_code_of_child(child, awaited))


def bound_memory(most_bytes: int) -> None:
    """Bounds this process, which from now on leaves nothing behind if it is killed."""
    _bound.value = most_bytes


def _code_of_child(child: int, awaited: Collection[signal.Signals]) -> int:
    """Passes on each signal, wherever it comes from: a terminal's Ctrl-C reaches the child, too,
    and a hangup may not. The child hears the first alone."""
    asked, deadline = 0, 0.0  # the signal that asked it to end, and by when
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return _code_of(status)
        if _bound.value and asked and time.monotonic() > deadline:
            _end(child)
            return 128 + asked
        if _bound.value and _memory_of(child) > _bound.value + BESIDES:
            _end(child)
            return _too_large()
        heard = signal.sigtimedwait(awaited, LOOK_EVERY_S)
        if heard is None or heard.si_signo == signal.SIGCHLD:
            continue
        os.kill(child, heard.si_signo)
        if not asked:
            asked, deadline = heard.si_signo, time.monotonic() + GRACE_S


def _memory_of(pid: int) -> int:
    """Bytes of it that are in memory; 0 if it has ended, or where the system does not say."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as sizes:  # noqa: PTH123 - pathlib takes long to import
            return int(sizes.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


def _end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if os.isatty(2):  # it may have drawn its progress
        os.write(2, CURSOR_SHOWN_AGAIN)


def _too_large() -> int:
    megabytes = max(1, _bound.value >> 20)
    say_barely(
        f"it takes more memory than --memory allows ({megabytes}MB)",
        f"allow more, as in --memory {2 * megabytes}MB, or give it a part of the history; "
        "JSON Lines, CSV and spans take the least",
    )
    return ENDED_BY_ITSELF


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
