"""What every strike is written with."""

from __future__ import annotations

import asyncio

import pytest

from lockcheck.errors import FaultError
from lockcheck.nemesis.base import each_of


def test_what_fails_at_one_node_is_over_at_all_others_when_that_is_told() -> None:
    """A signal that is still to be sent would come after the healing."""
    done: list[str] = []

    async def fails() -> None:
        raise FaultError("it has no process left")

    async def takes_its_time() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        done.append("stopped")

    async def scene() -> None:
        with pytest.raises(FaultError, match="no process"):
            await each_of([fails(), takes_its_time()])
        assert done == ["stopped"]

    asyncio.run(scene())


def test_who_is_told_to_give_up_leaves_nothing_under_way() -> None:
    ended: list[str] = []

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("given up")

    async def scene() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await each_of([hangs(), hangs()])
        await asyncio.sleep(0)
        assert ended == ["given up", "given up"]

    asyncio.run(scene())
