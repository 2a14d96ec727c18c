"""Locks on etcd whose clients are in Go."""

from __future__ import annotations

from lockcheck.checker.finding import Code, Culprit
from lockcheck.yours.museum.exhibit import Exhibit, Whose

GO_MUTEX = {
    "client": "etcd/mutex.go:Plain",
    "servers": "etcd",
    "promises": ("session", "waits", "fair", "token", "silent-release", "ttl-step=1s"),
    "ttl_ms": 2000,
    "think_ms": 500,
    "time_limit_ms": 30_000,
}
GO_DEB = {"golang-etcd-server-dev": "3.4.23"}

EXHIBITS = {
    "etcd-go-waiter": Exhibit(
        library="etcd-go 3.4.23",
        shows="a client whose lease ended while it waited is let in beside the holder",
        settings=GO_MUTEX
        | {
            "clients": 8,  # of which seven wait
            "nemesis": ("pause:client,when=schedule,for=2700ms,gap=300ms",),
        },
        control={"nemesis": ("none",)},
        controls="no fault, so that no lease ends in the queue",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="go.etcd.io/etcd/clientv3/concurrency/mutex.go",
        line="hdr, werr := waitDeletes(ctx, client, m.pfx, m.myRev-1)",
        why="it waits until all keys before its own are gone, and does not look whether its own is "
        "still there: with the lease the key is gone, too",
        word="asked in [#9921](https://github.com/etcd-io/etcd/issues/9921); 3.5 looks at the key "
        "again, and returns `ErrSessionExpired`",
        debs=GO_DEB,
    ),
    "etcd-go-session": Exhibit(
        library="etcd-go 3.4.23",
        shows="a holder that is cut off learns of it up to a second after the next one is let in",
        settings=GO_MUTEX
        | {"nemesis": ("partition:holder,when=acquire",), "clients": 3, "think_ms": 4000},
        control={"nemesis": ("none",), "think_ms": 500},
        controls="no fault",
        findings=(Code.OVERLAP,),
        blame=Culprit.HOLDER,
        whose=Whose.GAP,
        file="go.etcd.io/etcd/clientv3/lease.go",
        line="case <-time.After(time.Second):",
        why="`Session.Done` is closed by a loop that looks once a second whether a lease had no "
        "answer for its TTL, and that counts from when the last answer came",
        word="on knowing that a Mutex is no longer held, "
        "[#6127](https://github.com/etcd-io/etcd/issues/6127): `Done` will work",
        debs=GO_DEB,
    ),
    "etcd-lock-service": Exhibit(
        library="etcd 3.4",
        shows="its lock service grants the lock to a lease that ended in the queue",
        settings={
            "backend": "etcd-3.4-lock-service",  # lockcheck has a lock of that name
            "client": "etcd/service.go:Kept",
            "servers": "etcd=3.4",
            "promises": ("session", "waits", "silent-release", "ttl-step=1s"),
            "clients": 2,
            "think_ms": 3200,  # so that a lease in the queue is over long before its turn
            "time_limit_ms": 45_000,
        },
        control={"servers": "etcd=3.5"},
        controls="etcd 3.5, whose service looks at the key again, and refuses if it is gone",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="go.etcd.io/etcd/etcdserver/api/v3lock/lock.go",
        line="if err = m.Lock(ctx); err != nil {",
        why="it is the Mutex of its Go client, which does not look whether its own key is still "
        "there. The client keeps its lease alive from its turn on, and learns then that it is over",
        word='reported as [#9921](https://github.com/etcd-io/etcd/issues/9921), "Lock response '
        'when lease has expired"',
        debs=GO_DEB,
    ),
}
