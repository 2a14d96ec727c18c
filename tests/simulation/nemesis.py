"""Which faults strike when, and whom; each is told as a real one: begun, proven, healed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from lockcheck.history import Event, EventType, F, Notice
from lockcheck.history.event import NEMESIS, NS_PER_MS
from tests.simulation.network import Host, Network
from tests.simulation.plan import Fault, FaultKind, Plan, Target
from tests.simulation.world import Node, World

# After a grant: the holder is at any step of its critical section.
STRIKES_WITHIN_NS = 12 * NS_PER_MS
SLOW_NS = 40 * NS_PER_MS


class Nemesis:
    def __init__(
        self,
        plan: Plan,
        world: World,
        network: Network,
        clients: Sequence[Node],
        servers: Sequence[Host],
        *,
        record: Callable[[Event], None],
    ) -> None:
        self._world = world
        self._network = network
        self._clients = {node.name: node for node in clients}
        self._servers = {host.node.name: host for host in servers}
        self._record = record
        self._faults = plan.faults
        self._until_ns = (plan.until_ms - plan.calm_ms) * NS_PER_MS
        self._self = Node("nemesis")
        self._numbers = count(1)
        self._struck: set[str] = set()
        self._hunting: list[Fault] = []

    def start(self) -> None:
        for fault in self._faults:
            self._next(fault)

    def observe(self, event: Event) -> None:
        """What the clients write, the moment they write it."""
        granted = event.f == F.ACQUIRE and event.type is EventType.OK
        if granted and event.node and self._hunting:
            fault = self._hunting.pop(0)
            delay_ns = self._world.between(0, STRIKES_WITHIN_NS)
            self._world.after(delay_ns, self._self, self._strike, (fault, event.node))

    def _next(self, fault: Fault) -> None:
        self._world.after(self._between(fault.gap_ms), self._self, self._look_for_prey, fault)

    def _look_for_prey(self, fault: Fault) -> None:
        if fault.target is Target.HOLDER:
            self._hunting.append(fault)
        else:
            self._strike((fault, self._choose(fault.target)))

    def _choose(self, target: Target) -> str:
        if target is Target.NETWORK:
            return ""
        names = list(self._servers) if target is not Target.CLIENT else []
        if target is not Target.SERVER:
            names += self._clients
        return names[self._world.between(0, len(names) - 1)]

    def _strike(self, aimed: tuple[Fault, str]) -> None:
        fault, name = aimed
        length_ns = self._between(fault.length_ms)
        if self._world.now_ns + length_ns > self._until_ns:
            return
        prey = name or fault.name
        if prey in self._struck:
            self._next(fault)
            return
        self._struck.add(prey)
        number = next(self._numbers)
        self._say(EventType.INVOKE, fault.kind, name, number)
        proof = self._inject(fault, name, number)
        self._say(EventType.OK, fault.kind, name, number, proof)
        self._world.after(length_ns, self._self, self._end, (fault, name, number))

    def _end(self, struck: tuple[Fault, str, int]) -> None:
        fault, name, number = struck
        self._say(EventType.INVOKE, Notice.HEAL, name, number)
        self._heal(fault, name, number)
        self._say(EventType.OK, Notice.HEAL, name, number)
        self._struck.discard(name or fault.name)
        self._next(fault)

    # --- what each does ------------------------------------------------------------------------

    def _inject(self, fault: Fault, name: str, number: int) -> str:
        if fault.target is Target.NETWORK:
            return self._disturb(fault, number)
        node = self._node(name)
        if fault.kind is FaultKind.PAUSE:
            node.paused = True
            return "nothing of it runs"
        if fault.kind is FaultKind.CLOCK_JUMP:
            node.stepped_ns += fault.jump_ms * NS_PER_MS
            return f"its wall clock was set forward by {fault.jump_ms} ms"
        if fault.kind is FaultKind.PARTITION:
            self._network.cut_off[number] = frozenset({name})
            return f"{name} can reach nobody"
        node.down = True
        return "it is gone"

    def _disturb(self, fault: Fault, number: int) -> str:
        if fault.kind is FaultKind.LOSS:
            self._network.loss = fault.share
            return f"{fault.share:.0%} of the messages are lost"
        if fault.kind is FaultKind.DUPLICATE:
            self._network.duplication = fault.share
            return f"{fault.share:.0%} of the messages arrive twice"
        if fault.kind is FaultKind.SLOW:
            self._network.slow_ns = SLOW_NS
            return f"messages are late by up to {SLOW_NS // NS_PER_MS} ms"
        names = [*self._servers, *self._clients]
        side = [name for name in names if self._world.random() < fault.share]
        self._network.cut_off[number] = frozenset(side)
        return f"{', '.join(side) or 'nobody'} can reach only each other"

    def _heal(self, fault: Fault, name: str, number: int) -> None:
        network = self._network
        if fault.kind is FaultKind.PARTITION:
            del network.cut_off[number]
        elif fault.kind is FaultKind.PAUSE:
            self._world.wake(self._node(name))
        elif fault.kind is FaultKind.LOSS:
            network.loss = 0.0
        elif fault.kind is FaultKind.DUPLICATE:
            network.duplication = 0.0
        elif fault.kind is FaultKind.SLOW:
            network.slow_ns = 0
        elif fault.kind in (FaultKind.CRASH, FaultKind.AMNESIA):
            self._restart(self._servers[name], forgets=fault.kind is FaultKind.AMNESIA)

    def _restart(self, host: Host, *, forgets: bool) -> None:
        host.node.down = False
        if forgets:
            host.forget()

    def _node(self, name: str) -> Node:
        return self._clients[name] if name in self._clients else self._servers[name].node

    def _between(self, ms: tuple[int, int]) -> int:
        return self._world.between(ms[0] * NS_PER_MS, ms[1] * NS_PER_MS)

    def _say(
        self, kind: EventType, f: str, name: str, number: int, proof: str | None = None
    ) -> None:
        self._record(
            Event(
                time=self._world.now_ns,
                process=NEMESIS,
                type=kind,
                f=f,
                node=name or None,
                fault=number,
                value=proof,
            )
        )
