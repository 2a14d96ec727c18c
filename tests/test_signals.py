"""The first signal interrupts a command, the later ones do not, nor any what must be completed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lockcheck.signals import INTERRUPTING, Interrupted, ignoring_signals, interrupt_once


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in INTERRUPTING]


@pytest.fixture(autouse=True)
def _handlers_restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in INTERRUPTING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_other_threads_leave_the_handlers_alone() -> None:
    before = handlers()

    def meanwhile() -> list[object]:
        with ignoring_signals():
            return handlers()

    with ThreadPoolExecutor(max_workers=1) as pool:
        assert pool.submit(meanwhile).result() == before
    with ignoring_signals():
        assert handlers() != before
    assert handlers() == before


@pytest.mark.parametrize("number", INTERRUPTING)
def test_the_first_signal_interrupts_and_all_later_ones_are_ignored(number: signal.Signals) -> None:
    interrupt_once()
    with pytest.raises(Interrupted) as left:
        os.kill(os.getpid(), number)
    assert left.value.exit_code == 128 + number
    for later in INTERRUPTING:
        os.kill(os.getpid(), later)
    with ignoring_signals():
        os.kill(os.getpid(), number)
    os.kill(os.getpid(), number)


def test_a_signal_that_came_while_it_must_not_interrupts_nothing_afterwards() -> None:
    interrupt_once()
    with ignoring_signals():
        os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Interrupted):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("ignored", "sent", "code"),
    [
        (signal.SIGHUP, signal.SIGHUP, 0),  # as by nohup
        (signal.SIGTERM, signal.SIGTERM, 0),
        (signal.SIGINT, signal.SIGINT, 130),  # as a shell's `&` does, and `kill -INT` is meant
    ],
)
def test_what_it_was_started_to_ignore(
    ignored: signal.Signals, sent: signal.Signals, code: int
) -> None:
    program = f"""
import os, signal, sys
signal.signal({ignored.value}, signal.SIG_IGN)
from lockcheck.signals import Interrupted, interrupt_once
interrupt_once()
try:
    os.kill(os.getpid(), {sent.value})
except Interrupted as left:
    sys.exit(left.exit_code)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == code
