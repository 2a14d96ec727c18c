"""The kinds of server, by name: what a `NodeSpec` names. One file each: where it is found, how it
runs, and how it is asked."""

from __future__ import annotations

from lockcheck.plugins import Registry
from lockcheck.servers import (
    consul,
    etcd,
    mariadb,
    pgbouncer,
    postgres,
    redis,
    redis_replicated,
    redis_sentinel,
    zookeeper,
)
from lockcheck.servers.base import Server

SERVERS = Registry(
    "lockcheck.servers",
    Server,
    (
        redis.REDIS,
        redis_replicated.REDIS_REPLICATED,
        redis_sentinel.REDIS_SENTINEL,
        etcd.ETCD,
        zookeeper.ZOOKEEPER,
        postgres.POSTGRES,
        pgbouncer.PGBOUNCER,
        mariadb.MARIADB,
        consul.CONSUL,
    ),
)

__all__ = ["SERVERS", "Server"]
