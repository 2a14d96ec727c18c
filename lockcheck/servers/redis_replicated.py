"""A Redis primary and its replicas: the first server is the primary at the start, and Sentinel may
promote another. Each rewrites its configuration file when its role changes, so it restarts in that
role; a former primary is one until Sentinel, a moment later, makes it a replica."""

from __future__ import annotations

from dataclasses import replace

from lockcheck.servers.base import Here, Question, the_same_as
from lockcheck.servers.redis import REDIS, REDIS_PORT, arguments

SETTINGS = "redis.conf"
# A replica asks for the data as soon as it has started; if there is no primary yet, it asks again a
# second later. So the primary gets a head start.
HEAD_START_MS = 50


def _files(here: Here) -> dict[str, str]:
    primary = here.members[0]
    lines = ["repl-diskless-sync-delay 0", "repl-diskless-load on-empty-db"]
    lines += [f"replicaof {primary} {REDIS_PORT}"] if here.name != primary else []
    return {SETTINGS: "\n".join(lines) + "\n"}


REDIS_REPLICATED = the_same_as(
    REDIS,
    lambda redis: replace(
        redis,
        name="redis-replicated",
        title="Redis, or Valkey, with replicas",
        command=lambda here: (*here.program, f"{here.data}/{SETTINGS}", *arguments(here.data)),
        files=_files,
        gap_ms=HEAD_START_MS,
        # A replica is ready once it has the primary's data.
        ready=Question(b"INFO replication\r\n", rb"role:master|master_link_status:up"),
        # A former primary that has restarted and still has that role has no replicas.
        leader=Question(b"INFO replication\r\n", rb"role:master\s+connected_slaves:[1-9]"),
    ),
)
