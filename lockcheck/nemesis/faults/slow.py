"""Slows down what some nodes send: it is late, partly lost, or limited to a low rate."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis.aims import CLIENT, HOLDER, LEADER, MAJORITY, MINORITY, NODE, SERVER
from lockcheck.nemesis.base import FaultKind, Plan, Refusal, Step
from lockcheck.nemesis.network import drops, queues
from lockcheck.nemesis.network.arrivals import Arrivals
from lockcheck.nemesis.network.links import Link
from lockcheck.nemesis.network.slowness import Delay, PacketLoss, Rate, Seen, Slowness
from lockcheck.nemesis.parameters import duration, number, rate
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.namespaces import inside, new_network
from lockcheck.nodes.node import Node

RATE = rate("rate", "at most this many bits per second", low=4000, high=10_000_000, default=8000)
LOSS = number("loss", "the percentage of packets that are lost", low=2, high=95)
DELAY = duration("delay", "how long each packet is delayed")
TRIES = 5  # a busy machine may spoil a measurement
HEALED_S = 5.0
LONGEST_DELAY_MS = 10_000
BETWEEN_LOOKS_S = 0.02


class Slow:
    def __init__(self, nodes: Iterable[str], slowness: Slowness, scene: Scene) -> None:
        self._nodes = [scene.nodes[name] for name in nodes]
        self._slowness = slowness
        self._scene = scene
        self._arrivals: Arrivals | None = None
        self._before: dict[str, Seen] = {}

    async def inject(self) -> None:
        self._arrivals = Arrivals(self._scene.nodes.values())
        for node in self._nodes:
            self._before[node.name] = await self._measure(
                node, self._slowness.is_gone, "is healthy"
            )
        for node in self._nodes:
            self._scene.links.slow.add(node.name)
            self._slowness.apply(node, self._others(node))

    async def prove(self) -> str:
        return "; ".join([await self._prove(node) for node in self._nodes])

    async def _prove(self, node: Node) -> str:
        now = self._slowness.words(
            await self._measure(node, self._slowness.is_in_effect, "is slow")
        )
        before = self._slowness.words(self._before[node.name])
        return f"{now} from {node.name}, and before {before}"

    async def heal(self) -> None:
        for node in self._nodes:
            self._slowness.remove(node, self._others(node))
        if self._arrivals is None:
            return
        for node in self._nodes:
            if node.name in self._before and self._way_out(node) is not None:
                await self._measure(node, self._slowness.is_gone, "recovered", HEALED_S)
            self._scene.links.slow.discard(node.name)
        self._arrivals.close()
        self._arrivals = None

    def _others(self, node: Node) -> list[Node]:
        return [other for other in self._scene.nodes.values() if other is not node]

    async def _measure(
        self, node: Node, wanted: Callable[[Seen], bool], state: str, for_s: float = 0.0
    ) -> Seen:
        """Measures the node's link until the result is as wanted; `state` is that in words."""
        loop, tries = asyncio.get_running_loop(), 0
        deadline = loop.time() + for_s
        while True:
            seen, tries = await self._look(node), tries + 1
            if wanted(seen):
                return seen
            if tries >= TRIES and loop.time() >= deadline:
                words = self._slowness.words(seen)
                raise FaultError(f"could not confirm that {node.name}'s link {state}: {words}")
            await asyncio.sleep(BETWEEN_LOOKS_S)

    async def _look(self, node: Node) -> Seen:
        way = self._way_out(node)
        if way is None or self._arrivals is None:
            raise FaultError(f"other faults had cut {node.name} off from all other nodes")
        return await self._slowness.measure(self._arrivals, way)

    def _way_out(self, node: Node) -> Link | None:
        ways = (Link(node.name, other.name) for other in self._others(node))
        arrivals, is_cut = self._arrivals, self._scene.links.is_cut
        return next((w for w in ways if arrivals and arrivals.covers(w) and not is_cut(w)), None)


