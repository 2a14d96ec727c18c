"""Consul: servers that elect a leader, with sessions and keys behind an HTTP API."""

from __future__ import annotations

import json
from uuid import NAMESPACE_DNS, uuid5

from lockcheck.servers.base import Clock, Here, Question, Server, found_by, in_debs
from lockcheck.servers.wire.http_date import tells_date

CONSUL_PORT = 8500
CONFIGURATION = "consul.json"
OFF = -1


def _files(here: Here) -> dict[str, str]:
    settings = {
        "server": True,
        "node_name": here.name,
        # Always the same: a member that restarts without its data may keep its name only so.
        "node_id": str(uuid5(NAMESPACE_DNS, here.name)),
        "data_dir": f"{here.data}/member",
        "bind_addr": '{{ GetInterfaceIP "eth0" }}',  # it takes no name, and only names are known
        "client_addr": "0.0.0.0",  # noqa: S104 - in the node's own network namespace
        "bootstrap_expect": len(here.members),
        "retry_join": list(here.members),
        "retry_interval": "100ms",
        "leave_on_terminate": False,
        "skip_leave_on_interrupt": True,
        "session_ttl_min": "100ms",  # usually ten seconds
        # The tightest timing. By default a request without a leader is held for seven seconds, so
        # its client would time out and not know the outcome.
        "performance": {"raft_multiplier": 1, "rpc_hold_timeout": "300ms"},
        "autopilot": {"cleanup_dead_servers": False},  # the three voters stay voters
        "gossip_lan": {"gossip_interval": "50ms", "probe_interval": "500ms"},
        "ports": {"dns": OFF, "grpc": OFF, "serf_wan": OFF},
        "connect": {"enabled": False},
        "disable_update_check": True,
        "log_level": "warn",
    }
    return {CONFIGURATION: json.dumps(settings, indent=2)}


CONSUL = Server(
    name="consul",
    title="Consul",
    port=CONSUL_PORT,
    find=found_by(
        "LOCKCHECK_CONSUL", "consul", otherwise=lambda: in_debs("consul", "usr/bin/consul")
    ),
    cure="put consul on PATH, or name it in LOCKCHECK_CONSUL",
    image="consul",
    suite="bullseye",
    image_program=("consul",),
    command=lambda here: (*here.program, "agent", "-config-file", f"{here.data}/{CONFIGURATION}"),
    version_pattern=r"(?<=Consul v)\S+",
    # There is a leader, and this member knows a node: sessions are bound to nodes.
    ready=Question(
        b"GET /v1/health/state/passing?stale HTTP/1.0\r\n\r\n",
        rb"(?i)X-Consul-Knownleader: true.*serfHealth",
    ),
    files=_files,
    data_mb=1024,  # at most: it occupies what it has written
    leader=Question(b"GET /v1/agent/self HTTP/1.0\r\n\r\n", rb'"raft":.*"state":\s*"Leader"'),
    clock=Clock.MONOTONIC,
    tells_time=tells_date("/v1/status/leader"),
    debs=("consul",),
)
