"""Moves the clocks of nodes: they jump, drift (run at another rate) or strobe (jump to and fro).

Healing restores the clocks. A server that depends on its monotonic clock (`Server.clock`) is
restarted with its data instead of seeing it go back. Redis depends on the wall clock and would lose
its locks in a restart, so both of its clocks are restored, and some background work waits a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis.aims import (
    CLIENT,
    FOLLOWER,
    HOLDER,
    LEADER,
    MAJORITY,
    MINORITY,
    RANDOM,
    SERVER,
)
from lockcheck.nemesis.base import DidNotLastError, FaultKind, Plan, Refusal, Step, each_of
from lockcheck.nemesis.clock.engines import Clocks, VdsoClocks
from lockcheck.nemesis.clock.facts import ClockFacts
from lockcheck.nemesis.clock.faketime import FaketimeClocks
from lockcheck.nemesis.clock.motion import DRIFT, JUMP, STROBE, Motion, motion_of
from lockcheck.nemesis.clock.proof import is_right, prove
from lockcheck.nemesis.clock.skew import CLOCKS, Skew, true_ns
from lockcheck.nemesis.clock.vdso_image import kernels_image
from lockcheck.nemesis.parameters import flag
from lockcheck.nemesis.scene import Scene
from lockcheck.nemesis.triggers import Trigger
from lockcheck.nodes.node import Node, Role
from lockcheck.servers.base import Clock

WALL = flag("wall", "only the wall clock")
MONO = flag("mono", "only the monotonic clock")


@dataclass(slots=True)
class Moved:
    """A node whose clocks are moved: which ones, by which engine, and how they run now."""

    node: Node
    which: tuple[Clock, ...]
    clocks: Clocks
    skew: Skew
    taken: bool = False
    giving_back: bool = False


class ClockFault:
    def __init__(self, motion: Motion, moved: Iterable[Moved], scene: Scene) -> None:
        self._motion = motion
        self._all = tuple(moved)
        self._scene = scene
        self._moved: dict[str, Moved] = {}  # not restored yet
        self._before_ns: list[int] = []  # right before the first change, on each node
        self._facts = ClockFacts(scene, {each.node.name: each.clocks for each in self._all})
        self._strobing: asyncio.Task[None] | None = None
        self._changed: list[str] = []  # nodes whose clocks were changed from outside

    async def inject(self) -> int:
        await self._facts.note_all()
        await each_of(self._take(each) for each in self._all)
        if self._motion.every_ms:
            self._strobing = asyncio.create_task(self._strobe(self._motion.every_ms / 1000))
        self._facts.start()
        return min(self._before_ns)

    async def _take(self, moved: Moved) -> None:
        if not moved.node.alive:
            raise FaultError(f"{moved.node.name} has no process whose clock could be moved")
        self._moved[moved.node.name] = moved
        for clock in moved.which:
            moved.skew = moved.skew.with_line(clock, self._motion.line(true_ns(clock)))
        self._before_ns.append(await moved.clocks.take(moved.skew, self._scene.now_ns))
        moved.taken = True

    async def _strobe(self, every_s: float) -> None:
        away = {each.node.name: each.skew for each in self._all}
        while True:
            for back in (True, False):
                await asyncio.sleep(every_s)
                for each in self._all:
                    each.skew = Skew() if back else away[each.node.name]
                    each.clocks.apply(each.skew)

    async def prove(self) -> str:
        moved = self._all
        return "; ".join([await prove(self._motion, m.node, m.which, m.clocks) for m in moved])

    async def heal(self) -> None:
        await self._facts.stop()
        self._changed += await self._stop_strobing()
        self._changed += [name for name, each in self._moved.items() if not _is_untouched(each)]
        await each_of(self._give_back(each) for each in list(self._moved.values()))
        await self._facts.note_all()
        changed, self._changed = self._changed, []
        if changed:
            raise DidNotLastError(f"the clocks did not run as they were set: {', '.join(changed)}")

    async def _stop_strobing(self) -> list[str]:
        if self._strobing is None:
            return []
        strobing, self._strobing = self._strobing, None
        strobing.cancel()
        await asyncio.wait((strobing,))
        error = None if strobing.cancelled() else strobing.exception()
        return [f"{type(error).__name__}: {error}"] if error else []

    async def _give_back(self, moved: Moved) -> None:
        moved.giving_back = True
        node, fleet = moved.node, self._scene.fleet
        starts_again = _needs_restart(node, moved.which)
        if starts_again:
            await fleet.end(node.name)
        await moved.clocks.give_back()
        if starts_again:
            await fleet.start(node.name, data=True)
            await moved.clocks.give_back()  # again: now there are processes to check
        await is_right(node)
        del self._moved[node.name]


def _is_untouched(moved: Moved) -> bool:
    """Whether its clocks run as they were set; also true of a node whose clocks are not moved."""
    idle = moved.giving_back or not moved.taken or not moved.node.alive
    return idle or moved.clocks.are_set_to(moved.skew)


def _needs_restart(node: Node, which: tuple[Clock, ...]) -> bool:
    """Whether the server must not see one of these clocks, its monotonic one, go back."""
    server = node.spec.server
    return server is not None and server.clock is Clock.MONOTONIC and server.clock in which


def _strike(step: Step, nodes: tuple[str, ...], scene: Scene) -> ClockFault:
    moved = [_moved(step, scene.nodes[name]) for name in nodes]
    return ClockFault(motion_of(step), moved, scene)


def _moved(step: Step, node: Node) -> Moved:
    which = _which(step, node.role)
    waits_by_kernel = node.spec.server is not None and node.spec.server.waits_by_kernel
    faked = waits_by_kernel and Clock.MONOTONIC in which
    return Moved(node, which, FaketimeClocks(node) if faked else VdsoClocks(node), Skew())


def _moves_monotonic(step: Step) -> bool:
    """Whether it moves the monotonic clocks of servers."""
    return not step.aim.at_clients and not step.setting(WALL.name)


def _which(step: Step, role: Role) -> tuple[Clock, ...]:
    """The clocks to move: never a client's monotonic one, which times the history."""
    if role is Role.CLIENT or step.setting(WALL.name):
        return (Clock.WALL,)
    return (Clock.MONOTONIC,) if step.setting(MONO.name) else CLOCKS


