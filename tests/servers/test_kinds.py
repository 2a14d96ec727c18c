"""The kinds of server: where each is found, how it is started, and what its answers say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.compose.choose import RUNTIMES, choose_runtime
from lockcheck.compose.launching import node_orders
from lockcheck.compose.local import fetching
from lockcheck.errors import ClusterError, UserError
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers import SERVERS
from lockcheck.servers.base import Here, check_drivers, unpacked
from lockcheck.servers.faketime import IN_IMAGE
from lockcheck.servers.kind import Kind
from lockcheck.servers.zookeeper import JARS
from tests.compose.hosts import as_fetched
from tests.running import need

KINDS = sorted(SERVERS)


def orders_of(*specs: NodeSpec) -> dict[str, tuple[str, ...]]:
    programs = {spec.kind: spec.kind.server.image_program for spec in specs if spec.kind}
    made = node_orders(specs, programs, folder_of=lambda name: f"/f/{name}", data_of=lambda _: "/d")
    return {each.name: each.command for each in made}


def members(kind: str, count: int = 3) -> list[NodeSpec]:
    return [NodeSpec(f"{kind[0]}{n}", Role.SERVER, Kind(kind)) for n in range(1, count + 1)]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with no program on PATH but those of this folder, no wheels, and an empty cache."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("lockcheck.servers.base.find_spec", lambda _name: None)
    monkeypatch.setattr("lockcheck.servers.zookeeper.HOST", tmp_path / "host")
    monkeypatch.setattr("lockcheck.servers.postgres.DEBIAN", tmp_path / "host" / "postgresql")
    for variable in ("REDIS_SERVER", "ETCD", "JAVA", "ZOOKEEPER", "POSTGRES", "PGBOUNCER"):
        monkeypatch.delenv(f"LOCKCHECK_{variable}", raising=False)
    return programs


def program(path: Path, script: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def jars(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for jar in JARS:
        (folder / f"{jar}-3.9.1.jar").touch()
    return folder


# --- finding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_where_there_is_nothing_nothing_is_found_and_the_cure_is_said(
    kind: str, bare: Path
) -> None:
    assert SERVERS[kind].find() is None
    assert SERVERS[kind].cure in fetching.why_no_server(SERVERS[kind])


def test_a_pooler_that_was_fetched_has_its_libraries_beside_it(bare: Path) -> None:
    pooler = SERVERS["pgbouncer"]
    here = Here("b1", ("b1",), "/d", ("pgbouncer",), {"postgres": ("p1",)})
    assert pooler.environment(here) == {}
    fetched = program(unpacked("pgbouncer") / "usr" / "sbin" / "pgbouncer")
    libraries = unpacked("pgbouncer") / "usr" / "lib" / "x86_64-linux-gnu"
    program(libraries / "libcares.so.2")
    as_fetched(unpacked("pgbouncer"))
    assert pooler.find() == (str(fetched),)
    assert pooler.environment(replace(here, program=(str(fetched),))) == {
        "LD_LIBRARY_PATH": str(libraries)
    }
    assert "host=p1 " in pooler.files(here)["pgbouncer.ini"]


def test_postgres_is_found_by_a_variable_then_the_newest_of_debians(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("9", "17", "old"):
        for name in ("postgres", "initdb"):
            program(tmp_path / "host" / "postgresql" / version / "bin" / name)
    old, new = (tmp_path / "host" / "postgresql" / version / "bin" for version in ("9", "17"))
    assert SERVERS["postgres"].find() == (str(new / "postgres"),)
    for value in (old, old / "postgres"):
        monkeypatch.setenv("LOCKCHECK_POSTGRES", str(value))
        assert SERVERS["postgres"].find() == (str(old / "postgres"),)
    (old / "initdb").unlink()
    with pytest.raises(ClusterError, match=r"does not hold .* initdb"):
        SERVERS["postgres"].find()


@pytest.mark.parametrize(
    ("kind", "variable", "names"),
    [
        ("redis", "LOCKCHECK_REDIS_SERVER", ["redis-server", "valkey-server"]),
        ("etcd", "LOCKCHECK_ETCD", ["etcd"]),
    ],
)
def test_a_variable_then_path(
    kind: str, variable: str, names: list[str], bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in reversed(names):
        found = program(bare / name)
        assert SERVERS[kind].find() == (str(found),)
    named = program(bare.parent / "elsewhere" / "mine")
    monkeypatch.setenv(variable, str(named))
    assert SERVERS[kind].find() == (str(named),)
    monkeypatch.setenv(variable, str(bare / "no-such-program"))
    with pytest.raises(ClusterError, match=variable) as refused:
        SERVERS[kind].find()
    assert "unset it" in refused.value.cure


def test_zookeeper_takes_java_and_jars(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = program(bare / "java")
    assert SERVERS["zookeeper"].find() is None
    folder = jars(bare.parent / "lib")
    monkeypatch.setenv("LOCKCHECK_ZOOKEEPER", str(folder))
    found = SERVERS["zookeeper"].find()
    assert found is not None
    assert found[:2] == (str(java), "-cp")
    assert len(found[2].split(":")) == len(JARS)
    assert SERVERS["zookeeper"].version_command(found) == ("ls", str(folder))
    (folder / f"{JARS[-1]}-3.9.1.jar").unlink()
    with pytest.raises(ClusterError, match="LOCKCHECK_ZOOKEEPER"):
        SERVERS["zookeeper"].find()


# --- only what a plan needs ----------------------------------------------------------------------


def test_one_missing_program_keeps_no_other_from_running(monkeypatch: pytest.MonkeyPatch) -> None:
    need("local")
    gone = replace(SERVERS["etcd"], find=lambda: None, debs=())
    monkeypatch.setitem(SERVERS, "etcd", gone)
    local = RUNTIMES["local"]()
    assert local.why_not() == ""
    assert local.why_not([Kind("redis")]) == ""
    assert "no etcd here: apt-get install" in local.why_not([Kind("etcd"), Kind("redis")])
    assert choose_runtime("auto", [Kind("redis")])[0].name == "local"
    with pytest.raises(ClusterError) as refused:
        choose_runtime("local", [Kind("etcd")])
    assert "no etcd here" in refused.value.cure


# --- what can be fetched -------------------------------------------------------------------------

OF_THE_HOST = replace(SERVERS["zookeeper"], debs_suite="")
DOWNLOADS = """
for package in "$@"; do case $package in lib*) touch "$package.deb";; esac; done
"""
UNPACKS = f"""
/bin/mkdir -p "$3/usr/share/java"
for jar in {" ".join(JARS)}; do : > "$3/usr/share/java/$jar.jar"; done
"""


def fetched(bare: Path, apt: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    program(bare / "java")
    program(bare / "apt-get", apt.replace("touch", "/usr/bin/touch"))
    program(bare / "dpkg-deb", UNPACKS)
    notes: list[str] = []
    assert fetching.why_no_server(OF_THE_HOST) == ""
    fetching.bring_server(OF_THE_HOST, notes.append)
    return notes


def test_what_is_missing_is_fetched_once_and_said(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [line] = fetched(bare, DOWNLOADS, monkeypatch)
    assert "fetching ZooKeeper: Debian's libzookeeper-java" in line
    assert str(unpacked("zookeeper")) in line
    again: list[str] = []
    fetching.bring_server(OF_THE_HOST, again.append)
    assert again == []


def test_a_fetch_that_fails_is_quoted_and_leaves_nothing(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ClusterError, match="E: no such mirror") as failed:
        fetched(bare, "echo 'E: no such mirror' >&2; exit 100", monkeypatch)
    assert "apt-get update" in failed.value.cure
    assert SERVERS["zookeeper"].cure in failed.value.cure
    assert not unpacked("zookeeper").exists()


def test_jars_without_java_are_not_fetched(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("apt-get", "dpkg-deb"):
        program(bare / name)
    assert not fetching.can_be_fetched(SERVERS["zookeeper"])
    program(bare / "java")
    assert fetching.can_be_fetched(SERVERS["zookeeper"])


# --- commands and questions ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_members_know_each_other_by_name(kind: str) -> None:
    one_of_each = [
        NodeSpec(f"{other}-1", Role.SERVER, Kind(other)) for other in KINDS if other != kind
    ]
    orders = orders_of(*one_of_each, *members(kind))
    for name in (spec.name for spec in members(kind)):
        text = " ".join(orders[name])
        assert not re.search(r"\b10\.\d+\.", text)
        assert kind == "redis" or name in text or "/d/" in text


def test_members_are_of_one_kind_and_role() -> None:
    storage = NodeSpec("s1", Role.STORAGE, Kind("etcd"))
    commands = orders_of(*members("etcd", 2), storage, *members("redis", 1))
    cluster = commands["e1"][commands["e1"].index("--initial-cluster") + 1]
    assert cluster == "e1=http://e1:2380,e2=http://e2:2380"
    assert "e1=" not in " ".join(commands["s1"])


REPLICATED = (
    (b"role:master\r\nconnected_slaves:2\r\n", True, True),
    (b"role:master\r\nconnected_slaves:0\r\n", True, False),  # it has just come back
    (b"role:slave\r\nmaster_host:r1\r\nmaster_link_status:up\r\n", True, False),
    (b"role:slave\r\nmaster_host:r1\r\nmaster_link_status:down\r\n", False, False),
)
KNOWS = b"$10\r\nnum-slaves\r\n$1\r\n%d\r\n$19\r\nnum-other-sentinels\r\n$1\r\n%d\r\n"
SENTINEL = ((KNOWS % (2, 2), True, False), (KNOWS % (2, 1), False, False))


@pytest.mark.parametrize(
    ("kind", "answer", "is_ready", "leads"),
    [
        ("redis", b"+PONG\r\n", True, False),
        ("redis", b"-LOADING Redis is loading the dataset in memory\r\n", False, False),
        *(("redis-replicated", *case) for case in REPLICATED),
        *(("redis-sentinel", *case) for case in SENTINEL),
        ("etcd", b'HTTP/1.0 200 OK\r\n\r\n{"health":"true","reason":""}', True, False),
        ("etcd", b'{"health":"false","reason":"RAFT NO LEADER"}', False, False),
        ("etcd", b'{"header":{"member_id":"12","raft_term":"2"},"leader":"12"}', False, True),
        ("etcd", b'{"header":{"member_id":"12","raft_term":"2"},"leader":"123"}', False, False),
        ("zookeeper", b"Zookeeper version: 3.9\nMode: leader\n", True, True),
        ("zookeeper", b"Zookeeper version: 3.9\nMode: follower\n", True, False),
        ("zookeeper", b"This ZooKeeper instance is not currently serving requests", False, False),
    ],
)
def test_what_an_answer_says(kind: str, answer: bytes, is_ready: bool, leads: bool) -> None:
    server = SERVERS[kind]
    assert bool(re.search(server.ready.answer, answer, re.DOTALL)) is is_ready
    asked = server.leader
    assert bool(asked and re.search(asked.answer, answer, re.DOTALL)) is leads


def test_what_a_full_disk_leaves_of_zookeepers_log_is_removed_and_nothing_else(
    tmp_path: Path,
) -> None:
    logs = tmp_path / "version-2"
    logs.mkdir()
    for name, size in (("log.1", 16), ("log.2", 0), ("log.3", 15), ("snapshot.0", 0)):
        (logs / name).write_bytes(bytes(size))
    SERVERS["zookeeper"].tidied(tmp_path)
    assert sorted(path.name for path in logs.iterdir()) == ["log.1", "snapshot.0"]


@pytest.mark.parametrize(
    ("kind", "output", "version"),
    [
        ("redis", "Redis server v=8.0.2 sha=0:1 malloc=jemalloc", "Redis server v=8.0.2"),
        ("etcd", "etcd Version: 3.5.16\nGit SHA: x\nGo Version: go1.2", "3.5.16"),
        ("zookeeper", "zookeeper-it-3.8.0.jar\nzookeeper-3.9.3.jar\nzookeeper.jar", "3.9.3"),
    ],
)
def test_versions(kind: str, output: str, version: str) -> None:
    found = re.search(SERVERS[kind].version_pattern, output)
    assert found is not None
    assert found.group() == version


def test_a_missing_client_library_is_reported_before_anything_is_started() -> None:
    check_drivers(SERVERS["zookeeper"])
    odd = replace(SERVERS["zookeeper"], drivers=(("kazooo", "kazoo-no-such"),))
    with pytest.raises(UserError, match="clients of ZooKeeper need kazooo") as refused:
        check_drivers(odd)
    assert refused.value.cure == "pip install 'dlockcheck[zookeeper]'"


def test_libfaketime_stands_before_the_program_alone_and_begins_with_the_truth() -> None:
    spec = NodeSpec("z1", Role.SERVER, Kind("zookeeper"), faketime=True)
    programs = {Kind("zookeeper"): Kind("zookeeper").server.image_program}
    [orders] = node_orders([spec], programs, str, lambda _: "/d", faketime=IN_IMAGE)
    env, *variables = orders.command[: orders.command.index("java")]
    assert env == "env"
    assert "LD_PRELOAD=/usr/$LIB/faketime/libfaketimeMT.so.1" in variables
    assert "FAKETIME_TIMESTAMP_FILE=/d/faketime" in variables
    assert orders.files["faketime"] == "+0.000000\n"
    assert orders.environment == {}
    [without] = node_orders([replace(spec, faketime=False)], programs, str, lambda _: "/d")
    assert without.command == orders.command[1 + len(variables) :]
    assert "faketime" not in without.files


def test_an_uptime_is_below_zero_where_the_clock_was_turned_back() -> None:
    telling = SERVERS["zookeeper"].tells_time
    assert telling is not None
    found = re.search(telling.question.answer, b"zk_version\t3.9\nzk_uptime\t-29500\nzk_x\t1\n")
    assert found is not None
    assert telling.read_ns(found) == -29_500_000_000
