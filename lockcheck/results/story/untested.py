"""What a run without a violation does not show: the faults that were not injected, and what
nothing guarded. And what to do about that."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.check import GUARDS
from lockcheck.history import Terms

USUAL = {
    "pause": "pauses",
    "partition": "partitions",
    "kill": "kills of servers",
    "clock": "clocks that jump",
}
ASKED = {"kill": "kill:server"}
UNGUARDED = "Nothing guards the data: a client that is paused past its lease can still write."


def untested(terms: Terms) -> tuple[tuple[str, str], ...]:
    """Each with the option that tests it. Of a log, nothing is known of that."""
    if not terms.backend:
        return ()
    injected = {fault.partition(":")[0].strip() for fault in terms.faults}
    return tuple(
        (meaning, f"--nemesis {ASKED.get(name, name)}")
        for name, meaning in USUAL.items()
        if name not in injected
    )


def unguarded(terms: Terms) -> str:
    """Of a lock with a lease, or a session, whose holder does not learn of its end in time."""
    at_risk = terms.backend and terms.stores and terms.excludes and terms.guard not in GUARDS
    return UNGUARDED if at_risk else ""


def next_steps(terms: Terms) -> Iterator[str]:
    for what, how in untested(terms)[:1]:
        yield f"Test {what} next: run it again with {how}."
    if unguarded(terms):
        yield "Guard the data: let the storage check each write (--guard fence, or --guard cas)."
