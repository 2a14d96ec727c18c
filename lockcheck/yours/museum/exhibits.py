"""The exhibits, by name."""

from __future__ import annotations

from lockcheck.checker.finding import Code
from lockcheck.yours.museum.exhibit import Exhibit, Whose

SHERLOCK = {
    "client": "sherlock_lock.py:Expiring",
    "requirements": ("sherlock==0.4.1", "redis==4.6.0"),
}

EXHIBITS = {
    "sherlock-renew": Exhibit(
        library="sherlock 0.4.0",
        shows="renewing the lock releases it, and answers that it was renewed",
        settings={
            "client": "sherlock_lock.py:Renewed",
            "requirements": ("sherlock==0.4.0", "redis==4.6.0"),
            "promises": ("renews",),
            "think_ms": 600,
        },
        control={"requirements": SHERLOCK["requirements"]},
        controls="sherlock 0.4.1, where `_renew` calls the script that renews",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="sherlock/lock.py",
        line="self._release_func(keys=[self._key_name], args=[self._owner, self.expire])",
        why="`_renew` calls the script of `_release`, whose answer is 1, too",
        word="0.4.1 changes that line",
    ),
    "sherlock-forever": Exhibit(
        library="sherlock 0.4.1",
        shows="with `expire=None` there is no lock at all: every client is let in",
        settings={**SHERLOCK, "client": "sherlock_lock.py:Forever"},
        control=SHERLOCK,
        controls="`expire` is the lease",
        findings=(Code.OVERLAP,),
        whose=Whose.BUG,
        file="sherlock/lock.py",
        line="if result == 1 and ARGV[2] ~= -1 then",
        why="in Lua the text `-1` is not the number -1, so the script sends `EXPIRE key -1`, which "
        "deletes the key that it has just set",
        word='its docstring: "If explicitly set to `None`, lock will not expire"',
    ),
}
