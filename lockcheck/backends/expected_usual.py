"""What is usually expected of a kind of lock, on any server."""

from __future__ import annotations

from lockcheck.backends.expected import LIMIT, SHORT, Expected, unharmed

# Of a lock on several members, most of which go on.
# What was granted is on a majority: the next leader has it, and each member comes back with it.
MEMBERS_KILLED = unharmed("kill:server", "kill:leader", "kill:all,rolling")

# Of a lock with tokens whose holder keeps a session alive and is notified of its loss.
SESSION = (
    Expected("none", "ok", SHORT),
    # A stopped client outlives its session, and writes before it learns of that.
    Expected("pause", "violation", findings=("overlap", "stale-write"), blame="holder"),
    # The storage refuses the tokens of earlier holders.
    Expected("pause", "ok", SHORT, guard="fence"),
    # A client that is cut off stops by its own clock, before another one is let in.
    Expected("partition:holder", "ok", SHORT),
    Expected("kill:holder", "ok", SHORT),  # free again when its session has run out
)
KEPT_ALIVE = (*SESSION, *MEMBERS_KILLED)

# Of a lock whose servers write each grant to disk before they answer.
# One that cannot write grants nothing, and comes back with what it had granted.
DISK_FAILS = unharmed("disk", "disk:read-only")

# Of a lock on a single server, mostly held when that goes down, which is up again long before the
# lease is over. What is stored comes back with it, and a client whose session ended with it learns
# of that before another one is let in.
QUICK_RESTART = Expected(
    "kill:server,restart=300ms,gap=3s", "ok", ("--ttl", "2s", "--think", "500ms", LIMIT, "15s")
)
# `kill:server` lasts until the lease has run out.
RESTARTS = (*unharmed("kill:server"), QUICK_RESTART)

# Of a lock on a majority of several servers, however they are partitioned.
MAJORITY_CUT = (
    Expected("partition:halves", "ok"),  # a minority grants nothing and forgets nothing
    Expected("partition:majorities-ring", "ok"),  # any two majorities have a server in common
)
# The leader of a minority grants nothing, and the others elect another one.
MEMBERS_CUT = (Expected("partition:leader", "ok"), *MAJORITY_CUT)

# No session ends by a follower's clock.
FOLLOWER_JUMPS = Expected("clock:follower,jump=+30s", "ok", SHORT)
