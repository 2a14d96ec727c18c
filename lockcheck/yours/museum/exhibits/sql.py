"""Locks whose servers are databases."""

from __future__ import annotations

from lockcheck.checker.finding import Code, Culprit
from lockcheck.yours.museum.exhibit import Exhibit, Whose

EXHIBITS = {
    "tooz-postgresql": Exhibit(
        library="tooz 9.1.0",
        shows="who holds the lock of one name keeps others from that of another one",
        settings={
            "client": "sql/tooz_lock.py:OfTwoVolumes",
            "requirements": ("tooz==9.1.0", "psycopg2-binary==2.9.10"),
            "servers": "postgres",
            "promises": ("session", "ends-with=connection"),
            "keys": 2,
            "ttl_ms": 500,
            "think_ms": 3000,
            "time_limit_ms": 20_000,
        },
        control={"client": "sql/tooz_lock.py:OfTwoOthers"},
        controls="two names with different digests",
        findings=(Code.DENIED,),
        whose=Whose.BUG,
        file="tooz/drivers/pgsql.py",
        line="self.key = h.digest()[0:2]",
        why="of the digest of a name two bytes are left. Among 300 names, two have the same with a "
        "probability of one half",
    ),
    "pals": Exhibit(
        library="PALs 0.4.0",
        shows="a holder whose server was restarted goes on without its lock",
        settings={
            "client": "sql/pals_lock.py:Waiting",
            "requirements": ("PALs==0.4.0", "SQLAlchemy==2.0.43", "psycopg2-binary==2.9.10"),
            "servers": "postgres",
            "promises": ("session", "waits", "ends-with=server"),
            "nemesis": ("kill:server",),
            "think_ms": 3000,
            "time_limit_ms": 20_000,
        },
        control={"nemesis": ("none",), "think_ms": 200},
        controls="no fault",
        findings=(Code.OVERLAP,),
        blame=Culprit.HOLDER,
        whose=Whose.GAP,
        file="pals/core.py",
        line="self.conn = self.engine.connect()",
        why="the lock ends with that connection, at which nothing looks before the release",
    ),
}
