"""How locks are expected to fare when clocks are wrong: those of servers, and those of clients."""

from __future__ import annotations

from lockcheck.backends.expected import LIMIT, SHORT, Expected, forgotten

# Long enough under the lock that each jump meets a holder, and others who wait for it.
LONG_WORK = ("--think", "200ms")
# Of sessions all are gone at once, those in the queue, too: until these are back they need longer.
LONGER_WORK = ("--think", "800ms", "--ttl", "2s")
BY_THE_WALL = ("--check-validity", "--lease-clock", "wall")

SERVER_JUMPS = forgotten(
    "clock:jump=+30s",
    LONG_WORK,
    "keys expire by the server's wall clock: what is held runs out with the jump",
)
MAJORITY_JUMPS = forgotten(
    "clock:majority,jump=+30s",
    LONG_WORK,
    "three of five servers forget whom they have let in",
)
MINORITY_JUMPS = Expected(
    nemesis="clock:minority,jump=+30s,when=schedule",
    verdict="ok",
    options=SHORT,
    why="the other three of five still know who holds it",
)
LEADER_JUMPS = forgotten(
    "clock:leader,jump=+30s,for=1s,gap=1s",
    LONGER_WORK,
    "the leader alone counts how long sessions last, by its monotonic clock",
)
# Who is told at once that its session is over does no harm, unless it is just about to write.
LEADER_JUMPS_BEFORE_A_WRITE = forgotten(
    "clock:leader,jump=+30s,for=1s,gap=1s,when=write",
    ("--ttl", "4s"),  # who stands before its write does so for a quarter of it
    "the leader ends a session, and what its client was about to write comes after others'",
)
FOLLOWER_JUMPS = Expected(
    nemesis="clock:follower,jump=+30s",
    verdict="ok",
    options=SHORT,
    why="no session ends by a follower's clock",
)
LEADER_JUMPS_BY_THE_WALL = Expected(
    nemesis="clock:leader,jump=+30s,wall",
    verdict="ok",
    options=SHORT,
    why="leases go by the monotonic clock",
)
CLIENT_IS_LATE = Expected(
    nemesis="clock:client,for=5s,drift=0.5",
    verdict="violation",
    findings=("overlap",),
    blame="holder",
    options=(*BY_THE_WALL, "--think", "1500ms", "--clients", "2", LIMIT, "30s"),
    why="by its own clock half of the lease is left when it is over",
)
CLIENT_IS_HARDLY_LATE = Expected(
    nemesis="clock:holder,drift=0.995",
    verdict="ok",
    options=(*BY_THE_WALL, *SHORT),
    why="the lock's allowance for drifting clocks covers it",
)
