"""A cluster of the library is planned as a run is: its faults see the same."""

from __future__ import annotations

from typing import cast

import pytest

from lockcheck.agent.link import AgentLink
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.library.cluster import plan_cluster
from lockcheck.library.faults import Faults
from lockcheck.library.log import Log
from lockcheck.nodes.node import Role


def faults(lock: str, *version: str, servers: int | None = None) -> Faults:
    asked = RunConfig(backend=lock, version=version, clients=2, seed=0)
    nodes, plan = plan_cluster(asked, servers=servers, storage="", faketime=False)
    clients = [node.name for node in nodes if node.role is Role.CLIENT]
    return Faults(cast("AgentLink", None), Log(), plan, [node.name for node in nodes], clients)


@pytest.mark.parametrize("lock", ["redlock", "redlock-3"])
def test_servers_that_know_nothing_of_each_other_are_not_cut_off_from_each_other(lock: str) -> None:
    with pytest.raises(UserError, match="do not talk to each other") as refused:
        faults(lock).of("partition:server,from=servers")
    assert refused.value.cure == "leave out from=servers"
    assert str(faults("etcd").of("partition:server,from=servers"))


@pytest.mark.parametrize(
    ("lock", "version", "text"),
    [
        ("etcd", "etcd=3.4", "disk"),
        ("redis", "redis=7", "disk"),
        ("redis-failover", "redis=7", "failover"),
    ],
)
def test_a_version_takes_the_faults_of_its_server(lock: str, version: str, text: str) -> None:
    assert str(faults(lock, version).of(text)).startswith(text)


def test_servers_of_a_kind_are_no_lock() -> None:
    assert str(faults("etcd=3.4", servers=3).of("kill:leader")) == "kill:leader"
    assert str(faults("etcd=3.4*3").of("kill", "e3")) == "kill:e3"
    with pytest.raises(UserError, match="has no leader"):
        faults("redis", servers=3).of("kill:leader")
