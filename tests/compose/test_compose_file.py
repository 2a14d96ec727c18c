"""The Compose document, and where the run's network is put. No engine needed."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv4Network
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lockcheck.compose.docker.compose_file import (
    MOST_NODES,
    Names,
    addresses,
    compose_document,
    free_subnets,
    sysctls_for,
)
from lockcheck.compose.runtime import ClusterPlan
from lockcheck.errors import ClusterError
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers import SERVERS
from lockcheck.servers.kind import Kind
from tests.compose.plans import CLIENT, SERVER, STORAGE

SUBNET = IPv4Network("10.213.7.0/24")
IMAGES = {"redis": "lockcheck/redis:1", "etcd": "lockcheck/etcd:1", "client": "lockcheck/client:1"}


def document(*nodes: Any, run_id: str = "r1", **more: str) -> Any:
    plan = ClusterPlan(run_id, nodes or (SERVER, STORAGE, CLIENT), Path(), **more)  # type: ignore[arg-type]
    return json.loads(json.dumps(compose_document(plan, IMAGES, SUBNET, {"a": "1"})))


def test_a_node_is_a_place_that_is_held_open_for_the_agent() -> None:
    service = document()["services"]["n1"]
    assert service["image"] == "lockcheck/redis:1"
    assert service["command"] == ["sleep", "infinity"]
    assert service["volumes"] == []


def test_a_client_sees_the_runs_volume() -> None:
    service = document()["services"]["c1"]
    assert service["image"] == "lockcheck/client:1"
    assert service["volumes"] == ["run:/lockcheck/run"]
    assert service["tmpfs"] == []


def test_a_folder_of_this_host_is_read_only_and_only_for_clients() -> None:
    services = document(client_folder="/mine")["services"]
    assert services["c1"]["volumes"][1] == {
        "type": "bind",
        "source": "/mine",
        "target": "/lockcheck/client",
        "read_only": True,
        "bind": {"create_host_path": False},
    }
    assert services["n1"]["volumes"] == []


def test_a_users_image_is_beside_each_client_in_its_network_and_has_no_more_rights() -> None:
    whole = document(program_image="mine:dev")
    assert {name for name in whole["services"] if "program" in name} == {"c1-program"}
    beside = whole["services"]["c1-program"]
    assert beside["image"] == "mine:dev"
    assert beside["network_mode"] == "service:c1"
    assert beside["entrypoint"] == ["/lockcheck/tools/busybox", "sleep", "infinity"]
    assert beside["volumes"] == ["tools:/lockcheck/tools:ro"]
    assert beside["labels"]["lockcheck.run"] == "r1"
    assert not beside.keys() & {"cap_add", "privileged", "security_opt", "sysctls", "ports"}
    assert whole["volumes"]["tools"]["name"] == Names("r1").tools


def test_a_server_that_is_there_already_has_a_place_without_its_program() -> None:
    there = NodeSpec("e1", Role.SERVER, Kind("etcd"), elsewhere=("10.0.0.7", 2379))
    service = document(there)["services"]["e1"]
    assert service["image"] == IMAGES["client"]
    assert service["tmpfs"] == service["volumes"] == []


def test_what_a_server_keeps_is_in_memory() -> None:
    service = document(NodeSpec("e1", Role.SERVER, Kind("etcd")))["services"]["e1"]
    assert service["tmpfs"] == [f"/lockcheck/data:size={SERVERS['etcd'].data_mb}m,mode=0700"]
    assert service["volumes"] == []


@pytest.mark.parametrize("node", ["n1", "storage", "c1"])
def test_every_node_can_be_faulted_and_removed_at_once(node: str) -> None:
    service = document()["services"][node]
    assert service["init"] is True
    assert service["stop_grace_period"] == "0s"
    assert service["cap_add"] == ["NET_ADMIN"]
    assert service["restart"] == "no"
    assert "ports" not in service


def test_addresses_are_fixed_and_the_network_leads_nowhere() -> None:
    described = document()
    placed = [
        service["networks"]["nodes"]["ipv4_address"] for service in described["services"].values()
    ]
    assert placed == ["10.213.7.10", "10.213.7.11", "10.213.7.12"]
    assert described["networks"]["nodes"]["internal"] is True
    assert described["networks"]["nodes"]["ipam"] == {"config": [{"subnet": "10.213.7.0/24"}]}


def test_everything_carries_the_runs_id() -> None:
    described = document(run_id="R:1")
    labelled = [*described["services"].values(), *described["networks"].values()]
    assert {each["labels"]["lockcheck.run"] for each in labelled} == {"R:1"}
    assert described["volumes"]["run"] == {"name": Names("R:1").volume, "external": True}


@pytest.mark.parametrize("run_id", ["2026-11-18T12:00:00Z-a1", "Ä_b", "a..b"])
def test_any_run_id_gives_a_name_that_compose_takes(run_id: str) -> None:
    project = Names(run_id).project
    assert project.startswith("lockcheck-")
    assert set(project) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_too_many_nodes_are_refused_with_the_cure() -> None:
    crowd = [replace(CLIENT, name=f"c{number}") for number in range(MOST_NODES + 1)]
    with pytest.raises(ClusterError, match="240 nodes") as refused:
        addresses(crowd, SUBNET)
    assert refused.value.cure


def test_a_subnet_that_is_taken_is_not_offered() -> None:
    offered = list(free_subnets("r1", [IPv4Network("10.213.0.0/17"), IPv4Network("10.0.0.0/24")]))
    assert len(offered) == 128
    assert all(subnet.subnet_of(IPv4Network("10.213.128.0/17")) for subnet in offered)


def test_a_run_always_has_the_same_order_of_subnets_and_another_run_another() -> None:
    first, again, other = (list(islice(free_subnets(run, []), 3)) for run in ("r1", "r1", "r2"))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("kernel", "engine", "names"),
    [
        ("6.18.44-x", "20.10.24", {"tcp_retries2", "tcp_rto_max_ms", "neigh.eth0.retrans_time_ms"}),
        ("5.10.0", "26.1.5", {"tcp_retries2", "neigh.eth0.retrans_time_ms"}),
        ("6.15.0", "28.0.1", {"tcp_retries2", "tcp_rto_max_ms"}),
    ],
)
def test_only_settings_that_kernel_and_engine_know(
    kernel: str, engine: str, names: set[str]
) -> None:
    assert set(sysctls_for(kernel, engine)) == {f"net.ipv4.{name}" for name in names}
