"""The experiment itself, on a cluster that runs: begin, watch, end."""

from __future__ import annotations

import time
from typing import Protocol

import msgspec

from lockcheck.compose.orders import Ended, EndOrders, Probe
from lockcheck.compose.runtime import Cluster
from lockcheck.config import RunConfig
from lockcheck.errors import ClusterError
from lockcheck.monitor import LiveState, Monitor
from lockcheck.nodes import Node, Role
from lockcheck.plan import Rows, begin_orders, longest_fault_s, node_specs, terms
from lockcheck.redis_node import REDIS_PORT
from lockcheck.storage import Guard

LOOK_S = 0.1  # how often the command line looks at what happened
# A section under way may still have to wait for servers that answer slowly.
LEAVING_GRACE_S = 15.0
LONGEST_GRACE_S = 120.0


class Watcher(Protocol):
    """Who is told how it goes: a terminal, a log of a nightly job, nobody."""

    def plan(self, rows: Rows) -> None: ...
    def say(self, line: str) -> None: ...
    def live(self, state: LiveState) -> None: ...
    def keep(self, commands: Rows) -> None: ...


def await_ready(config: RunConfig, cluster: Cluster) -> dict[str, Node]:
    probes = [Probe(spec.name, spec.port) for spec in node_specs(config) if spec.port is not None]
    cluster.agent.ask("await_ready", probes, timeout_s=60)
    return {node.name: node for node in msgspec.convert(cluster.agent.ask("nodes"), list[Node])}


def conduct(config: RunConfig, cluster: Cluster, nodes: dict[str, Node], watcher: Watcher) -> bool:
    """Whether it was interrupted; then the faults are healed and the clients ended at once."""
    monitor = Monitor(terms(config))
    cluster.agent.listen(monitor.hear)
    cluster.agent.ask("begin", begin_orders(config, nodes))
    interrupted = False
    try:
        _watch(config, cluster, monitor, watcher)
    except KeyboardInterrupt:
        interrupted = True
        watcher.say("interrupted: healing the faults and ending the clients")
    try:
        ended = _end(config, cluster, nodes, at_once=interrupted)
    finally:
        _check_nobody_broke(monitor)  # the better cause, whatever else went wrong by it
    if not interrupted:
        _check_how_they_left(ended)
    return interrupted


def _watch(config: RunConfig, cluster: Cluster, monitor: Monitor, watcher: Watcher) -> None:
    """Until the time is over, or what was to be shown has been, or something broke."""
    deadline = time.monotonic() + config.time_limit_ms / 1000
    while time.monotonic() < deadline:
        state = monitor.state()
        watcher.live(state)
        if monitor.broken or cluster.agent.gone.is_set():
            return
        if config.stop_on_violation and config.guard is Guard.NONE and state.overlaps:
            watcher.say("two clients hold the lock at once: what is under way comes to its end")
            return
        time.sleep(LOOK_S)
    watcher.say("the time is over: what is under way comes to its end")


def _end(config: RunConfig, cluster: Cluster, nodes: dict[str, Node], *, at_once: bool) -> Ended:
    storages = (Probe(n.name, REDIS_PORT) for n in nodes.values() if n.role is Role.STORAGE)
    under_way_s = 2 * (config.think_ms + config.ttl_ms) / 1000
    grace_s = min(LEAVING_GRACE_S + under_way_s, LONGEST_GRACE_S)
    orders = EndOrders(at_once=at_once, grace_s=grace_s, storage=next(storages, None))
    reply = cluster.agent.ask("end", orders, timeout_s=longest_fault_s(config) + grace_s + 30)
    return msgspec.convert(reply, Ended)


def _check_how_they_left(ended: Ended) -> None:
    if ended.broken:
        raise ClusterError(
            f"clients broke down: {', '.join(ended.broken)}",
            cure="what they said is in nodes/NAME/output.log of the run's folder",
        )
    if ended.killed:
        raise ClusterError(
            f"clients did not leave when they were told to, and were killed: "
            f"{', '.join(ended.killed)}",
            cure="the machine is overloaded, or a server hangs: see nodes/*/output.log",
        )


def keep(cluster: Cluster, nodes: dict[str, Node], watcher: Watcher) -> None:
    kept = [node.name for node in nodes.values() if node.role is not Role.CLIENT]
    watcher.keep(tuple((name, cluster.enter_command(name)) for name in kept))
    try:
        while not cluster.agent.gone.wait(LOOK_S):
            pass
    except KeyboardInterrupt:
        return  # this is how one leaves it


def _check_nobody_broke(monitor: Monitor) -> None:
    for message in monitor.broken:
        raise ClusterError(
            f"{message.ended} ended by itself in the middle of the run: {message.last_words}",
            cure="what it said is in nodes/NAME/output.log of the run's folder, or nodes/agent.log",
        )
