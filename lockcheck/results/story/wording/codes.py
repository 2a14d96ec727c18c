"""What a check's own words make of its findings. The words are in the check's file."""

from __future__ import annotations

from lockcheck.checker.check import Check
from lockcheck.checker.finding import Finding, Reason
from lockcheck.checker.registry import CHECKS
from lockcheck.checker.wording import Words
from lockcheck.words import LOCKING, at, span


def check_of(finding: Finding) -> Check:
    return CHECKS[finding.code]


def words_of(finding: Finding) -> Words:
    return check_of(finding).words


def by_holds(finding: Finding) -> bool:
    """Its story is who held the lock when. In an incident with others it tells the cause."""
    return words_of(finding).by_holds


def by_evidence(finding: Finding) -> bool:
    """The operations in its evidence are its story."""
    return not by_holds(finding)


def precedence(finding: Finding) -> int:
    return words_of(finding).precedence


def anomalies(code: str, number: int) -> str:
    """How many there were of a kind: 1 deadlock, 3 silent losses."""
    return f"{number:,} {_noun(code, number)}"


def the_anomalies(code: str, number: int) -> str:
    return f"the {_noun(code, number)}"


def _noun(code: str, number: int) -> str:
    words = CHECKS[code].words
    return words.one if number == 1 else words.many


def what_went_wrong(finding: Finding) -> str:
    """What the one to blame did, as half a sentence."""
    return words_of(finding).did(finding) or check_of(finding).meaning


def note(finding: Finding) -> str:
    """What the numbers do not say."""
    reasons = (_reason(finding, reason) for reason in finding.reasons)
    return " ".join((*reasons, *words_of(finding).note(finding)))


def in_full(finding: Finding) -> tuple[str, ...]:
    return tuple(words_of(finding).in_full(finding))


def about_a_lock(finding: Finding) -> bool:
    """A register is no lock: then no sentence may speak of one."""
    if not words_of(finding).object_cure or finding.holds:
        return True
    return any(operation.f in LOCKING for operation in finding.operations)


def _reason(finding: Finding, reason: Reason) -> str:
    asked_ns = max((operation.start_ns for operation in finding.operations), default=0)
    return reason.sentence.format(
        hold=reason.hold,
        holds=finding.holds,
        operations=finding.operations,
        number=reason.number,
        at=at(reason.number),
        before=span(asked_ns - reason.number),
        long=span(finding.length_ns),
    )
