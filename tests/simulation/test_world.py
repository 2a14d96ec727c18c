"""Virtual time, clocks that drift and jump, pauses, and a network that loses and repeats."""

from __future__ import annotations

import pytest

from lockcheck.errors import UserError
from lockcheck.history.event import NS_PER_MS
from tests.simulation import Plan, simulate
from tests.simulation.network import Host, Network, Task
from tests.simulation.world import Ask, Call, Node, Reply, Steps, World

LATE_NS = 1 << 50
ASK = Ask("acquire", "k")


class Counting:
    """Answers with how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def handle(self, ask: Ask, wall_ns: int) -> Reply:
        self.asked += 1
        return Reply(ok=True, token=self.asked)

    def forget(self) -> None:
        self.asked = 0


class Bench:
    """A client, a server and the network between them."""

    def __init__(self, *, seed: int = 0, drift_ppm: int = 0) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.client = Node("c1", drift_ppm)
        self.server = Node("r1")
        self.service = Counting()
        self.host = Host(self.world, self.network, self.server, self.service)
        self.told: list[tuple[int, Reply | None]] = []

    def run(self, *calls: Call | int) -> list[tuple[int, Reply | None]]:
        task = Task(self.world, self.network, {"r1": self.host}, self.client, self.steps(calls))
        task.start()
        self.world.run(LATE_NS)
        return self.told

    def steps(self, calls: tuple[Call | int, ...]) -> Steps[None]:
        for call in calls:
            reply = yield call
            self.told.append((self.world.now_ns, reply))


def call(timeout_ms: int | None = 10) -> Call:
    return Call("r1", ASK, None if timeout_ms is None else timeout_ms * NS_PER_MS)


def test_what_is_due_at_the_same_time_happens_in_the_order_asked() -> None:
    world, node, said = World(0), Node("n"), list[str]()
    world.after(5, node, said.append, "late")
    world.after(1, node, said.append, "first")
    world.after(1, node, said.append, "second")
    world.run(LATE_NS)
    assert said == ["first", "second", "late"]


def test_it_can_be_ended() -> None:
    world, node, said = World(0), Node("n"), list[int]()
    for time_ns in (1, 10, 11):
        world.after(time_ns, node, said.append, time_ns)
    world.run(10)
    assert said == [1, 10]


def test_nothing_of_a_paused_node_happens_and_then_all_of_it_in_order() -> None:
    world, node, said = World(0), Node("n"), list[tuple[str, int]]()

    def say(text: str) -> None:
        said.append((text, world.now_ns))

    node.paused = True
    world.after(1, node, say, "one")
    world.after(2, node, say, "two")
    world.after(50, Node("other"), world.wake, node)
    world.after(60, node, say, "three")
    world.run(LATE_NS)
    assert said == [("one", 50), ("two", 50), ("three", 60)]


def test_chance_is_within_its_bounds_and_reaches_both() -> None:
    world = World(0)
    assert {world.between(3, 5) for _ in range(100)} == {3, 4, 5}
    assert world.between(7, 7) == 7


def test_clocks_drift_and_jump() -> None:
    fast = Node("fast", drift_ppm=10_000)
    assert fast.monotonic_ns(1_000_000) == 1_010_000
    assert fast.lasting_ns(1_010_000) == 1_000_000
    fast.stepped_ns = 500
    assert fast.wall_ns(1_000_000) == 1_010_500
    assert fast.monotonic_ns(1_000_000) == 1_010_000  # nobody's sleep is cut short by it


@pytest.mark.parametrize(("drift_ppm", "real_ns"), [(0, 101_000), (10_000, 100_000)])
def test_sleep_is_by_ones_own_clock(drift_ppm: int, real_ns: int) -> None:
    assert Bench(drift_ppm=drift_ppm).run(101_000) == [(real_ns, None)]


def test_a_call_is_answered() -> None:
    ((time_ns, reply),) = Bench().run(call())
    assert reply == Reply(ok=True, token=1)
    assert 0 < time_ns < 2 * NS_PER_MS


@pytest.mark.parametrize("trouble", ["loss", "cut off", "down", "paused"])
def test_a_call_that_is_not_answered_times_out(trouble: str) -> None:
    bench = Bench()
    bench.network.loss = 1.0 if trouble == "loss" else 0.0
    bench.network.cut_off = {1: frozenset({"r1"})} if trouble == "cut off" else {}
    bench.server.down = trouble == "down"
    bench.server.paused = trouble == "paused"
    assert bench.run(call()) == [(10 * NS_PER_MS, None)]
    assert bench.service.asked == 0


def test_an_answer_that_comes_too_late_is_not_that_of_the_next_call() -> None:
    bench = Bench()
    bench.server.paused = True
    bench.world.after(15 * NS_PER_MS, bench.client, bench.world.wake, bench.server)
    (_, first), (_, second) = bench.run(call(), call())
    assert first is None
    assert second == Reply(ok=True, token=2)
    assert bench.service.asked == 2


def test_a_message_that_arrives_twice_is_done_once() -> None:
    for seed in range(20):
        bench = Bench(seed=seed)
        bench.network.duplication = 1.0
        (_, first), (_, second) = bench.run(call(), call())
        assert (first, second) == (Reply(ok=True, token=1), Reply(ok=True, token=2))
        assert bench.service.asked == 2


def test_those_who_are_cut_off_together_reach_each_other() -> None:
    bench = Bench()
    bench.network.cut_off = {1: frozenset({"r1", "c1"}), 2: frozenset({"r2"})}
    assert bench.run(call())[0][1] is not None


def test_a_sheltered_node_is_always_reached() -> None:
    bench = Bench()
    bench.server.sheltered = True
    bench.network.loss, bench.network.cut_off = 1.0, {1: frozenset({"c1"})}
    assert bench.run(call(timeout_ms=None))[0][1] is not None


def test_slow_messages_overtake_each_other() -> None:
    arrived = set()
    for seed in range(20):
        world, node, order = World(seed), Node("n"), list[int]()
        network = Network(world)
        network.slow_ns = 40 * NS_PER_MS
        for number in range(3):
            network.send(Node("m"), node, order.append, number)
        world.run(LATE_NS)
        arrived.add(tuple(order))
    assert len(arrived) == 6


def test_a_server_without_its_data_answers_old_questions_anew() -> None:
    bench = Bench()
    bench.run(call(), call())
    bench.host.forget()
    bench.run(call())
    assert bench.told[-1][1] == Reply(ok=True, token=1)


def test_a_lock_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UserError, match="no lock 'paxos'") as refused:
        simulate(Plan(seed=0, lock="paxos"))
    assert "majority" in refused.value.cure
