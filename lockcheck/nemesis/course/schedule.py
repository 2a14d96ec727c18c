"""Runs the faults of a nemesis: decides when each strikes, and which nodes. Part of the agent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from lockcheck.client.aims import Point
from lockcheck.history import Effect, Event, EventType
from lockcheck.history.event import NEMESIS, NS_PER_MS
from lockcheck.nemesis.base import Fleet, Plan, Step
from lockcheck.nemesis.course.holders import Holders
from lockcheck.nemesis.course.hunt import Hunt, hunting
from lockcheck.nemesis.course.quiet import Quiet
from lockcheck.nemesis.course.under_way import UnderWay, first_set, in_words, is_set_within
from lockcheck.nemesis.fitting import GAP_MS
from lockcheck.nemesis.grammar import Sequence, sequence_words
from lockcheck.nemesis.network.links import Links
from lockcheck.nemesis.scene import Scene
from lockcheck.nemesis.triggers import Trigger
from lockcheck.nodes.node import Node, Role

AIM_POLL_S = 0.02
GIVES_WAY_S = 3.0  # to a fault that has not struck yet; it may need this one to strike


@dataclass(frozen=True, slots=True)
class Aimed:
    """The nodes that a step strikes, marked as struck; `let_go` lets a kept client go on."""

    nodes: tuple[str, ...]
    let_go: Callable[[], None] = lambda: None
    until_struck: bool = False  # the client is kept only until the fault has taken effect


class Nemesis:
    def __init__(
        self,
        sequences: Iterable[Sequence],
        *,
        nodes: Mapping[str, Node],
        fleet: Fleet,
        plan: Plan,
        workdir: Path,
        seed: int,
        now_ns: Callable[[], int],
        record: Callable[[Event], None],
    ) -> None:
        self._sequences = [sequence for sequence in sequences if sequence]
        self._plan = plan
        self._seed = seed
        self._now_ns = now_ns
        self._record = record
        self._scene = Scene(nodes, fleet, plan, Holders(workdir), Links(nodes), now_ns, record)
        self._numbers = count(1)
        self._no_more = asyncio.Event()  # set: no further fault may begin
        self._all_came = asyncio.Event()  # set: each step has struck
        self._under_way: list[UnderWay] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._missed: dict[str, Step] = {}  # steps that have not struck yet, by their text,
        self._why_missed: dict[str, str] = {}  # and the reasons
        self._has_begun = False  # at least one fault
        self._quiet: Quiet | None = None

    def start(self) -> None:
        for step in (step for sequence in self._sequences for step in sequence):
            self._missed[step.asked] = step
        self._tasks = [
            asyncio.create_task(
                self._run_sequence(sequence, random.Random(f"{self._seed}/{n}/{words}"))
            )
            for n, sequence in enumerate(self._sequences)
            for words in [sequence_words(sequence)]
        ]

    def observe(self, event: Event) -> None:
        """Follows the clients' events: call it with each as soon as it is read."""
        self._scene.holders.observe(event)
        if self._quiet is not None:
            self._quiet.observe(event)

    async def finish(self, *, at_once: bool) -> None:
        """Begins no further fault, and returns when none is active. Unless `at_once`, active faults
        run their course. All are healed concurrently: one may need the servers of another."""
        self._no_more.set()
        ending = [each for each in self._under_way if at_once or each.lasts_ms is None]
        await asyncio.gather(*(strike.end() for strike in reversed(ending)))
        while self._tasks:  # a task may have started another
            tasks, self._tasks = self._tasks, []
            await asyncio.gather(*tasks, return_exceptions=True)
        self._record_missed()

    async def quiet(self) -> None:
        """After the last fault, waits until every lock was granted again or is known to be stuck.
        Returns at once if no fault has struck, or not all servers are up again."""
        servers = self._scene.names(Role.SERVER)
        if self._has_begun and all(self._scene.is_free(name) for name in servers):
            self._quiet = Quiet(self._plan, now_ns=self._now_ns, record=self._record)
            await self._quiet.wait()

    # --- one sequence -----------------------------------------------------------------------

    async def _run_sequence(self, sequence: Sequence, choices: random.Random) -> None:
        try:
            await self._go_round(sequence, choices)
        except Exception as error:  # noqa: BLE001 - recorded as the reason of the missed steps
            self._why_missed.update(dict.fromkeys(map(str, sequence), in_words(error)))

    async def _go_round(self, sequence: Sequence, choices: random.Random) -> None:
        steps = list(sequence)
        while steps:
            for asked in list(steps):
                step = asked.drawn(choices)
                if not await self._wait_before(step, choices):
                    return
                aimed = await self._aim(step, choices)
                if aimed is None:
                    return
                await self._strike(step, aimed)
                if step.lasts_ms(self._plan) is None:
                    steps.remove(asked)  # it lasts to the end of the run
            # Those that struck would take nodes and moments from those that have not.
            await first_set(self._all_came, self._no_more, within_s=GIVES_WAY_S)

    async def _wait_before(self, step: Step, choices: random.Random) -> bool:
        """Waits, less if the fault would not fit otherwise. False if none may begin any more."""
        gap_ms = choices.uniform(*GAP_MS) if step.gap_ms is None else step.gap_ms
        left_ms = self._left_ms(step)
        if step.gap_ms is None and left_ms >= GAP_MS[0]:
            gap_ms = min(gap_ms, left_ms)
        if gap_ms > left_ms:
            return False
        return not await is_set_within(self._no_more, gap_ms / 1000)

    def _left_ms(self, step: Step) -> float:
        """How much time is left until it must begin to end before the time limit."""
        until_ms = self._plan.time_limit_ms - (step.lasts_ms(self._plan) or 0)
        return until_ms - self._now_ns() / NS_PER_MS

    async def _aim(self, step: Step, choices: random.Random) -> Aimed | None:
        """Waits for nodes to strike. None if there were none while the step could still begin."""
        trigger = step.trigger(self._plan)
        scheduled = trigger is Trigger.SCHEDULE
        found = self._choose(step, choices) if scheduled else self._hunt(step, trigger, choices)
        hunter = asyncio.create_task(found)
        over = asyncio.create_task(self._no_more.wait())
        await asyncio.wait(
            (hunter, over),
            timeout=max(0.0, self._left_ms(step) / 1000),
            return_when=asyncio.FIRST_COMPLETED,
        )
        over.cancel()
        hunter.cancel()  # harmless where it is done
        await asyncio.wait((hunter,))
        aimed = None if hunter.cancelled() else hunter.result()
        if aimed is not None and self._no_more.is_set():
            self._release(aimed)
            return None
        return aimed

    async def _hunt(self, step: Step, trigger: Trigger, choices: random.Random) -> Aimed:
        clients = self._scene.names(Role.CLIENT)
        with hunting(self._scene.holders, trigger, clients, self._scene.is_free) as hunt:
            node = await hunt.catch(skip=choices.randrange(len(clients)))
            if step.aim.at_holders:
                return self._aimed_at_holder(step, node, hunt)
            while not (nodes := await self._chosen(step, choices)):
                hunt.let_go()
                await asyncio.sleep(AIM_POLL_S)  # the same client would be caught again at once
                node = await hunt.catch()
            self._scene.struck.update(nodes)
            # After a server's clock has moved, it takes a moment until others are granted the lock:
            # until then the client stays at its point, for as long as it would by itself.
            felt_later = step.kind.effect is Effect.SKEWS and hunt.point is not Point.LEASE
            let_go = hunt.keep(node, at_work=False)
            return Aimed(nodes, let_go, until_struck=not felt_later)

    def _aimed_at_holder(self, step: Step, node: str, hunt: Hunt) -> Aimed:
        """A client that the fault stops stays at its point. Otherwise it goes on and feels the
        fault: at its work for as long as the fault lasts, or with what it was about to send. A
        wrong clock makes no work longer, so there its work ends before its lease does."""
        self._scene.struck.add(node)
        stands = hunt.point is not Point.LEASE and step.kind.effect is not Effect.STOPS
        longer = step.kind.effect is not Effect.SKEWS
        return Aimed((node,), hunt.keep(node, at_work=longer), until_struck=stands)

    async def _choose(self, step: Step, choices: random.Random) -> Aimed:
        while True:
            if nodes := await self._chosen(step, choices):
                self._scene.struck.update(nodes)
                return Aimed(nodes)
            await asyncio.sleep(AIM_POLL_S)

    async def _chosen(self, step: Step, choices: random.Random) -> tuple[str, ...]:
        try:
            nodes = await step.aim.choose(self._scene, choices)
            return nodes if self._would_show(step, nodes) else ()
        except Exception as error:  # noqa: BLE001 - recorded as the reason of a missed step
            self._why_missed[step.asked] = in_words(error)
            return ()

    def _would_show(self, step: Step, nodes: tuple[str, ...]) -> bool:
        """Whether others have not already cut, or slowed, all the links that it is to cut."""
        links, state = step.kind.links(step, nodes, self._scene) if nodes else (), self._scene.links
        clear = (not state.is_cut(link) and link.sender not in state.slow for link in links)
        return not links or any(clear)

    async def _strike(self, step: Step, aimed: Aimed) -> None:
        self._missed.pop(step.asked, None)
        if not self._missed:
            self._all_came.set()
        self._has_begun = True
        under_way = UnderWay(
            step,
            aimed.nodes,
            trigger=step.trigger(self._plan),
            scene=self._scene,
            number=next(self._numbers),
            lasts_ms=step.lasts_ms(self._plan),
            now_ns=self._now_ns,
            record=self._record,
            on_struck=lambda: self._has_struck(step, aimed),
            on_ending=lambda: self._ends(step, aimed),
            on_healed=lambda: self._release(aimed),
        )
        self._under_way.append(under_way)
        running = asyncio.create_task(under_way.run())
        self._tasks.append(running)
        running.add_done_callback(lambda _: self._under_way.remove(under_way))
        if under_way.lasts_ms is not None:
            await running

    def _has_struck(self, step: Step, aimed: Aimed) -> None:
        ends = step.kind.effect is Effect.ENDS
        if ends or aimed.until_struck:
            aimed.let_go()
        if ends:  # a dead client holds nothing
            for name in aimed.nodes:
                self._scene.holders.ended(name, self._now_ns())

    def _ends(self, step: Step, aimed: Aimed) -> None:
        if step.kind.effect is Effect.STOPS:  # resumed, it does what it was about to do
            aimed.let_go()

    def _release(self, aimed: Aimed) -> None:
        aimed.let_go()
        self._scene.struck.difference_update(aimed.nodes)

    def _record_missed(self) -> None:
        for asked, step in self._missed.items():
            why = self._why_missed.get(asked, "no node to strike, or no time left for it")
            why = f"it never took effect: {why}"
            missed = NEMESIS, EventType.INFO, step.kind.name
            self._record(Event(self._now_ns(), *missed, asked=asked, error=why))
        self._missed.clear()
