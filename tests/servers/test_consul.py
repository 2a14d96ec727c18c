"""Consul: where it is found, and the file that makes servers find each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockcheck.servers.base import Here, unpacked
from lockcheck.servers.consul import CONFIGURATION, CONSUL
from tests.compose.hosts import as_fetched


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_found_by_variable_then_on_path_then_where_it_was_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCKCHECK_CONSUL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert CONSUL.find() is None
    fetched = program(tmp_path / "cache/lockcheck/debian/consul/usr/bin/consul")
    assert CONSUL.find() is None  # its note is missing
    as_fetched(unpacked("consul"))
    assert CONSUL.find() == (fetched,)
    on_path = program(tmp_path / "bin/consul")
    assert CONSUL.find() == (on_path,)
    named = program(tmp_path / "mine/consul-1.20")
    monkeypatch.setenv("LOCKCHECK_CONSUL", named)
    assert CONSUL.find() == (named,)


def settings(name: str) -> dict[str, object]:
    here = Here(name, ("n1", "n2", "n3"), "/data", ("consul",))
    assert CONSUL.command(here)[-1] == f"/data/{CONFIGURATION}"
    read: dict[str, object] = json.loads(CONSUL.files(here)[CONFIGURATION])
    return read


def test_all_wait_for_all_and_each_keeps_its_identity() -> None:
    first, second = settings("n1"), settings("n2")
    assert first["bootstrap_expect"] == 3
    assert first["retry_join"] == ["n1", "n2", "n3"]
    assert first["node_id"] == settings("n1")["node_id"] != second["node_id"]