def _why_not_there(step: Step, plan: Plan) -> Refusal | None:
    """Why the plan's servers do not allow it."""
    if not (any(kind.server.waits_by_kernel for kind in plan.kinds) and _moves_monotonic(step)):
        return None
    if not plan.faketime:
        return Refusal(
            f"{plan.backend}'s servers do not run under libfaketime, which alone can move their "
            "monotonic clock",
            f"lockcheck.cluster(..., faketime=True); or move the {WALL.name} clock alone",
        )
    if step.setting(MONO.name):
        return Refusal(
            f"{plan.backend}'s servers need libfaketime to move their monotonic clock, and that "
            "moves their wall clock, too",
            f"leave out {MONO.name}",
        )
    if step.setting(DRIFT.name) is not None:
        return Refusal(
            f"{plan.backend}'s servers need libfaketime to move their clocks, and it counts a rate "
            "from their start",
            f"let it jump, or strobe; or move the {WALL.name} clock alone",
        )
    return None


def _why_not_so(step: Step) -> Refusal | None:
    given = {name for name, _ in step.given}
    if DRIFT.name in given and given & {JUMP.name, STROBE.name}:
        return Refusal(
            "a clock either drifts or jumps", f"leave out {DRIFT.name}, or give two faults"
        )
    if step.setting(DRIFT.name) == 1:
        return Refusal("a clock that counts 1 second per second is right", f"{DRIFT.name}=1.5")
    if {WALL.name, MONO.name} <= given:
        return Refusal("both clocks are moved anyway", f"leave out {WALL.name} and {MONO.name}")
    if MONO.name in given and (step.aim.at_clients or step.aim is RANDOM):
        return Refusal(
            "a client's history is timed by its monotonic clock, which is never moved",
            f"leave out {MONO.name} to move a client's wall clock; or aim at server",
        )
    return None


def _lacks(_step: Step) -> Refusal | None:
    try:
        kernels_image()
    except FaultError as error:
        return Refusal(error.message, error.cure)
    return None


def _when(step: Step, _plan: Plan) -> Trigger:
    """For servers, once a lock is held: a jump can only expire a lock that was granted."""
    return Trigger.SCHEDULE if step.aim in (CLIENT, RANDOM) else Trigger.ACQUIRE


KIND = FaultKind(
    name="clock",
    summary="clocks jump, drift or strobe; by default a server's, by +30s; of a client the wall "
    "clock alone",
    effect=Effect.SKEWS,
    aims=(SERVER, LEADER, FOLLOWER, MINORITY, MAJORITY, CLIENT, HOLDER, RANDOM),
    strike=_strike,
    parameters=(JUMP, DRIFT, STROBE, WALL, MONO),
    when=_when,
    why_not=lambda step, plan: _why_not_so(step) or _why_not_there(step, plan),
    lacks=_lacks,
    variants=("", "jump=-30s", "drift=1.5", "drift=0.7", "strobe=50ms", "wall"),
    wants_faketime=_moves_monotonic,
    needs="an x86-64 or aarch64 processor, and the right to trace the nodes' processes",
)
