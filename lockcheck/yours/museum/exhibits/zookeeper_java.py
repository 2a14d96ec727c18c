"""Locks on ZooKeeper whose clients are in Java."""

from __future__ import annotations

from lockcheck.checker.finding import Code, Culprit
from lockcheck.yours.museum.exhibit import Exhibit, Whose

EXHIBITS = {
    "curator": Exhibit(
        library="curator 5.4.0 (Java)",
        shows="a holder that is cut off goes on when its session is over",
        settings={
            "client": "zookeeper/CuratorMutex.java:Unheard",
            "servers": "zookeeper",
            "promises": ("session", "waits", "fair", "silent-release"),
            "clients": 3,
            "nemesis": ("partition:holder,gap=2s",),
            "ttl_ms": 1000,
            "think_ms": 1500,
            "time_limit_ms": 25_000,
        },
        control={"client": "zookeeper/CuratorMutex.java:Heard"},
        controls="with such a listener, by which the holder learns of it in time",
        findings=(Code.OVERLAP,),
        blame=Culprit.HOLDER,
        whose=Whose.GAP,
        file="curator-recipes.jar!org/apache/curator/framework/recipes/locks/InterProcessMutex",
        line="acquire",
        why="the mutex watches no connection once it is acquired. A listener of the client hears "
        "of a lost session, if one is added",
        word='its documentation: "It is strongly recommended that you add a '
        '`ConnectionStateListener`"; asked in '
        "[CURATOR-206](https://github.com/apache/curator/issues/727)",
        debs={"libcurator-recipes-java": "5.4.0", "libjackson2-databind-java": ""},
    ),
}
