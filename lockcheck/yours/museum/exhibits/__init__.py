"""The exhibits, by name."""

from __future__ import annotations

from lockcheck.yours.museum.exhibits import etcd, redis, zookeeper

EXHIBITS = redis.EXHIBITS | etcd.EXHIBITS | zookeeper.EXHIBITS