# --- what was asked for --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Way:
    """One of the ways to be slow."""

    made: Callable[[float], Slowness]
    try_here: Callable[[], None]  # raises OSError where the kernel cannot; in a scratch network
    missing: Refusal


WAYS = {
    RATE.name: _Way(
        lambda bits: Rate(int(bits) // 8),
        lambda: queues.try_here(queues.limiting(queues.FULL_PACKET)),
        Refusal("this kernel has no token bucket (sch_tbf)", "modprobe sch_tbf as root; or loss="),
    ),
    LOSS.name: _Way(
        PacketLoss,
        drops.try_here,
        Refusal(
            "this kernel has no nf_tables that can drop at random (nft_numgen)",
            "modprobe nft_numgen as root; or rate=",
        ),
    ),
    DELAY.name: _Way(
        lambda ms: Delay(int(ms)),
        lambda: queues.try_here(queues.delaying(1)),
        Refusal(
            "this kernel cannot delay packets (sch_netem)",
            "modprobe sch_netem as root, where the kernel was built with it; or rate= or loss=",
        ),
    ),
}


def _asked(step: Step) -> list[str]:
    return [name for name, _ in step.given if name in WAYS] or [RATE.name]


def _strike(step: Step, nodes: tuple[str, ...], scene: Scene) -> Slow:
    (name,) = _asked(step)
    setting = step.setting(name)
    assert isinstance(setting, int | float)  # noqa: S101 - the type that its parameter reads
    return Slow(nodes, WAYS[name].made(setting), scene)


def _why_not(step: Step, _plan: Plan) -> Refusal | None:
    if len(asked := _asked(step)) > 1:
        return Refusal(f"{' and '.join(asked)} are different ways to be slow", "give one of them")
    if (step.duration_ms(DELAY.name) or 0) > LONGEST_DELAY_MS:
        return Refusal("a node that is this late is as good as cut off", "partition")
    return None


CANNOT_TRY = Refusal(
    "ordinary users cannot create networks here to try it in", "try it as root, or in a run"
)
TRY = f"import sys; from {__name__} import why_not_here; print(why_not_here(sys.argv[1]))"
AS_USER = ("unshare", "--user", "--map-root-user", "--net")
AS_ITS_OWN_ROOT = (*AS_USER, sys.executable, "-P", "-c", TRY)
TRIED_S = 30.0


def _lacks(step: Step) -> Refusal | None:
    (name,) = _asked(step)
    try:
        why: str | None = why_not_here(name)
    except PermissionError:  # an ordinary user outside of a run
        why = _why_not_in_a_run(name)
    if why is None:
        return CANNOT_TRY
    missing = WAYS[name].missing
    return Refusal(f"{missing.reason}: {why}", missing.cure) if why else None


def why_not_here(name: str) -> str:
    """The kernel's error when it is tried in a new network; empty if there is none."""
    network = new_network()
    try:
        with inside(network):
            WAYS[name].try_here()
    except OSError as error:
        return error.strerror or str(error)
    finally:
        os.close(network)
    return ""


@cache
def _why_not_in_a_run(name: str) -> str | None:
    """`why_not_here`, as root in new namespaces; None if this user cannot create them."""
    try:
        tried = subprocess.run(
            (*AS_ITS_OWN_ROOT, name), capture_output=True, text=True, check=False, timeout=TRIED_S
        )
    except FileNotFoundError:
        return None
    return None if tried.returncode else tried.stdout.strip()


KIND = FaultKind(
    name="slow",
    summary="what nodes send is slow: at a low rate, with losses, or late; by default the holder's",
    effect=Effect.SLOWS,
    aims=(HOLDER, CLIENT, SERVER, LEADER, NODE, MINORITY, MAJORITY),
    strike=_strike,
    parameters=(RATE, LOSS, DELAY),
    why_not=_why_not,
    lacks=_lacks,
    variants=("", f"{LOSS.name}=30", f"{DELAY.name}=200ms"),
    needs="kernel modules: sch_tbf for rate=, nft_numgen for loss=, sch_netem for delay=",
)
