"""What is expected of several locks on Redis."""

from __future__ import annotations

from dataclasses import replace

from lockcheck.backends.expected import SHORT, Expected, forgotten, unharmed
from lockcheck.backends.expected_usual import RESTARTS

QUIET = Expected("none", "ok", SHORT)
# A paused client outlives its lease, and then writes.
OUTLIVED = Expected("pause", "violation", findings=("overlap", "stale-write"), blame="holder")
# The storage refuses writes with an old token.
FENCED = Expected("pause", "ok", SHORT, guard="fence")
FREED = Expected("kill:holder", "ok", SHORT)  # the lease of a dead client expires
# A paused client outlives its lease, and others are let in: one too many.
TOO_MANY = replace(OUTLIVED, findings=("overlap",))
# A client that does not check its lease does not notice that it is cut off.
CUT_OFF = Expected(
    "partition:holder", "violation", findings=("overlap", "stale-write"), blame="holder"
)
# A client that checks its lease stops in time.
LOOKS_WHEN_CUT_OFF = Expected("partition:holder", "ok", ("--check-validity", *SHORT))
# Work long enough that each jump of a clock meets a holder and waiting clients.
JUMPS_MEET_HOLDERS = ("--think", "200ms")


def in_turn(aim: str) -> tuple[Expected, ...]:
    """Rolling restarts while the lock is held: servers that lose their data grant it again."""
    options = ("--ttl", "2s")  # so that the last one is up again long before the lease is over
    forgets = forgotten(f"kill:{aim},no-data,rolling", options)
    return forgets, Expected(f"kill:{aim},rolling,gap=1s", "ok", options)


WITHOUT_TOKEN = (QUIET, OUTLIVED, FREED)
# One Redis has each grant on disk before it answers, and comes back with it.
WITHOUT_STORAGE = (QUIET, TOO_MANY, FREED, *unharmed("kill:server"))
WITH_TOKEN = (QUIET, OUTLIVED, FENCED, FREED, *RESTARTS)
