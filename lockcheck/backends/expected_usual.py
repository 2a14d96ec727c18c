"""How locks of a kind usually fare, whatever server they live on."""

from __future__ import annotations

from lockcheck.backends.expected import SHORT, Expected

# Of a lock on several members, of which most go on.
MEMBERS_KILLED = (
    Expected("kill:server", "ok", SHORT),  # two of three members go on
    # What was granted is on a majority, and the next leader has it.
    Expected("kill:leader", "ok", SHORT),
    # One member after the other is restarted, and each comes back with its data.
    Expected("kill:all,rolling", "ok", SHORT),
)

# Of a lock whose holder keeps a session alive, has a token, and is told when it has lost it.
SESSION = (
    Expected("none", "ok", SHORT),
    # Who stands still outlives its session, and writes on before it learns of it.
    Expected("pause", "violation", findings=("overlap", "stale-write"), blame="holder"),
    # The storage refuses the tokens of earlier holders.
    Expected("pause", "ok", SHORT, guard="fence"),
    # Who is cut off is told by its own clock, before anybody else is let in.
    Expected("partition:holder", "ok", SHORT),
    Expected("kill:holder", "ok", SHORT),  # free again when its session has run out
)
KEPT_ALIVE = (*SESSION, *MEMBERS_KILLED)

# Of a lock whose servers write down what they grant before they answer.
DISK_FAILS = (
    Expected("disk", "ok", SHORT),  # what cannot be written down is not granted
    # Who cannot write grants nothing, and comes back with what it had granted.
    Expected("disk:read-only", "ok", SHORT),
)

# Of a lock on a majority of several servers, whatever lies between them.
HALVED = Expected("partition:halves", "ok")  # a minority grants nothing and forgets nothing
# Any two majorities have a server in common.
IN_A_RING = Expected("partition:majorities-ring", "ok")
MEMBERS_CUT = (
    # Who leads a minority grants nothing, and the others elect one of theirs.
    Expected("partition:leader", "ok"),
    HALVED,
    IN_A_RING,
)
