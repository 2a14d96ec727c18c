"""Locks on ZooKeeper whose clients are in Go."""

from __future__ import annotations

from lockcheck.checker.finding import Code, Culprit
from lockcheck.yours.museum.exhibit import Exhibit, Whose

EXHIBITS = {
    "libkv": Exhibit(
        library="libkv 0.2.1 (Go)",
        shows="the channel that is closed when the lock is lost is never closed on ZooKeeper",
        settings={
            "client": "zookeeper/libkv.go:Heard",
            "servers": "zookeeper",
            "promises": ("session", "waits", "fair"),
            "clients": 3,
            "nemesis": ("partition:holder,gap=2s",),
            "ttl_ms": 2000,
            "think_ms": 4000,
            "time_limit_ms": 20_000,
        },
        control={"nemesis": ("none",), "think_ms": 500},
        controls="no fault",
        findings=(Code.OVERLAP,),
        blame=Culprit.HOLDER,
        whose=Whose.BUG,
        file="github.com/docker/libkv/store/zookeeper/zookeeper.go",
        line="return make(chan struct{}), err",
        why="no other code has that channel. The comment above says that it is closed if the lock "
        "is lost",
        word="[#156](https://github.com/docker/libkv/pull/156) closes it, and has been open since "
        "2017; by this bug [two managers of a swarm]"
        "(https://github.com/docker-archive/classicswarm/issues/2654) were elected",
        debs={"golang-github-docker-libkv-dev": "0.2.1"},
    ),
}
