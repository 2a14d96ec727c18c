"""How locks on Redis are expected to fare where it is the same for several of them."""

from __future__ import annotations

from dataclasses import replace

from lockcheck.backends.expected import SHORT, Expected, forgotten

QUIET = Expected(nemesis="none", verdict="ok", options=SHORT)
OUTLIVED = Expected(
    nemesis="pause",
    verdict="violation",
    findings=("overlap", "stale-write"),
    blame="holder",
    why="who is paused outlives its lease, and writes on",
)
FENCED = Expected(
    nemesis="pause",
    guard="fence",
    verdict="ok",
    options=SHORT,
    why="the storage refuses what comes with a token of old",
)
FREED = Expected(
    nemesis="kill:holder", verdict="ok", options=SHORT, why="the lease of the dead runs out"
)
TOO_MANY = replace(
    OUTLIVED,
    findings=("overlap",),
    why="who is paused outlives its lease, and others are let in: one too many",
)
CUT_OFF = Expected(
    nemesis="partition:holder",
    verdict="violation",
    findings=("overlap", "stale-write"),
    blame="holder",
    why="a client that does not look at its lease is not told that it was cut off",
)
LOOKS_WHEN_CUT_OFF = Expected(
    nemesis="partition:holder",
    verdict="ok",
    options=("--check-validity", *SHORT),
    why="who looks at its lease stops in time",
)
FENCED_WHEN_CUT_OFF = replace(FENCED, nemesis="partition:holder")
TOLD_WHEN_CUT_OFF = Expected(
    nemesis="partition:holder",
    verdict="ok",
    options=SHORT,
    why="whose renewals are not answered is told before its lease is over",
)


def in_turn(aim: str, forgetting: str, remembering: str) -> tuple[Expected, ...]:
    """Restarts one after the other, without data and with it, while the lock is held."""
    options = ("--ttl", "2s")  # so that the last one is up again long before the lease is over
    forgets = forgotten(f"kill:{aim},no-data,rolling", options, forgetting)
    remembers = Expected(
        nemesis=f"kill:{aim},rolling,gap=1s", verdict="ok", options=options, why=remembering
    )
    return forgets, remembers


WITHOUT_TOKEN = (QUIET, OUTLIVED, FREED)
WITHOUT_STORAGE = (QUIET, TOO_MANY, FREED)
WITH_TOKEN = (QUIET, OUTLIVED, FENCED, FREED)
