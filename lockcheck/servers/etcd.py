"""etcd: a cluster of members that elect a leader, with a JSON gateway."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lockcheck.servers.base import (
    Clock,
    Command,
    Here,
    Question,
    Server,
    as_command,
    found_by,
    in_debs,
    named_by,
    offering,
)
from lockcheck.servers.wire.http_date import tells_date

ETCD_PORT = 2379
PEER_PORT = 2380
VARIABLE = "LOCKCHECK_ETCD"
DEBIAN_PROGRAM = "usr/bin/etcd"
EVERY_ADDRESS = "http://0.0.0.0"  # in the node's own network namespace


def _fetched() -> Path | None:
    return in_debs("etcd", DEBIAN_PROGRAM) or in_debs("etcd-3.5", DEBIAN_PROGRAM)


_find = found_by(VARIABLE, "etcd", otherwise=_fetched)


def _command(here: Here) -> Command:
    cluster = ",".join(f"{name}=http://{name}:{PEER_PORT}" for name in here.members)
    options = {
        "name": here.name,
        "data-dir": f"{here.data}/member.etcd",
        "listen-client-urls": f"{EVERY_ADDRESS}:{ETCD_PORT}",
        "advertise-client-urls": f"http://{here.name}:{ETCD_PORT}",
        "listen-peer-urls": f"{EVERY_ADDRESS}:{PEER_PORT}",
        "initial-advertise-peer-urls": f"http://{here.name}:{PEER_PORT}",
        "initial-cluster": cluster,
        "initial-cluster-state": "new",
        "initial-cluster-token": "lockcheck",
        "heartbeat-interval": "50",
        "election-timeout": "500",
        "snapshot-count": "10000",  # so that old segments of its log are removed soon
        "max-wals": "2",
        "max-snapshots": "2",
        "log-level": "warn",
    }
    words = (word for option, value in options.items() for word in (f"--{option}", value))
    return (*here.program, *words, "--unsafe-no-fsync")  # its data folder is in memory


def _find_3_4() -> Command | None:
    """The program that is named or was fetched; or any other, which is then asked its version."""
    found = named_by(VARIABLE, "the etcd program") or in_debs("etcd-3.4", DEBIAN_PROGRAM)
    return as_command(found) or _find()


_ETCD = Server(
    name="etcd",
    title="etcd",
    port=ETCD_PORT,
    find=_find,
    cure="apt-get install etcd-server, or put an etcd on PATH: not 3.5.0 to 3.5.2, which lose data",
    image="etcd",
    image_program=("etcd",),
    command=_command,
    version_pattern=r"(?<=Version: )\S+",
    ready=Question(b"GET /health HTTP/1.0\r\n\r\n", rb'"health":\s*"true"'),
    data_mb=1024,  # at most: it takes 128 at first, and its log grows by 64
    refused_without_data=True,
    # At bootstrap each member asks all others, and waits a second for one that is not up yet: so
    # they start one after the other, once all addresses are up.
    gap_ms=150,
    leader=Question(
        b"POST /v3/maintenance/status HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
        rb'"member_id":\s*"(\d+)".*"leader":\s*"\1"',
    ),
    clock=Clock.MONOTONIC,
    tells_time=tells_date("/health"),
    debs=("etcd-server",),
    debs_suite="trixie",  # other suites have 3.5.0 to 3.5.2, which lose data when killed
)

ETCD = offering(
    _ETCD,
    replace(_ETCD, version="3.5", says=r"^3\.5\.", title="etcd 3.5"),
    replace(
        _ETCD,
        version="3.4",
        says=r"^3\.4\.",
        title="etcd 3.4",
        find=_find_3_4,
        suite="bookworm",
        debs_suite="",
        cure=f"name the program of an etcd 3.4 in {VARIABLE}, or use --runtime docker",
    ),
)
