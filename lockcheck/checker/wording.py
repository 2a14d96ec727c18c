"""The words of a check: pure functions of a finding, which the story puts together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lockcheck.checker.finding import Finding
from lockcheck.words import lock_name, names, node_of, plain

NAMED_AT_MOST = 4
Last = tuple[str, str]  # the last step: which client or server, and what
# Reasons of several checks.
NOT_EXCLUSIVE = "The lock lets both in at once."


def one_to_blame(finding: Finding) -> str:
    """The first holder, or else the first client whose operation is in evidence."""
    nodes = [hold.node for hold in finding.holds[:1]] or [o.node for o in finding.operations[:1]]
    return plain(nodes[0]) if nodes else "a client"


def everybody(finding: Finding) -> str:
    nodes = [hold.node for hold in finding.holds] + [o.node for o in finding.operations]
    return names(nodes, NAMED_AT_MOST)


def second_holder(finding: Finding) -> str:
    return node_of(finding.holds, 1, "somebody else")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What the story says of a finding. Only `one` and `many` have to be given."""

    one: str  # overlap
    many: str  # overlaps
    kept: str = ""  # holders kept apart: what holds where there are none; empty: no overlaps
    # Its title, its steps and its blame are the story of who held the lock when: `title`, `last`,
    # `did` and `cure` are not asked for. Such findings tell the cause of all in their incident.
    by_holds: bool = False
    # Of the others in one incident, the one with the highest number tells the cause.
    precedence: int = 1
    title: Callable[[Finding], str] = lambda f: f"{f.code} on {lock_name(f.key)}"
    last: Callable[[Finding], Last] = lambda f: (one_to_blame(f), f"this makes it a {f.code}")
    # What the one to blame did, as half a sentence; empty: the meaning of the check, or, of a
    # server that let a second holder in, that.
    did: Callable[[Finding], str] = lambda _: ""
    blamed: Callable[[Finding], str] = lambda f: f"client {one_to_blame(f)}"  # where it is a client
    cure: str = ""  # what would prevent it; {guard}: a sentence on what guards the data besides
    object_cure: str = ""  # the same of a register or the like: of a check that judges those, too
    note: Callable[[Finding], Iterable[str]] = lambda _: ()  # what the numbers do not say
    in_full: Callable[[Finding], Iterable[str]] = lambda _: ()  # where it takes more than a note
    shows_requests: bool = False  # when each holder asked is a step of the story
    follows_from_others: bool = False  # beside other findings it goes without saying
