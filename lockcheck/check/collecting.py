"""Switches off Python's garbage collector for a while."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Iterator[None]:
    """Suspends the search for reference cycles. Events, operations and findings form none, and
    searching millions of them again and again takes as long as judging them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
