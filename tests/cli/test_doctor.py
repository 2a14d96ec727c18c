"""`lockcheck doctor`: what is missing is what could be added, and only a mistake is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lockcheck.cli.doctor import Diagnosis, examine_host
from lockcheck.errors import ClusterError
from lockcheck.servers import SERVERS
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
    assert found.cure == "pip install 'lockcheck[zookeeper]'"


def test_a_host_without_any_server_runs_nothing_in_local(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, server in SERVERS.items():
        monkeypatch.setitem(SERVERS, kind, replace(server, find=lambda: None, debs=()))
    assert "local" not in told()["runs"].found


def test_a_mistake_in_a_variable_is_said_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKCHECK_ETCD", "/no/such/etcd")
    with pytest.raises(ClusterError, match="LOCKCHECK_ETCD"):
        SERVERS["etcd"].find()
