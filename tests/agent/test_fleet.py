"""Nodes are started, ended and started again in place, in the same way in both runtimes."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.errors import ClusterError
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers import SERVERS
from lockcheck.servers.kind import Kind
from tests.agent.fleets import Fleet, fleet
from tests.agent.tiny import PORT, TINY
from tests.running import RUNTIMES
from tests.waiting import wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.parametrize("runtime", RUNTIMES)]

CAP_SYS_PTRACE, CAP_SYS_ADMIN = 1 << 19, 1 << 21
REDIS = NodeSpec("r1", Role.SERVER, Kind("redis"))


def members(kind: str) -> list[NodeSpec]:
    return [NodeSpec(f"{kind[0]}{number}", Role.SERVER, Kind(kind)) for number in (1, 2, 3)]


def leader_of(nodes: Fleet) -> str:
    return str(wait_for(nodes.leader, "one leads"))


def etcd(on: Fleet, name: str, what: str, **body: str) -> dict[str, object]:
    coded = {key: base64.b64encode(value.encode()).decode() for key, value in body.items()}
    sent = json.dumps(coded)
    head = f"POST /v3/kv/{what} HTTP/1.0\r\nContent-Length: {len(sent)}\r\n\r\n"
    reply = on.ask(name, 2379, (head + sent).encode())
    assert reply is not None
    answer: dict[str, object] = json.loads(reply.partition("\r\n\r\n")[2])
    return answer


def test_a_redis_that_is_started_again_is_the_same_node_with_its_data_or_without(
    runtime: str, tmp_path: Path
) -> None:
    with fleet(runtime, tmp_path, REDIS) as nodes:
        assert nodes.ask("r1", 6379, b"SET k v\r\nGET k\r\nQUIT\r\n") == "+OK\r\n$1\r\nv\r\n+OK\r\n"
        before = nodes.look("r1")
        if runtime == "docker":
            assert not before.rights & (CAP_SYS_ADMIN | CAP_SYS_PTRACE)  # the agent's, not its
        nodes.end("r1")
        ended = nodes.look("r1")
        assert (ended.pids, ended.alive, ended.down) == ([], False, True)
        assert nodes.ask("r1", 6379, b"PING\r\n") is None
        nodes.start("r1")
        after = nodes.look("r1")
        assert (after.alive, after.down, after.address) == (True, False, before.address)
        assert not set(after.pids) & set(before.pids)
        assert nodes.ask("r1", 6379, b"GET k\r\nQUIT\r\n") == "$1\r\nv\r\n+OK\r\n"
        nodes.end("r1")
        nodes.start("r1", data=False)
        assert nodes.ask("r1", 6379, b"GET k\r\nQUIT\r\n") == "$-1\r\n+OK\r\n"
        nodes.cluster.collect()
    output = (tmp_path / "nodes" / "r1" / "output.log").read_text()
    assert output.count("Ready to accept connections") == 3


def test_what_runs_already_is_not_started(runtime: str, tmp_path: Path) -> None:
    with (
        fleet(runtime, tmp_path, REDIS) as nodes,
        pytest.raises(ClusterError, match="already running"),
    ):
        nodes.start("r1")


def test_all_processes_of_a_node_are_it_whoever_forked_them(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SERVERS, "tiny", TINY)
    monkeypatch.setenv("ETCD_NAME", "of the host's own etcd")
    names = [NodeSpec(name, Role.SERVER, Kind("tiny")) for name in ("t1", "t2")]
    with fleet(runtime, tmp_path, *names) as nodes:
        assert len(nodes.look("t1").pids) == 2
        assert nodes.stop_whole("t1") == ["T", "T"]
        first = (nodes.ask("t1", PORT, b"") or "").split("/")
        assert first == [
            *("$HOME is a word", "1", "I", "hello from t1 of t1 t2", "0", "no etcd"),
            "['greeting', 'lives']",
        ]
        nodes.end("t1")
        assert nodes.look("t1").pids == []
        assert len(nodes.look("t2").pids) == 2
        nodes.start("t1")
        assert (nodes.ask("t1", PORT, b"") or "").split("/")[2:5] == ["II", first[3], "1"]
        nodes.end("t1")
        nodes.start("t1", data=False)
        assert (nodes.ask("t1", PORT, b"") or "").split("/")[2:5] == ["I", first[3], "2"]
        nodes.cluster.collect()
    assert not (tmp_path / "nodes" / "t1" / "data").exists()


def test_a_server_that_does_not_come_up_is_named_with_its_last_words(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SERVERS, "tiny", replace(TINY, refuses_root=False))
    with (
        pytest.raises(ClusterError, match=r"t1 exited right after .*I do not run as root"),
        fleet(runtime, tmp_path, NodeSpec("t1", Role.SERVER, Kind("tiny"))),
    ):
        pytest.fail("it was ready")


def test_an_etcd_member_comes_back_with_its_data_and_is_refused_without(
    runtime: str, tmp_path: Path
) -> None:
    """The others know it: it would forget what it has voted for."""
    with fleet(runtime, tmp_path, *members("etcd")) as nodes:
        etcd(nodes, "e1", "put", key="k", value="kept")
        leader = leader_of(nodes)
        nodes.end(leader)
        assert leader_of(nodes) != leader
        nodes.start(leader)
        assert "kvs" in etcd(nodes, leader, "range", key="k")
        nodes.end(leader)
        with pytest.raises(
            ClusterError, match=f"{leader} exited right after .*already been bootstrapped"
        ):
            nodes.start(leader, data=False)
        assert nodes.look(leader).down


@pytest.mark.long
def test_zookeeper_elects_another_leader_and_heals_a_member_that_lost_its_data(
    runtime: str, tmp_path: Path
) -> None:
    with fleet(runtime, tmp_path, *members("zookeeper")) as nodes:
        leader = leader_of(nodes)
        nodes.end(leader)
        assert leader_of(nodes) != leader
        nodes.start(leader, data=False)
        assert "Mode: follower" in (nodes.ask(leader, 2181, b"srvr") or "")
