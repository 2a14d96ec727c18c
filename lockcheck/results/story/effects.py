"""What a fault did to its nodes, in words, and what would help against that: by its effect."""

from __future__ import annotations

from lockcheck.history import Effect, FaultSpan

_SUFFERED = {
    Effect.STOPS: "it was paused",
    Effect.ENDS: "its process was ended",
    Effect.CUTS: "it was cut off",
    Effect.SKEWS: "its clock was wrong",
    Effect.SLOWS: "it was slowed down",
    Effect.STARVES: "its disk took no more writes",
}
_OVER = {
    Effect.STOPS: "it runs again",
    Effect.ENDS: "it is there again",
    Effect.CUTS: "it can be reached again",
    Effect.SKEWS: "its clock is right again",
    Effect.SLOWS: "it is as fast as before",
    Effect.STARVES: "its disk takes writes again",
}
_SERVICE_CURES = {
    Effect.SKEWS: (
        "Leases must not hang on a clock that can jump: slew instead of stepping it, and "
        "choose a service that counts leases by consensus or by a monotonic clock."
    ),
    Effect.ENDS: (
        "A server must not come back without the locks that it granted: persist each grant before "
        "it is answered, or keep a restarted server out for longer than the longest lease. And a "
        "grant must be on a majority before it is answered: asynchronous replication forgets locks "
        "at failover."
    ),
    Effect.CUTS: (
        "A server cut off from the majority must not grant or forget locks: choose a service "
        "with consensus, and check that its quorum is configured."
    ),
    Effect.STARVES: (
        "A server that cannot write down what it grants must not grant it: choose a service that "
        "answers after the write, and ends, or refuses, where that fails."
    ),
}
# Of a holder that outlived its lease.
_HOLDER_CURES = {
    Effect.STOPS: (
        "No lock service can prevent this: a client that does not run cannot notice that its lease "
        "has run out. What helps is {guard}. A longer lease only makes it rarer."
    ),
    Effect.ENDS: (
        "No lock service can prevent this: what a client sent before its end may still arrive when "
        "its lease has run out. What helps is {guard}. A longer lease only makes it rarer."
    ),
    Effect.CUTS: (
        "The client ran all the while, so it could have known, although nobody could tell it: it "
        "must count the validity of its lease by its own monotonic clock, from before it asked, "
        "renew in good time, and stop when the lease is over and no renewal has been answered. "
        "Against what is under way by then there is {guard}."
    ),
    Effect.SKEWS: (
        "The client ran, by a clock that was wrong: it must count the validity of its lease by a "
        "monotonic clock, which nobody sets, from before it asked. Whatever the clocks say, what "
        "helps is {guard}."
    ),
    Effect.SLOWS: (
        "The client ran, only slower: it must look at its own monotonic clock before each step, "
        "and stop when the rest of its lease is too short for it. A longer lease, or one renewed "
        "meanwhile, makes it rarer. What helps is {guard}."
    ),
    Effect.STARVES: (
        "Where its own disk takes no more writes a client may hang, or end, in the middle of its "
        "work, and go on when its lease has run out. What helps is {guard}."
    ),
}
_ANY_HOLDER = (
    "No lock service can prevent this: it cannot stop a client whose lease has run out. What "
    "helps is {guard}. A longer lease only makes it rarer."
)


def suffered(fault: FaultSpan) -> str:
    """What its node went through; empty: nobody knows."""
    return _SUFFERED[fault.effect] if fault.effect else ""


def over(fault: FaultSpan) -> str:
    """What has changed now that it is healed."""
    return _OVER[fault.effect] if fault.effect else "all is as before"


def service_cure(fault: FaultSpan | None) -> str:
    """What makes a service survive it; empty: nothing in particular."""
    return _SERVICE_CURES.get(fault.effect, "") if fault and fault.effect else ""


def holder_cure(fault: FaultSpan, guard: str) -> str:
    """What keeps a holder from outliving its lease under it."""
    cure = _HOLDER_CURES[fault.effect] if fault.effect else _ANY_HOLDER
    return cure.format(guard=guard)
