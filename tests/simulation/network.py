"""Messages between nodes: each takes its time, and may be lost, delayed or arrive twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from tests.simulation.world import Ask, Call, Node, Reply, Steps, World

T = TypeVar("T")

QUICK_NS = (50_000, 600_000)  # from node to node, where nothing is wrong


class Network:
    def __init__(self, world: World) -> None:
        self._world = world
        self._calls = 0
        self.loss = 0.0  # how likely a message is lost
        self.duplication = 0.0  # how likely it arrives twice
        self.slow_ns = 0  # up to this much later, each by its own: so they overtake each other
        self.cut_off: dict[int, frozenset[str]] = {}  # by fault: who cannot speak to the others

    def next_number(self) -> int:
        self._calls += 1
        return self._calls

    def send(self, sender: Node, receiver: Node, action: Callable[[T], None], argument: T) -> None:
        world = self._world
        delay_ns = world.between(*QUICK_NS)
        if not self._disturbed() or sender.sheltered or receiver.sheltered:
            world.after(delay_ns, receiver, action, argument)
            return
        if self.duplication and world.random() < self.duplication:
            self._deliver(delay_ns * 2, sender, receiver, action, argument)
        self._deliver(delay_ns, sender, receiver, action, argument)

    def _disturbed(self) -> bool:
        return bool(self.loss or self.duplication or self.slow_ns or self.cut_off)

    def _deliver(
        self,
        delay_ns: int,
        sender: Node,
        receiver: Node,
        action: Callable[[T], None],
        argument: T,
    ) -> None:
        if self.loss and self._world.random() < self.loss:
            return
        if self._apart(sender, receiver):
            return
        if self.slow_ns:
            delay_ns += self._world.between(0, self.slow_ns)
        self._world.after(delay_ns, receiver, action, argument)

    def _apart(self, one: Node, other: Node) -> bool:
        sides = self.cut_off.values()
        return any((one.name in side) is not (other.name in side) for side in sides)


class Service(Protocol):
    """What a server does with a message, the moment it reads it."""

    def handle(self, ask: Ask, wall_ns: int) -> Reply: ...

    def forget(self) -> None:
        """Everything that it kept: it is started again without its data."""


class Request(NamedTuple):
    number: int
    ask: Ask
    task: Task


class Host:
    """A node that serves. A message that arrives twice is not done twice, but answered twice."""

    def __init__(self, world: World, network: Network, node: Node, service: Service) -> None:
        self._world = world
        self._network = network
        self.node = node
        self._service = service
        self._done: dict[int, Reply] = {}

    def receive(self, request: Request) -> None:
        if self.node.down:
            return
        number, ask, task = request
        reply = self._done.get(number)
        if reply is None:
            wall_ns = self.node.wall_ns(self._world.now_ns)
            reply = self._done[number] = self._service.handle(ask, wall_ns)
        self._network.send(self.node, task.node, task.receive, (number, reply))

    def forget(self) -> None:
        self._done.clear()
        self._service.forget()


class Task:
    """A process that runs on a node: what it yields is done, and it goes on with the result."""

    def __init__(
        self,
        world: World,
        network: Network,
        hosts: Mapping[str, Host],
        node: Node,
        steps: Steps[None],
    ) -> None:
        self._world = world
        self._network = network
        self._hosts = hosts
        self.node = node
        self._steps = steps
        self._open: int | None = None  # the call whose answer it waits for

    def start(self) -> None:
        self._world.after(0, self.node, self._go_on, None)

    def receive(self, answer: tuple[int, Reply]) -> None:
        number, reply = answer
        if number == self._open:  # else it came too late, or twice
            self._open = None
            self._go_on(reply)

    def _time_out(self, number: int) -> None:
        if number == self._open:
            self._open = None
            self._go_on(None)

    def _go_on(self, reply: Reply | None) -> None:
        try:
            effect = self._steps.send(reply)
        except StopIteration:
            return
        if isinstance(effect, int):
            self._world.after(self.node.lasting_ns(effect), self.node, self._go_on, None)
        else:
            self._call(effect)

    def _call(self, call: Call) -> None:
        number = self._open = self._network.next_number()
        host = self._hosts[call.server]
        self._network.send(self.node, host.node, host.receive, Request(number, call.ask, self))
        if call.timeout_ns is not None:
            timeout_ns = self.node.lasting_ns(call.timeout_ns)
            self._world.after(timeout_ns, self.node, self._time_out, number)
