"""How locks of a kind usually fare, whatever server they live on."""

from __future__ import annotations

from lockcheck.backends.expected import SHORT, Expected

# Of a lock whose holder keeps a session alive, has a token, and is told when it has lost it.
KEPT_ALIVE = (
    Expected(nemesis="none", verdict="ok", options=SHORT),
    Expected(
        nemesis="pause",
        verdict="violation",
        findings=("overlap", "stale-write"),
        blame="holder",
        why="who stands still outlives its session, and writes on before it gets to hear of it",
    ),
    Expected(
        nemesis="pause",
        verdict="ok",
        guard="fence",
        options=SHORT,
        why="the storage refuses the tokens of earlier holders",
    ),
    Expected(
        nemesis="partition:holder",
        verdict="ok",
        options=SHORT,
        why="who is cut off is told by its own clock, before anybody else is let in",
    ),
    Expected(
        nemesis="kill:holder",
        verdict="ok",
        options=SHORT,
        why="free again when its session has run out",
    ),
    Expected(
        nemesis="kill:server",
        verdict="ok",
        options=SHORT,
        why="two of three members go on",
    ),
    Expected(
        nemesis="kill:leader",
        verdict="ok",
        options=SHORT,
        why="what was granted is on a majority, and the next leader has it",
    ),
    Expected(
        nemesis="kill:all,rolling",
        verdict="ok",
        options=SHORT,
        why="one member after the other is restarted, and each comes back with its data",
    ),
)

# Of a lock whose servers write down what they grant before they answer.
DISK_FAILS = (
    Expected(
        nemesis="disk",
        verdict="ok",
        options=SHORT,
        why="what cannot be written down is not granted",
    ),
    Expected(
        nemesis="disk:read-only",
        verdict="ok",
        options=SHORT,
        why="who cannot write grants nothing, and comes back with what it had granted",
    ),
)

# Of a lock on a majority of several servers, whatever lies between them.
HALVED = Expected(
    nemesis="partition:halves",
    verdict="ok",
    why="a minority grants nothing and forgets nothing",
)
IN_A_RING = Expected(
    nemesis="partition:majorities-ring",
    verdict="ok",
    why="any two majorities have a server in common",
)
MEMBERS_CUT = (
    Expected(
        nemesis="partition:leader",
        verdict="ok",
        why="who leads a minority grants nothing, and the others elect one of theirs",
    ),
    HALVED,
    IN_A_RING,
)
