"""Times and values in a judge's sentences, and what would have had to be different."""

from __future__ import annotations

import json

from lockcheck.checker.finding import Blame, Culprit
from lockcheck.checker.stalls import total_ns
from lockcheck.history import Hold
from lockcheck.history.event import NS_PER_MS

LONGEST_VALUE = 40


def lasting(time_ns: int) -> str:
    ms = time_ns / NS_PER_MS
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.3g} ms"


def moment(time_ns: int) -> str:
    """To the microsecond, since some things are that close together."""
    return f"{time_ns / NS_PER_MS:,.3f}".rstrip("0").rstrip(".") + " ms"


def at(time_ns: int) -> str:
    return f"at {moment(time_ns)}"


def shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def otherwise_of_two(earlier: Hold, later: Hold, blame: Blame) -> str:
    """What would have kept two from holding it at once."""
    if blame.who is Culprit.CLIENT and blame.release is not None and blame.released_by is not None:
        return (
            f"The release of {blame.released_by.node} {at(blame.release.start_ns)} would have had"
            " to look whose lock it removes."
        )
    if blame.who is Culprit.MACHINE:
        return _quieter(earlier, blame)
    if blame.who is Culprit.SERVICE:
        return _let_in_later(earlier, later, blame)
    return _stopped_sooner(earlier, later, blame)


def _quieter(earlier: Hold, blame: Blame) -> str:
    if not blame.stalls:
        return "The host's clock would have had to go on without a jump."
    stalled = lasting(total_ns(blame.stalls))
    return f"The machine would have had to run {earlier.node} without stalls of {stalled}."


def _let_in_later(earlier: Hold, later: Hold, blame: Blame) -> str:
    if blame.promised_until_ns is None:
        return (
            f"{later.node}, let in {at(later.start_ns)}, would have had to wait until"
            f" {earlier.node} had let go {at(earlier.end_ns)}."
        )
    return (
        f"{later.node} would have had to be let in {lasting(blame.by_ns)} later, when the lease of"
        f" {earlier.node} ran out {at(blame.promised_until_ns)}."
    )


def _stopped_sooner(earlier: Hold, later: Hold, blame: Blame) -> str:
    node = earlier.node
    if blame.who is Culprit.CLIENT:
        return f"{node} would have had to stop when its hold was over {at(earlier.end_ns)}."
    if blame.promised_until_ns is None:
        return f"{node} would have had to stop before {later.node} was let in {at(later.start_ns)}."
    ran_out = f"when its lease ran out {at(blame.promised_until_ns)}"
    if not blame.by_ns:
        return f"{node} would have had to be done {ran_out}."
    return f"{node} would have had to stop {lasting(blame.by_ns)} sooner, {ran_out}."
