"""Nodes made of processes that a test has started itself."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from lockcheck.compose.local.runtime import isolation
from lockcheck.nodes.namespaces import network_of
from lockcheck.nodes.node import Node, NodeSpec, Role
from lockcheck.servers.kind import Kind
from tests.waiting import wait_for


class OneProcess(Node):
    """One process in this test's own network, where many others are."""

    def __init__(self, name: str, pid: int, role: Role = Role.CLIENT) -> None:
        kind = None if role is Role.CLIENT else Kind("redis")
        super().__init__(NodeSpec(name, role, kind), "192.0.2.1", network_of("self"))
        self.pid = pid

    def pids(self) -> list[int]:
        with suppress(FileNotFoundError, ProcessLookupError):
            stat = Path(f"/proc/{self.pid}/stat").read_text()
            return [] if stat.rpartition(")")[2].split()[0] in {"Z", "X"} else [self.pid]
        return []


def started(script: str) -> subprocess.Popen[bytes]:
    if isolation() is None:
        pytest.skip("this system gives no namespaces")
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    command = ["unshare", *user, "--net", sys.executable, "-c", script]
    return subprocess.Popen(command, start_new_session=True, stdin=subprocess.PIPE)


def node_of(process: subprocess.Popen[bytes], name: str = "n1", *keepers: int) -> Node:
    home = Path("/proc/self/ns/net").stat().st_ino
    network = Path(f"/proc/{process.pid}/ns/net")
    wait_for(lambda: network.stat().st_ino != home, "it is in its own network")
    spec = NodeSpec(name, Role.SERVER, Kind("redis"))
    return Node(spec, "192.0.2.1", network_of(process.pid), frozenset(keepers))
