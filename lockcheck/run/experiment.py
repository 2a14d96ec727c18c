"""The experiment on a running cluster: begins it, watches it, ends it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgspec

from lockcheck.agent.orders import BeginOrders, Ended
from lockcheck.compose.runtime import Cluster
from lockcheck.errors import ClusterError
from lockcheck.nodes.node import Role
from lockcheck.run.monitor import Monitor
from lockcheck.run.notes import Kept, Stop, Stopping, Watcher
from lockcheck.run.orders import end_orders
from lockcheck.run.plan import RunPlan
from lockcheck.signals import ignoring_signals

BEGIN_S = 90.0  # in which clients open their locks; the agent gives up before that
LOOK_S = 0.1  # between two looks at the state of the run


@contextmanager
def ending(cluster: Cluster) -> Iterator[Cluster]:
    """Fetches the cluster's files and ends it on every way out; a second Ctrl-C is ignored."""
    try:
        yield cluster
    finally:
        with ignoring_signals(), closing(cluster):
            cluster.collect()


def await_ready(cluster: Cluster) -> dict[str, str]:
    """The addresses of the nodes, by their names."""
    return msgspec.convert(cluster.agent.ask("await_ready", timeout_s=60), dict[str, str])


def conduct(plan: RunPlan, cluster: Cluster, orders: BeginOrders, watcher: Watcher) -> bool:
    """Returns whether it was interrupted: then faults are healed and clients ended at once."""
    monitor = Monitor(plan.terms)
    cluster.agent.listen(monitor.hear)
    cluster.agent.ask("begin", orders, timeout_s=BEGIN_S)
    interrupted = False
    try:
        _watch(plan, cluster, monitor, watcher)
    except KeyboardInterrupt:
        interrupted = True
        watcher(Stopping(Stop.INTERRUPTED))
    try:
        ended = _end(plan, cluster, at_once=interrupted)
    finally:
        _check_nodes(monitor)  # a node that failed explains any other error
    if not interrupted:
        _check_clients(ended)
    return interrupted


def _watch(plan: RunPlan, cluster: Cluster, monitor: Monitor, watcher: Watcher) -> None:
    """Returns when the time is over, too many clients held the lock at once, or a node failed."""
    deadline = time.monotonic() + plan.config.time_limit_ms / 1000
    while time.monotonic() < deadline:
        state = monitor.state()
        watcher(state)
        if monitor.broken or cluster.agent.gone.is_set():
            return
        if plan.stops_at_overlaps and state.overlaps:
            watcher(Stopping(_at_overlap(plan)))
            return
        time.sleep(LOOK_S)
    watcher(Stopping(Stop.TIME_LIMIT))


def _at_overlap(plan: RunPlan) -> Stop:
    promises = plan.lock.promises
    several = promises.permits > 1 or promises.shared
    return Stop.TOO_MANY_HOLDERS if several else Stop.OVERLAP


def _end(plan: RunPlan, cluster: Cluster, *, at_once: bool) -> Ended:
    orders = end_orders(plan, at_once=at_once)
    longest_s = plan.longest_aftermath_s + orders.grace_s + 30
    return msgspec.convert(cluster.agent.ask("end", orders, timeout_s=longest_s), Ended)


def _check_clients(ended: Ended) -> None:
    if ended.broken:
        raise ClusterError(
            f"clients crashed: {', '.join(ended.broken)}",
            cure="see nodes/NAME/output.log in the run's folder",
        )
    if ended.killed:
        raise ClusterError(
            f"clients did not stop in time and were killed: {', '.join(ended.killed)}",
            cure="the machine is overloaded, or a server hangs: see nodes/*/output.log",
        )


def keep_running(plan: RunPlan, cluster: Cluster, watcher: Watcher) -> None:
    """Until Ctrl-C, or until the agent is gone."""
    kept = [node.name for node in plan.nodes if node.role is not Role.CLIENT]
    watcher(Kept({name: cluster.enter_command(name) for name in kept}))
    try:
        while not cluster.agent.gone.wait(LOOK_S):
            pass
    except KeyboardInterrupt:
        return


def _check_nodes(monitor: Monitor) -> None:
    for message in monitor.broken:
        raise ClusterError(
            f"{message.ended} exited by itself during the run: {message.last_words}",
            cure=message.cure
            or "see nodes/NAME/output.log in the run's folder, or nodes/agent.log",
        )
