"""The kinds of server, by name. One file each: where it is found, how it runs, how it is asked."""

from __future__ import annotations

from lockcheck.plugins import Registry
from lockcheck.servers.base import Server

SERVERS = Registry(
    "lockcheck.servers",
    Server,
    __name__,
    {
        "redis": "redis:REDIS",
        "redis-replicated": "redis_replicated:REDIS_REPLICATED",
        "redis-sentinel": "redis_sentinel:REDIS_SENTINEL",
        "etcd": "etcd:ETCD",
        "zookeeper": "zookeeper:ZOOKEEPER",
        "postgres": "postgres:POSTGRES",
        "pgbouncer": "pgbouncer:PGBOUNCER",
        "mariadb": "mariadb:MARIADB",
        "consul": "consul:CONSUL",
    },
)

__all__ = ["SERVERS", "Server"]
