"""The exhibits, by name."""

from __future__ import annotations

from lockcheck.yours.museum.exhibits import (
    etcd,
    redis,
    redis_grants,
    redis_releases,
    sql,
    zookeeper,
)

EXHIBITS = (
    redis.EXHIBITS
    | redis_releases.EXHIBITS
    | redis_grants.EXHIBITS
    | etcd.EXHIBITS
    | zookeeper.EXHIBITS
    | sql.EXHIBITS
)
