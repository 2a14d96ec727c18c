"""Waits for a condition in asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lockcheck.errors import FaultError


async def wait_until(
    condition: Callable[[], bool], lacking: str, timeout_s: float, poll_s: float = 0.001
) -> None:
    """Polls until the condition holds. Raises FaultError with `lacking` when the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while not condition():
        if loop.time() > deadline:
            raise FaultError(f"timed out after {timeout_s:g} s: {lacking}")
        await asyncio.sleep(poll_s)
