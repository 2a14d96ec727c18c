"""Fills in what histories of older runs or other tools leave out, from names and words."""

from __future__ import annotations

import re

import msgspec

from lockcheck.history.event import Effect, Refusal, Terms

# Words in the names of faults. If several match, the first effect counts: a client that may have
# been stopped is not blamed.
_WORDS = {
    Effect.STOPS: {"pause", "stop", "sigstop", "suspend", "freeze", "hang", "stall"},
    Effect.ENDS: {
        *("kill", "sigkill", "crash", "restart", "reboot", "shutdown", "terminate"),
        *("amnesia", "wipe", "failover"),
    },
    Effect.CUTS: {
        *("partition", "cut", "split", "isolate", "disconnect", "unplug"),
        *("loss", "drop", "blackhole"),
    },
    Effect.SKEWS: {"clock", "skew", "drift", "faketime"},
    Effect.SLOWS: {"slow", "delay", "latency", "jitter", "throttle", "bandwidth"},
    Effect.STARVES: {"disk", "enospc", "erofs"},
}
_AT_HOLDERS = ":holder"
# What a lock says that refuses because it is held, and what one says that could not be reached.
_HELD = re.compile(r"(?i)\b(held|locked|taken|busy|owned|queued?|exists|waited too long)\b")
_NO_ANSWER = re.compile(r"(?i)connect|reach|reset|refused|quorum|unavailable")
_STORED = "register"
_WITHOUT_STORAGE = "mutex"


def effect_of_name(name: str) -> Effect | None:
    """The effect that the fault's name suggests; None: unknown, so it may have done anything."""
    words = set(re.split(r"[^a-z]+", name.lower()))
    return next((effect for effect, known in _WORDS.items() if words & known), None)


def refusal_in_words(error: str) -> Refusal | None:
    """Of an acquire that failed without a code; without words it is a plain no. None: unknown."""
    held = _HELD.search(error) is not None and _NO_ANSWER.search(error) is None
    return Refusal.HELD if held or not error else None


def says_blind(value: object) -> bool:
    """Of the value of a release: it did not check whose lock it removed."""
    return isinstance(value, dict) and value.get("blind") is True


def saying_blind(value: object) -> dict[str, object]:
    """The value of such a release in formats that have no field for it."""
    return {**(value if isinstance(value, dict) else {}), "blind": True}


def completed(terms: Terms) -> Terms:
    """The terms with what the names of workload and faults imply in older runs."""
    aimed = tuple(asked for asked in terms.faults if asked.endswith(_AT_HOLDERS))
    return msgspec.structs.replace(
        terms,
        stores=terms.stores or (terms.workload == _STORED and not terms.keeps_data),
        guard="none" if terms.workload == _WITHOUT_STORAGE else terms.guard,
        at_holders=terms.at_holders or aimed,
    )
