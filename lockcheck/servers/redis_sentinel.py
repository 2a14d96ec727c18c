"""Redis Sentinel: monitors a primary, and promotes a replica when a quorum finds it down."""

from __future__ import annotations

from dataclasses import replace

from lockcheck.servers.base import Here, Question, the_same_as
from lockcheck.servers.redis import REDIS, REDIS_PORT
from lockcheck.servers.redis_replicated import REDIS_REPLICATED

SENTINEL_PORT = 26379
WATCHED = "lock"  # the name of the monitored primary
SETTINGS = "sentinel.conf"
MONITORING = {  # the settings for a primary; two failovers are at least two timeouts apart
    "down-after-milliseconds": "500",
    "failover-timeout": "1000",
    "parallel-syncs": "2",
}
# How often Sentinels send INFO, PING and announce themselves to each other. With the defaults of
# 10, 1 and 2 s they need 2 s to find each other and 8 s to make a replica of a primary that has
# restarted; and they would take a promotion, which closes their connections to the new primary, for
# its failure. There is no setting for it, only this command: so it is sent with the question
# whether a Sentinel is ready, which each is asked after each start.
HURRY = b"SENTINEL DEBUG PING-PERIOD 100 INFO-PERIOD 200 PUBLISH-PERIOD 100\r\n"


def _files(here: Here) -> dict[str, str]:
    primary = here.servers[REDIS_REPLICATED.name][0]
    quorum = len(here.members) // 2 + 1
    lines = (
        *(f"port {SENTINEL_PORT}", "bind 0.0.0.0", "protected-mode no", f"dir {here.data}"),
        "sentinel resolve-hostnames yes",
        f"sentinel monitor {WATCHED} {primary} {REDIS_PORT} {quorum}",
        *(f"sentinel {name} {WATCHED} {value}" for name, value in MONITORING.items()),
    )
    return {SETTINGS: "\n".join(lines) + "\n"}


def _counts(field: str, number: int) -> bytes:
    return rf"{field}\r\n\$\d+\r\n{number}\r\n".encode()


REDIS_SENTINEL = the_same_as(
    REDIS,
    lambda redis: replace(
        redis,
        name="redis-sentinel",
        beside=REDIS_REPLICATED.name,
        title="Redis Sentinel",
        port=SENTINEL_PORT,
        command=lambda here: (*here.program, f"{here.data}/{SETTINGS}", "--sentinel"),
        files=_files,
        data_mb=16,  # for its configuration file, which it keeps rewriting
        # It knows all the others of the cluster: two replicas and two Sentinels.
        ready=Question(
            HURRY + f"SENTINEL MASTER {WATCHED}\r\n".encode(),
            _counts("num-slaves", 2) + b".*" + _counts("num-other-sentinels", 2),
        ),
    ),
)
