"""What a fault did to its nodes, in words: by its effect."""

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


def suffered(fault: FaultSpan) -> str:
    """What its node went through; empty: not known."""
    return _SUFFERED[fault.effect] if fault.effect else ""


def over(fault: FaultSpan) -> str:
    """What has changed now that it is healed."""
    return _OVER[fault.effect] if fault.effect else "all is as before"
