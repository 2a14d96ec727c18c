"""What the clocks of hosts explain, in words."""

from __future__ import annotations

from lockcheck.checker.doubt import Ahead, Clocks, DoubtCode
from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.words import listed, plain, sentence, span, stretch

MOST_HOSTS = 3
ABOUT_A_SECOND_NS = 999_000_000


def about_clocks(judgement: Judgement) -> str:
    """Empty if there is nothing to say, or a doubt says it."""
    clocks = judgement.clocks
    if clocks is None or any(doubt.code is DoubtCode.CLOCKS_APART for doubt in judgement.doubts):
        return ""
    if judgement.verdict is not Verdict.VIOLATION:
        return sentence(f"{how_far(clocks)}, which --clock-error allows; they were set right here")
    if not clocks.decided:
        return "Whether differences of the hosts' clocks explain it could not be decided."
    if clocks.apart_ns is None:
        return "No constant differences of the hosts' clocks below 1 s explain it."
    return f"The hosts' clocks would have to be {span(clocks.apart_ns)} apart to explain it."


def how_far(clocks: Clocks) -> str:
    if clocks.ahead:
        return listed(map(_seems, clocks.ahead), MOST_HOSTS)
    return f"the hosts' clocks seem to be {span(clocks.apart_ns or 0)} apart"


def _seems(clock: Ahead) -> str:
    near, far = sorted(map(abs, (clock.least_ns, clock.most_ns)))
    long = f"at least {span(near)}" if far >= ABOUT_A_SECOND_NS else stretch(near, far)
    where = "ahead" if clock.least_ns > 0 else "behind"
    return f"the clock of {plain(clock.node)} seems to be {long} {where}"
