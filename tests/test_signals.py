"""Handlers of signals: set for a while on the main thread, and not at all on others."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest

from lockcheck.signals import ignoring_signals, interrupted_once

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in HANDLED]


@pytest.mark.parametrize("handling", [interrupted_once, ignoring_signals])
def test_other_threads_leave_the_handlers_alone(
    handling: Callable[[], AbstractContextManager[None]],
) -> None:
    before = handlers()

    def meanwhile() -> list[object]:
        with handling():
            return handlers()

    with ThreadPoolExecutor(max_workers=1) as pool:
        assert pool.submit(meanwhile).result() == before
    with handling():
        assert handlers() != before
    assert handlers() == before


@pytest.mark.parametrize("number", HANDLED)
def test_the_first_signal_interrupts_and_all_later_ones_are_ignored(number: signal.Signals) -> None:
    interrupted = 0
    with interrupted_once():
        try:
            os.kill(os.getpid(), number)
        except KeyboardInterrupt:
            interrupted += 1
        for later in HANDLED:
            os.kill(os.getpid(), later)
    assert interrupted == 1
