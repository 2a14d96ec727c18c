"""The locks under test, by name: what `--backend` takes and `lockcheck list` shows."""

from __future__ import annotations

from lockcheck.backends import consul
from lockcheck.backends.base import Backend
from lockcheck.backends.etcd import etcd, etcd_lock_service, etcd_txn
from lockcheck.backends.redis import (
    redis_failover,
    redis_fair,
    redis_naive,
    redis_reentrant,
    redis_renewed,
    redis_rw,
    redis_semaphore,
    redis_single,
    redlock,
)
from lockcheck.backends.sql import (
    idempotent,
    mariadb_get_lock,
    optimistic,
    postgres_advisory,
    postgres_advisory_pooled,
    postgres_row,
)
from lockcheck.backends.zookeeper import zookeeper, zookeeper_herd, zookeeper_rw
from lockcheck.plugins import Registry

BACKENDS = Registry(
    "lockcheck.backends",
    Backend,
    (
        redis_naive.BACKEND,
        redis_single.REDIS,
        redis_single.REDIS_FENCED,
        redis_renewed.BACKEND,
        redis_fair.BACKEND,
        redis_rw.BACKEND,
        redis_reentrant.BACKEND,
        redis_semaphore.BACKEND,
        redis_failover.REDIS_FAILOVER,
        redis_failover.REDIS_WAIT,
        redlock.BACKEND,
        redlock.REDLOCK_3,
        etcd.BACKEND,
        etcd_lock_service.BACKEND,
        etcd_txn.BACKEND,
        zookeeper.BACKEND,
        zookeeper_herd.BACKEND,
        zookeeper_rw.BACKEND,
        postgres_advisory.BACKEND,
        postgres_advisory_pooled.BACKEND,
        postgres_row.BACKEND,
        optimistic.BACKEND,
        idempotent.BACKEND,
        mariadb_get_lock.BACKEND,
        consul.BACKEND,
    ),
)

__all__ = ["BACKENDS", "Backend"]
