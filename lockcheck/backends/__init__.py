"""The locks under test, by name: what `--backend` takes and `lockcheck list` shows."""

from __future__ import annotations

from lockcheck.backends.base import Backend
from lockcheck.plugins import Registry

BACKENDS = Registry(
    "lockcheck.backends",
    Backend,
    __name__,
    {
        "redis-naive": "redis.redis_naive:BACKEND",
        "redis": "redis.redis_single:REDIS",
        "redis-fenced": "redis.redis_single:REDIS_FENCED",
        "redis-renewed": "redis.redis_renewed:BACKEND",
        "redis-fair": "redis.redis_fair:BACKEND",
        "redis-rw": "redis.redis_rw:BACKEND",
        "redis-reentrant": "redis.redis_reentrant:BACKEND",
        "redis-semaphore": "redis.redis_semaphore:BACKEND",
        "redis-failover": "redis.redis_failover:REDIS_FAILOVER",
        "redis-wait": "redis.redis_failover:REDIS_WAIT",
        "redlock": "redis.redlock:BACKEND",
        "redlock-3": "redis.redlock:REDLOCK_3",
        "etcd": "etcd.etcd:BACKEND",
        "etcd-lock-service": "etcd.etcd_lock_service:BACKEND",
        "etcd-txn": "etcd.etcd_txn:BACKEND",
        "zookeeper": "zookeeper.zookeeper:BACKEND",
        "zookeeper-herd": "zookeeper.zookeeper_herd:BACKEND",
        "zookeeper-rw": "zookeeper.zookeeper_rw:BACKEND",
        "postgres-advisory": "sql.postgres_advisory:BACKEND",
        "postgres-advisory-pooled": "sql.postgres_advisory_pooled:BACKEND",
        "postgres-row": "sql.postgres_row:BACKEND",
        "optimistic": "sql.optimistic:BACKEND",
        "idempotent": "sql.idempotent:BACKEND",
        "mariadb-get-lock": "sql.mariadb_get_lock:BACKEND",
        "consul": "consul:BACKEND",
    },
)

__all__ = ["BACKENDS", "Backend"]
