"""What is expected of locks when clocks of servers or clients are wrong."""

from __future__ import annotations

from lockcheck.backends.expected import LIMIT, SHORT, Expected, forgotten

# Work long enough that each jump meets a holder and waiting clients.
LONG_WORK = ("--think", "200ms")
# A jump ends all sessions at once, also those in the queue, and clients need time to come back.
LONGER_WORK = ("--think", "800ms", "--ttl", "2s")
BY_THE_WALL = ("--check-validity", "--lease-clock", "wall")

# Keys expire by the server's wall clock, so a jump ends every lease.
SERVER_JUMPS = forgotten("clock:jump=+30s", LONG_WORK)
# Three of five servers forget their grants.
MAJORITY_JUMPS = forgotten("clock:majority,jump=+30s", LONG_WORK)
# The other three of five still know the holder.
MINORITY_JUMPS = Expected("clock:minority,jump=+30s,when=schedule", "ok", SHORT)
# Only the leader times sessions, by its monotonic clock.
LEADER_JUMPS = forgotten("clock:leader,jump=+30s,for=1s,gap=1s", LONGER_WORK)
# A client that is notified at once of the end of its session does no harm, unless it is about to
# write. It is kept before its write for a quarter of its TTL at most.
LEADER_JUMPS_BEFORE_A_WRITE = forgotten(
    "clock:leader,jump=+30s,for=1s,gap=1s,when=write", ("--ttl", "4s")
)
# No session ends by a follower's clock.
FOLLOWER_JUMPS = Expected("clock:follower,jump=+30s", "ok", SHORT)
# Leases go by the monotonic clock.
LEADER_JUMPS_BY_THE_WALL = Expected("clock:leader,jump=+30s,wall", "ok", SHORT)
# By its own clock half of the lease is left when it is over.
CLIENT_IS_LATE = Expected(
    "clock:client,for=5s,drift=0.5",
    "violation",
    (*BY_THE_WALL, "--think", "1500ms", "--clients", "2", LIMIT, "30s"),
    findings=("overlap",),
    blame="holder",
)
# The lock's allowance for drifting clocks covers it.
CLIENT_IS_HARDLY_LATE = Expected("clock:holder,drift=0.995", "ok", (*BY_THE_WALL, *SHORT))
