"""Handlers of SIGTERM and SIGHUP that a library may install, for as long as it needs them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lockcheck.library.termination import dying_after, postponed

TERM, HUP = signal.SIGTERM, signal.SIGHUP
SCRIPT = """
import signal
from lockcheck.library.termination import dying_after
with dying_after():
    try:
        with dying_after():
            signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt as unwinding:
        signal.raise_signal(signal.SIGTERM)
        print("cleaned up after", unwinding, flush=True)
"""


@contextmanager
def handled(number: int, by: signal.Handlers | Callable[..., object]) -> Iterator[None]:
    before = signal.signal(number, by)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_the_process_dies_of_the_signal_once_all_is_cleaned_up() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (-TERM, b"cleaned up after SIGTERM\n")


def test_what_others_handle_or_ignore_stays_theirs() -> None:
    received: list[int] = []
    with (
        handled(TERM, lambda number, _frame: received.append(number)),
        handled(HUP, signal.SIG_IGN),
    ):
        with dying_after():
            signal.raise_signal(TERM)
            signal.raise_signal(HUP)
        signal.raise_signal(TERM)
        assert signal.getsignal(HUP) is signal.SIG_IGN
    assert received == [TERM, TERM]


def test_a_handler_that_a_test_sets_meanwhile_stays() -> None:
    def own(_number: int, _frame: object) -> None: ...

    with handled(TERM, signal.SIG_DFL):
        with dying_after():
            signal.signal(TERM, own)
        assert signal.getsignal(TERM) is own


def test_on_another_thread_nothing_is_installed() -> None:
    found: list[object] = []

    def look() -> None:
        with dying_after(), postponed():
            found.append(signal.getsignal(TERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(TERM)]


def test_a_cleanup_is_completed_and_then_the_signal_has_its_effect() -> None:
    received: list[int] = []
    with handled(TERM, lambda number, _frame: received.append(number)):
        with postponed():
            signal.raise_signal(TERM)
            signal.raise_signal(signal.SIGINT)  # a second Ctrl-C
            assert received == []
        assert received == [TERM]
