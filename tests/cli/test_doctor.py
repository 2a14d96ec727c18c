"""`lockcheck doctor`: what is missing is what could be added, and only a mistake is broken."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from kazoo.protocol.connection import ConnectionHandler
from pymysql import Connection

from lockcheck.cli.doctor import Diagnosis, examine_host
from lockcheck.errors import ClusterError
from lockcheck.servers import SERVERS
from lockcheck.servers.wire.zookeeper import missing_in_kazoo
from tests.running import need


def told() -> dict[str, Diagnosis]:
    return {finding.what.strip(): finding for finding in examine_host()}


def test_a_server_that_is_missing_could_be_added(monkeypatch: pytest.MonkeyPatch) -> None:
    need("local")
    monkeypatch.setitem(SERVERS, "etcd", replace(SERVERS["etcd"], find=lambda: None, debs=()))
    found = told()
    assert found["etcd"].mark == "add"
    assert "apt-get install etcd-server" in found["etcd"].cure
    assert found["redis"].mark == "ok"
    assert "server v=" in found["redis"].found
    assert "local" in found["runs"].found


def test_a_variable_that_names_nothing_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKCHECK_ETCD", "/no/such/etcd")
    found = told()["etcd"]
    assert (found.mark, found.ok) == ("no", False)
    assert "unset it" in found.cure


def test_a_library_that_is_missing_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = replace(SERVERS["zookeeper"], drivers=(("kazooo", "kazoo-no-such"),))
    monkeypatch.setitem(SERVERS, "zookeeper", odd)
    found = told()["kazooo"]
    assert (found.mark, found.found) == ("add", "not installed")
    assert found.cure == "pip install 'dlockcheck[zookeeper]'"


def test_the_other_tool_of_this_name_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "lockcheck" not in told()
    about = tmp_path / "lockcheck-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lockcheck\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = told()["lockcheck"]
    assert (found.mark, found.ok) == ("no", False)
    assert "pip install --force-reinstall dlockcheck" in found.cure


def test_a_pymysql_without_what_is_relied_upon_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told()["PyMySQL"].mark == "ok"
    monkeypatch.delattr(Connection, "_force_close")
    found = told()["PyMySQL"]
    assert (found.mark, found.cure) == ("no", "pip install 'dlockcheck[mariadb]'")
    assert found.found == f"{metadata.version('PyMySQL')}, and its connections have no _force_close"


def no_ping_is_sent(handler: ConnectionHandler, _timeout_s: float) -> None: ...


def answers_are_not_logged(handler: ConnectionHandler, timeout_s: float) -> object:
    handler.logger = logging.Logger("elsewhere")
    return READ(handler, timeout_s)


READ = ConnectionHandler._read_socket


@pytest.mark.parametrize(
    ("member", "otherwise"),
    [("_send_ping", no_ping_is_sent), ("_read_socket", answers_are_not_logged)],
)
def test_a_kazoo_that_does_not_log_its_heartbeats_is_broken(
    member: str, otherwise: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert missing_in_kazoo() == ""
    monkeypatch.setattr(ConnectionHandler, member, otherwise)
    monkeypatch.setattr("lockcheck.servers.wire.zookeeper.PATIENCE_S", 0.5)
    found = told()["kazoo"]
    assert found.mark == "no"
    assert "does not report heartbeats" in found.found


def test_a_host_without_any_server_runs_nothing_in_local(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, server in SERVERS.items():
        monkeypatch.setitem(SERVERS, kind, replace(server, find=lambda: None, debs=()))
    assert "local" not in told()["runs"].found


def test_a_mistake_in_a_variable_is_said_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKCHECK_ETCD", "/no/such/etcd")
    with pytest.raises(ClusterError, match="LOCKCHECK_ETCD"):
        SERVERS["etcd"].find()
