"""The experiment on a running cluster: begins it, watches it, ends it."""

from __future__ import annotations

import time

import msgspec

from lockcheck.agent.orders import Ended, EndOrders, LedgerOrders
from lockcheck.compose.runtime import Cluster
from lockcheck.config import RunConfig
from lockcheck.errors import ClusterError
from lockcheck.nodes.node import NodeFacts, Role
from lockcheck.run.monitor import Monitor
from lockcheck.run.notes import Kept, Stop, Stopping, Watcher
from lockcheck.run.plan import begin_orders, longest_aftermath_s, storage_node, terms

LOOK_S = 0.1  # between two looks at the state of the run
# A section under way may still wait for servers that answer slowly.
LEAVING_GRACE_S = 15.0
LONGEST_GRACE_S = 120.0


def await_ready(cluster: Cluster) -> dict[str, NodeFacts]:
    nodes = cluster.agent.ask("await_ready", timeout_s=60)
    return {node.name: node for node in msgspec.convert(nodes, list[NodeFacts])}


def conduct(
    config: RunConfig, cluster: Cluster, nodes: dict[str, NodeFacts], watcher: Watcher
) -> bool:
    """Returns whether it was interrupted: then faults are healed and clients ended at once."""
    monitor = Monitor(terms(config))
    cluster.agent.listen(monitor.hear)
    cluster.agent.ask("begin", begin_orders(config, nodes))
    interrupted = False
    try:
        _watch(config, cluster, monitor, watcher)
    except KeyboardInterrupt:
        interrupted = True
        watcher(Stopping(Stop.INTERRUPTED))
    try:
        ended = _end(config, cluster, at_once=interrupted)
    finally:
        _check_nodes(monitor)  # a node that failed explains any other error
    if not interrupted:
        _check_clients(ended)
    return interrupted


def _watch(config: RunConfig, cluster: Cluster, monitor: Monitor, watcher: Watcher) -> None:
    """Returns when the time is over, too many clients held the lock at once, or a node failed."""
    deadline = time.monotonic() + config.time_limit_ms / 1000
    while time.monotonic() < deadline:
        state = monitor.state()
        watcher(state)
        if monitor.broken or cluster.agent.gone.is_set():
            return
        if config.stops_at_overlaps() and state.overlaps:
            watcher(Stopping(_at_overlap(config)))
            return
        time.sleep(LOOK_S)
    watcher(Stopping(Stop.TIME_LIMIT))


def _at_overlap(config: RunConfig) -> Stop:
    promises = config.backend_under_test().promises
    several = promises.permits > 1 or promises.shared
    return Stop.TOO_MANY_HOLDERS if several else Stop.OVERLAP


def _end(config: RunConfig, cluster: Cluster, *, at_once: bool) -> Ended:
    node, storage = storage_node(config), config.backend_under_test().storage
    under_way_s = 2 * (config.think_ms + config.ttl_ms) / 1000
    grace_s = min(LEAVING_GRACE_S + under_way_s, LONGEST_GRACE_S)
    ledger = LedgerOrders(node.name, storage) if node else None
    orders = EndOrders(at_once=at_once, grace_s=grace_s, ledger=ledger)
    reply = cluster.agent.ask("end", orders, timeout_s=longest_aftermath_s(config) + grace_s + 30)
    return msgspec.convert(reply, Ended)


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


def keep_running(cluster: Cluster, nodes: dict[str, NodeFacts], watcher: Watcher) -> None:
    """Until Ctrl-C, or until the agent is gone."""
    kept = [node.name for node in nodes.values() if node.role is not Role.CLIENT]
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
