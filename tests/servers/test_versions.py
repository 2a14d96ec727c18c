"""Versions of servers: which one a run gets, and that it is that one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from lockcheck.compose.launching import image_of, programs_on_host
from lockcheck.compose.local import fetching
from lockcheck.config import RunConfig
from lockcheck.errors import ClusterError, UserError
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.run.resolve import resolve
from lockcheck.run.rows import plan_rows
from lockcheck.servers import SERVERS, Server
from lockcheck.servers.base import unpacked
from lockcheck.servers.kind import Kind
from lockcheck.servers.versions import check_versions, program_of
from tests.compose.hosts import as_fetched

ETCD_3_4 = Kind("etcd", "3.4")
VERSIONS = [version for server in SERVERS.values() for version in server.versions.values()]


def config(backend: str, *version: str) -> RunConfig:
    return RunConfig(backend=backend, seed=1, version=version)


def says(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host without wheels or apt, whose programs are those of this folder."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("lockcheck.servers.base.find_spec", lambda _name: None)
    monkeypatch.delenv("LOCKCHECK_ETCD", raising=False)
    return tmp_path / "bin"


# --- what is asked for ---------------------------------------------------------------------------


def test_the_servers_under_test_get_the_version_and_the_storage_does_not() -> None:
    plan = resolve(config("redis", "redis=7"))
    kinds = {spec.name: spec.kind for spec in plan.nodes if spec.role is not Role.CLIENT}
    assert kinds == {"r1": Kind("redis", "7"), "s1": Kind("redis")}
    assert plan.kinds == (Kind("redis"), Kind("redis", "7"))
    assert {image_of(spec) for spec in plan.nodes} == {"redis:bookworm", "redis", "client"}
    rows = dict(plan_rows(resolve(config("etcd", "etcd=3.4")), Path("x"), "local"))
    assert rows["servers"] == "3 etcd=3.4"


def test_servers_that_are_named_in_a_version_get_that_version() -> None:
    own = RunConfig(backend="mine", client="./mine", servers="etcd=3.4", seed=1)
    for version, wanted in (((), "3.4"), (("etcd=3.5",), "3.5")):
        kinds = set(resolve(msgspec.structs.replace(own, version=version)).kinds)
        assert kinds == {Kind("etcd", wanted), Kind("redis")}


@pytest.mark.parametrize(
    ("backend", "version", "cure"),
    [
        ("etcd", ("etcd=2.3",), "choose from: etcd=3.5, etcd=3.4"),
        ("etcd", ("redis=7",), "choose from: etcd=3.5, etcd=3.4"),
        ("etcd", ("etcd",), "choose from: etcd=3.5, etcd=3.4"),
        ("etcd", ("etcd=",), "choose from: etcd=3.5, etcd=3.4"),
        ("redis", ("redis=7", "redis=8"), "choose one"),
        (
            "postgres-advisory-pooled",
            ("postgres=15",),
            "omit --version: postgres and pgbouncer come in one version",
        ),
        ("zookeeper", ("zookeeper=3.9",), "omit --version: zookeeper comes in one version"),
    ],
)
def test_what_there_is_not_is_refused(backend: str, version: tuple[str, ...], cure: str) -> None:
    with pytest.raises(UserError, match="--version") as refused:
        resolve(config(backend, *version))
    assert cure in refused.value.cure


def test_the_version_of_a_program_is_that_of_all_kinds_that_run_it() -> None:
    servers = resolve(config("redis-failover", "redis=7")).servers
    assert {str(spec.kind) for spec in servers} == {"redis-replicated=7", "redis-sentinel=7"}
    assert {spec.kind.software for spec in servers if spec.kind} == {"redis"}
    assert {spec.server.unpacked_as for spec in servers if spec.server} == {"redis-7"}


def test_it_is_in_the_command_that_runs_it_again() -> None:
    assert "--version etcd=3.4" in config("etcd", "etcd=3.4").command()


@pytest.mark.parametrize("kind", ["no-such", "redis=6", "redis="])
def test_a_kind_that_there_is_not_is_named(kind: str) -> None:
    with pytest.raises(UserError, match=re.escape(repr(kind))) as refused:
        Kind.parse(kind)
    assert "redis=7" in refused.value.cure


# --- what each version is ------------------------------------------------------------------------


@pytest.mark.parametrize("server", VERSIONS, ids=lambda server: f"{server.name}={server.version}")
def test_a_version_is_the_same_server_with_a_pattern_of_its_own(server: Server) -> None:
    kind = Kind.parse(f"{server.name}={server.version}")
    assert kind == Kind(server.name, server.version)
    assert kind.server is server
    assert str(kind) == f"{server.name}={server.version}"
    assert server.says
    assert (server.port, server.drivers) == (
        SERVERS[server.name].port,
        SERVERS[server.name].drivers,
    )
    assert server.title != SERVERS[server.name].title


def test_versions_do_not_take_each_other_for_themselves() -> None:
    for kind, output in {
        "redis=7": "Redis server v=7.0.15",
        "redis=8": "Redis server v=8.0.2",
        "redis=valkey": "Valkey server v=8.1.1",
        "etcd=3.4": "3.4.23",
        "etcd=3.5": "3.5.16",
    }.items():
        same = [
            name
            for name, version in SERVERS[kind.partition("=")[0]].versions.items()
            if re.search(version.says, output)
        ]
        assert same == [kind.partition("=")[2]]


# --- what is here --------------------------------------------------------------------------------


def test_another_version_on_path_is_not_it_and_is_told(bare: Path) -> None:
    program = says(bare / "etcd", "etcd Version: 3.5.16")
    assert program_of(ETCD_3_4.server) is None
    assert program_of(Kind("etcd", "3.5").server) == (str(program),)
    assert program_of(Kind("etcd").server) == (str(program),)
    reason = fetching.why_no_server(ETCD_3_4.server)
    assert f"no etcd 3.4 here ({program} says 3.5.16)" in reason
    assert "LOCKCHECK_ETCD" in reason
    with pytest.raises(ClusterError, match="etcd=3"):
        programs_on_host([ETCD_3_4])


def test_what_was_unpacked_for_a_version_goes_before_path(bare: Path) -> None:
    on_path = says(bare / "etcd", "etcd Version: 3.5.16")
    ours = says(unpacked("etcd-3.4") / "usr/bin/etcd", "etcd Version: 3.4.23")
    as_fetched(unpacked("etcd-3.4"))
    assert programs_on_host([Kind("etcd"), ETCD_3_4]) == {
        Kind("etcd"): (str(on_path),),
        ETCD_3_4: (str(ours),),
    }


def test_a_variable_that_names_another_version_is_refused(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = says(bare / "mine", "etcd Version: 3.5.1")
    monkeypatch.setenv("LOCKCHECK_ETCD", str(named))
    assert f"{named} says 3.5.1" in fetching.why_no_server(ETCD_3_4.server)


def test_libraries_go_with_the_program_that_was_unpacked_with_them(bare: Path) -> None:
    program = says(unpacked("redis-7") / "usr/bin/redis-server", "Redis server v=7.0.15")
    libraries = unpacked("redis-7") / "usr/lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    assert environment_of(Kind("redis", "7"), program) == {"LD_LIBRARY_PATH": str(libraries)}
    assert environment_of(Kind("redis", "7"), bare / "redis-server") == {}


def environment_of(kind: Kind, program: Path) -> dict[str, str]:
    from lockcheck.compose.launching import node_orders

    spec = NodeSpec("r1", Role.SERVER, kind)
    nowhere: Callable[[str], str] = lambda _name: "/d"  # noqa: E731
    [orders] = node_orders([spec], {kind: (str(program),)}, nowhere, nowhere)
    return orders.environment


def test_a_cluster_of_another_version_is_refused_before_clients_come() -> None:
    kinds = [Kind("redis"), Kind("redis", "7")]
    check_versions(kinds, {"redis": "whatever", "redis=7": "Redis server v=7.0.15"})
    with pytest.raises(ClusterError, match=r"redis=7 was asked for, but .* v=8\.0\.2"):
        check_versions(kinds, {"redis": "whatever", "redis=7": "Redis server v=8.0.2"})


def test_a_fetch_that_brings_another_version_is_an_error(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = replace(ETCD_3_4.server, find=lambda: (str(bare / "etcd"),))
    says(bare / "etcd", "etcd Version: 3.3.1")
    monkeypatch.setattr(fetching, "_fetch", lambda _server, _folder: None)
    with pytest.raises(ClusterError, match=r"do not provide etcd 3\.4 here: .* says 3\.3\.1"):
        fetching.bring_server(server, print)
