"""Whether all locks were granted again after the last fault of a run was healed."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.case import Case
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.finding import Code, Finding

FEWEST_REFUSED = 5


def doubts(case: Case, findings: list[Finding]) -> Iterator[Doubt]:
    """One for each lock that is not known to be stuck, but was not granted in the quiet time."""
    since_ns = case.history.quiet_ns
    if since_ns is None:
        return
    stuck = {finding.key for finding in findings if finding.code == Code.STUCK}
    for key, acquires in case.acquires_by_key.items():
        ended = [acquire for acquire in acquires if acquire.last_ns >= since_ns]
        in_vain = len(ended) >= FEWEST_REFUSED and not any(acquire.ok for acquire in ended)
        if in_vain and key not in stuck:
            yield Doubt(
                DoubtCode.NOT_GRANTED_AFTER_HEALING,
                key,
                length_ns=max(acquire.last_ns for acquire in ended) - since_ns,
                number=len(ended),
                reason=next((o.answer.error for o in ended if o.answer and o.answer.error), ""),
            )
