"""Servers on loopback, as plain processes of a test's own; skipped where they cannot be had."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import TypeAlias, TypeVar

import pytest

from lockcheck.agent.place import AS_ORDINARY_USER
from lockcheck.backends.base import Lock, LockSettings
from lockcheck.compose.local.fetching import bring_server, why_no_server
from lockcheck.errors import ClusterError
from lockcheck.servers.base import Here, Server
from lockcheck.servers.consul import CONSUL
from lockcheck.servers.etcd import ETCD
from lockcheck.servers.mariadb import MARIADB
from lockcheck.servers.postgres import POSTGRES, READY
from lockcheck.servers.wire import Address
from lockcheck.servers.zookeeper import ZOOKEEPER
from tests.waiting import wait_for

Started: TypeAlias = tuple[Address, subprocess.Popen[bytes]]
AnyLock = TypeVar("AnyLock", bound=Lock)
NOWHERE: Address = ("127.0.0.1", 1)  # nothing listens there


@contextmanager
def clients(
    connect: Callable[[tuple[Address, ...], LockSettings], AnyLock],
    address: Address,
    ttl_ms: int,
    count: int,
) -> Iterator[list[AnyLock]]:
    """`c1`, `c2` ..."""
    owners = [f"c{number + 1}" for number in range(count)]
    settings = [LockSettings(owner, ttl_ms, Random(owner)) for owner in owners]
    with ExitStack() as connected:
        yield [connected.enter_context(closing(connect((address,), one))) for one in settings]


def found(server: Server) -> tuple[str, ...]:
    if reason := why_no_server(server):
        pytest.skip(reason)
    try:
        bring_server(server, print)
    except ClusterError as error:
        pytest.skip(f"no {server.title} on this host: {error}")
    program = server.find()
    assert program, "it was brought"
    return program


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(
    command: list[str], folder: Path, address: Address, ask: bytes, answer: bytes
) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "output.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        wait_for(lambda: answer in said(address, ask), f"{command[0]} answers")
        yield server
    finally:
        server.kill()
        server.wait()


@contextmanager
def stopped(server: subprocess.Popen[bytes]) -> Iterator[None]:
    """While none of its threads runs."""
    states = Path(f"/proc/{server.pid}/task")
    server.send_signal(signal.SIGSTOP)
    try:
        wait_for(
            lambda: all(
                stat.read_text().rpartition(")")[2].split()[0] == "T"
                for stat in states.glob("*/stat")
            ),
            "it is stopped",
        )
        yield
    finally:
        server.send_signal(signal.SIGCONT)


def said(address: Address, ask: bytes) -> bytes:
    heard = b""
    with suppress(OSError), socket.create_connection(address, 1) as connection:
        connection.settimeout(1)
        connection.sendall(ask)
        while chunk := connection.recv(4096):
            heard += chunk
    return heard


@contextmanager
def etcd(folder: Path) -> Iterator[Started]:
    program = found(ETCD)
    address, peer = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
    own, peers = (f"http://{host}:{port}" for host, port in (address, peer))
    command = [*program, "--name", "e1", "--data-dir", "data", "--unsafe-no-fsync"]
    command += ["--listen-client-urls", own, "--advertise-client-urls", own]
    command += ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
    command += ["--initial-cluster", f"e1={peers}"]
    command += ["--heartbeat-interval", "50", "--election-timeout", "500"]
    health = b"GET /health HTTP/1.0\r\n\r\n"
    with running(command, folder, address, health, b'"health":"true"') as server:
        yield address, server


@contextmanager
def zookeeper(folder: Path) -> Iterator[Started]:
    program = found(ZOOKEEPER)
    address = ("127.0.0.1", free_port())
    settings = (
        *("tickTime=100", "minSessionTimeout=200", "maxSessionTimeout=600000"),
        *("4lw.commands.whitelist=*", "admin.enableServer=false"),
        *(f"dataDir={folder}/data", f"clientPort={address[1]}"),
        "clientPortAddress=127.0.0.1",
    )
    (folder / "zoo.cfg").write_text("\n".join(settings))
    command = [*program, "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", str(folder / "zoo.cfg")]
    with running(command, folder, address, b"srvr", b"Mode:") as server:
        yield address, server


@contextmanager
def postgres(folder: Path) -> Iterator[Started]:
    """As somebody who is not root; what the kernel shares between its processes goes with them."""
    here = Here("p1", ("p1",), str(folder), found(POSTGRES))
    address = ("127.0.0.1", free_port())
    command = [*AS_ORDINARY_USER, "--ipc", *POSTGRES.command(here)]
    command += ["-c", f"port={address[1]}", "-c", "listen_addresses=127.0.0.1"]
    goodbye = b"X\0\0\0\4"
    with running(command, folder, address, READY.ask + goodbye, b"Z\0\0\0\5I") as server:
        yield address, server


@contextmanager
def consul(folder: Path) -> Iterator[Started]:
    """One server, which keeps everything in memory and leads itself at once."""
    program = found(CONSUL)
    address = ("127.0.0.1", free_port())
    ports = {"http": address[1], "server": free_port(), "serf_lan": free_port()}
    settings = {
        "bind_addr": "127.0.0.1",
        "session_ttl_min": "100ms",
        "disable_update_check": True,
        "ports": ports | dict.fromkeys(("dns", "grpc", "serf_wan"), -1),
    }
    (folder / "consul.json").write_text(json.dumps(settings))
    command = [*program, "agent", "-dev", "-config-file", str(folder / "consul.json")]
    with running(command, folder, address, CONSUL.ready.ask, b"serfHealth") as server:
        yield address, server


@contextmanager
def mariadb(folder: Path) -> Iterator[Started]:
    address = ("127.0.0.1", free_port())
    here = Here("m1", ("m1",), str(folder), found(MARIADB))
    environment = [f"{name}={value}" for name, value in MARIADB.environment(here).items()]
    command = [*(AS_ORDINARY_USER if os.geteuid() == 0 else ()), "env", *environment]
    command += [*MARIADB.command(here), "--bind-address=127.0.0.1", f"--port={address[1]}"]
    with running(command, folder, address, MARIADB.ready.ask, b"MariaDB") as server:
        yield address, server
