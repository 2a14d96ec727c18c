"""The exhibits, by name: a file for each kind of server and, but for Python, language."""

from __future__ import annotations

from lockcheck.yours.museum.exhibits import (
    etcd,
    etcd_go,
    redis,
    redis_grants,
    redis_releases,
    redis_rust,
    sql,
    sql_php,
    zookeeper,
    zookeeper_go,
    zookeeper_java,
    zookeeper_rust,
)

EXHIBITS = (
    redis.EXHIBITS
    | redis_releases.EXHIBITS
    | redis_grants.EXHIBITS
    | redis_rust.EXHIBITS
    | etcd.EXHIBITS
    | etcd_go.EXHIBITS
    | zookeeper.EXHIBITS
    | zookeeper_go.EXHIBITS
    | zookeeper_java.EXHIBITS
    | zookeeper_rust.EXHIBITS
    | sql.EXHIBITS
    | sql_php.EXHIBITS
)
