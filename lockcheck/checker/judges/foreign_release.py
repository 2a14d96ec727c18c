"""A release took away another client's lock."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.evidence.order import Spans
from lockcheck.checker.evidence.releases import BlindRelease
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason
from lockcheck.checker.wording import Words
from lockcheck.history import Hold, Operation

WHOSE_IS_UNCERTAIN = "What it removed was certainly not its own; whose it was, is not certain."
LET_IN = "So {hold.node} was let in while {holds[1].node} still held it."


def find(case: Case) -> Iterator[Finding]:
    for key, suspects in case.releases.items():
        holds = case.holds_by_key[key]
        may_be_granted = (o for o in case.acquires_by_key[key] if not o.failed)
        asked = Spans((o.start_ns, o.end_ns, o) for o in may_be_granted)
        for release in suspects:
            victim = _victim(release, holds)
            if victim is not None:
                third = _let_in_by_it(case, release, victim)
                yield _finding(case, release, victim, third, asked)


def _victim(release: BlindRelease, holds: list[Hold]) -> Hold | None:
    """The last holder that certainly held it all the while and was let in after the releaser: so
    the releaser's lock was gone, and what it removed was not its own."""
    answered_ns = release.answered_ns
    began = bisect_left(holds, release.operation.start_ns, key=lambda hold: hold.start_ns)
    for hold in reversed(holds[:began]):
        if hold.start_ns <= release.by.start_ns or answered_ns is None:
            return None  # a hold from before the releaser's is no victim of it
        if release.was_foreign_to(hold) and hold.end_ns > answered_ns:
            return hold
    return None


def _finding(
    case: Case, release: BlindRelease, victim: Hold, third: Hold | None, asked: Spans[Operation]
) -> Finding:
    began_ns, answered_ns = release.operation.start_ns, release.answered_ns or 0
    blame = Blame(
        who=Culprit.CLIENT,
        by_ns=victim.end_ns - answered_ns,
        promised_until_ns=victim.promised_until_ns(case.terms.ttl_ms, as_of_ns=answered_ns),
        release=release.operation,
        released_by=release.by,
    )
    return Finding(
        code=Code.FOREIGN_RELEASE,
        key=victim.key,
        time_ns=began_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=(release.by, victim) if third is None else (release.by, victim, third),
        operations=(release.operation,),
        length_ns=victim.end_ns - answered_ns,
        blame=blame,
        reasons=tuple(_reasons(release, victim, third, asked)),
    )


def _let_in_by_it(case: Case, release: BlindRelease, victim: Hold) -> Hold | None:
    """The first hold after the release that began while the victim's lease was still running."""
    holds = case.holds_by_key[victim.key]
    began = bisect_left(holds, release.operation.start_ns, key=lambda hold: hold.start_ns)
    for hold in holds[began:]:
        promised_ns = case.attribution.promised_until_ns(victim, hold)
        until_ns = victim.end_ns if promised_ns is None else min(victim.end_ns, promised_ns)
        if hold.start_ns >= until_ns:
            return None
        if hold.process != victim.process:
            return hold
    return None


def _reasons(
    release: BlindRelease, victim: Hold, third: Hold | None, asked: Spans[Operation]
) -> Iterator[Reason]:
    own = (victim.acquire, release.by.acquire)
    others = asked.touching(victim.acquire.start_ns, release.answered_ns or 0)
    if any(all(acquire is not known for known in own) for acquire in others):
        yield Reason(WHOSE_IS_UNCERTAIN)
    if third is not None:
        yield Reason(LET_IN, third)


CHECK = Check(
    code=Code.FOREIGN_RELEASE,
    meaning="a release took away another client's lock",
    explanation="""\
A client's lease ran out, another client was let in, and then the first one released "its" lock: a
blind `DEL` removes whatever is there. Now a third client can get in while the second one still
holds the lock within its lease, although no lease was outlived by more than a moment.

It is reported where it is certain: the release removed a lock, by its own answer, without a look at
the owner; another client had been granted the lock after the releaser, so that the releaser's own
was gone; and that client held it for certain all the while.

The cure is to compare and delete in one step: store a random value of one's own with the lock, and
remove it only if it is still there (`--backend redis` does).""",
    find=find,
    words=Words(
        one="blind release", many="blind releases", kept="only holders release", by_holds=True
    ),
    screen=Screen("its releases do not look what they remove", lambda s: bool(s.table.blind.any())),
    endangers_data=True,
)
