"""A fault at nodes that are named, instead of those that an aim would choose."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from lockcheck.nemesis.base import Aim, Step
from lockcheck.nemesis.scene import Scene


def at_nodes(step: Step, names: tuple[str, ...], *, at_clients: bool = False) -> Step:
    async def these(_scene: Scene, _choices: Random) -> tuple[str, ...]:
        return names

    aim = Aim("+".join(names), "the nodes that were named", these, at_clients=at_clients)
    return replace(step, aim=aim)
