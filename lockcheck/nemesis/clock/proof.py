"""Proves that a clock runs as intended, and later that it is right again: reads it in each process,
and asks the server itself if it reports its time."""

from __future__ import annotations

import asyncio
from contextlib import closing

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock.engines import Clocks, VdsoClocks
from lockcheck.nemesis.clock.motion import Motion
from lockcheck.nemesis.clock.skew import CLOCKS, NS_PER_S, true_ns
from lockcheck.nodes.node import Node
from lockcheck.servers.asking.answer import answer
from lockcheck.servers.base import Clock, TellsTime

DRIFT_SEEN_S = (0.25, 0.5, 1.0)  # measured for longer where the machine made a reading wrong
RATE_TOLERANCE = 0.002
READINGS = 400  # of a clock that strobes


async def prove(motion: Motion, node: Node, which: tuple[Clock, ...], clocks: Clocks) -> str:
    """What was measured, in a few words; raises FaultError if the clocks run differently."""
    readable = clocks.readable
    seen = [f"{clock} {await _seen(motion, clock, clocks)}" for clock in which if clock in readable]
    for clock in readable:
        if clock not in which:
            await _need(clock, clocks, 0)
    processes = len(node.pids())
    in_all = f" in {processes} processes" if processes > 1 else ""
    reported = "" if motion.every_ms else await _reported(node, which, clocks)
    return f"{node.name}: {', '.join(seen)}{in_all}, by {clocks.engine}{reported}"


async def is_right(node: Node) -> None:
    """Raises FaultError unless both of its clocks are right again."""
    with closing(VdsoClocks(node)) as clocks:
        for clock in CLOCKS:
            if node.alive:
                await _need(clock, clocks, 0)
        if node.alive:
            await _reported(node, (), clocks)


async def _seen(motion: Motion, clock: Clock, clocks: Clocks) -> str:
    if motion.drifts:
        return f"at {await _rate(motion, clock, clocks):.3f} of its rate"
    if motion.every_ms:
        return await _seen_to_and_fro(motion, clock, clocks)
    return seconds(await _need(clock, clocks, motion.by_ns))


async def _rate(motion: Motion, clock: Clock, clocks: Clocks) -> float:
    began_ns, first, first_took_ns = await _timed(clock, clocks)
    wrong = []
    for seconds_more in DRIFT_SEEN_S:
        await asyncio.sleep(seconds_more)
        again_ns, last, last_took_ns = await _timed(clock, clocks)
        took_ns = again_ns - began_ns
        rates = [1 + (b - a) / took_ns for a, b in zip(first, last, strict=False)]
        # Many processes are read one after the other, each with a delay of its own.
        delayed = abs(motion.rate - 1) * max(first_took_ns, last_took_ns) / took_ns
        tolerance = RATE_TOLERANCE * motion.rate + delayed
        wrong = [rate for rate in rates if abs(rate - motion.rate) > tolerance]
        if not wrong:
            return rates[0]
    raise FaultError(
        f"the {clock} clock runs at {wrong[0]:.4f} of its rate, not at {motion.rate:g}"
    )


async def _timed(clock: Clock, clocks: Clocks) -> tuple[int, list[int], int]:
    """The true time, the offsets in all processes, and how long it took to read them."""
    began_ns = true_ns(clock)
    offsets_ns = await _offsets_ns(clock, clocks)
    return began_ns, offsets_ns, true_ns(clock) - began_ns


async def _offsets_ns(clock: Clock, clocks: Clocks) -> list[int]:
    offsets_ns = await clocks.offsets_ns(clock)
    if not offsets_ns:
        raise FaultError(f"there is no process whose {clock} clock could be read")
    return offsets_ns


async def _seen_to_and_fro(motion: Motion, clock: Clock, clocks: Clocks) -> str:
    ways, seen = (0, motion.by_ns), set()
    for _ in range(READINGS):
        for offset_ns in await clocks.offsets_ns(clock):
            near = [way for way in ways if abs(offset_ns - way) <= clocks.tolerance_ns]
            if not near:
                raise FaultError(f"the {clock} clock is {seconds(offset_ns)} off")
            seen.update(near)
        if len(seen) == len(ways):
            return f"0 and {seconds(motion.by_ns)} by turns"
        await asyncio.sleep(motion.every_ms / 1000 / 4)
    raise FaultError(f"the {clock} clock does not strobe: it stays at {seen}")


async def _need(clock: Clock, clocks: Clocks, wanted_ns: int) -> int:
    """Raises FaultError unless the clock is off by that in all processes; returns one offset."""
    offsets_ns = await _offsets_ns(clock, clocks)
    wrong = [each for each in offsets_ns if abs(each - wanted_ns) > clocks.tolerance_ns]
    if wrong:
        raise FaultError(
            f"a {clock} clock is {seconds(wrong[0])} off, and not {seconds(wanted_ns)}"
        )
    return offsets_ns[0]


# --- the server itself ---------------------------------------------------------------------------


async def _reported(node: Node, which: tuple[Clock, ...], clocks: Clocks) -> str:
    """What the server reports of a moved clock, for the proof; empty if it reports none or does not
    answer now. Raises FaultError if that contradicts its processes."""
    server = node.spec.server
    if server is None or server.tells_time is None:
        return ""
    if server.tells_time.clock is Clock.MONOTONIC:
        return ""  # an uptime says nothing about the time of day
    bounds_ns = await _reported_bounds_ns(node, server.port, server.tells_time)
    if bounds_ns is None:
        return ""
    least_ns, most_ns = bounds_ns
    [offset_ns, *_] = await clocks.offsets_ns(server.tells_time.clock)
    if not least_ns - clocks.tolerance_ns <= offset_ns <= most_ns + clocks.tolerance_ns:
        raise FaultError(
            f"{node.name} reports by {server.tells_time.called} that it is "
            f"{seconds(least_ns)} off, but its processes read {seconds(offset_ns)}"
        )
    if server.tells_time.clock not in which:
        return ""
    return f"; {server.tells_time.called} says {seconds((least_ns + most_ns) // 2)}"


async def _reported_bounds_ns(node: Node, port: int, telling: TellsTime) -> tuple[int, int] | None:
    """The least and the most by which the server's clock is off, by its own answer."""
    before_ns = true_ns(telling.clock)
    reply = await answer(node, (node.address, port), telling.question)
    after_ns = true_ns(telling.clock)
    if reply is None:
        return None
    reported_ns = telling.read_ns(reply)
    return reported_ns - after_ns, reported_ns + telling.step_ms * 1_000_000 - before_ns


def seconds(offset_ns: int) -> str:
    return f"{offset_ns / NS_PER_S:+.3f} s"
