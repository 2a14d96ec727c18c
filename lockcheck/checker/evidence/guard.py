"""What an anomaly does to the verdict, by the guard that the storage had.

Behind a guard the property is the data's: what the lock alone did wrong is shown, and it counts
only where the storage accepted what it should have refused. No guard makes up for tokens that go
backwards (it relies on them), for a lock that nobody gets, or for a job that ran twice.
"""

from __future__ import annotations

from lockcheck.checker.finding import Blame, Code, Culprit, Verdict
from lockcheck.history import Terms
from lockcheck.history.event import TRANSACTION

# What each guard promises to keep out, whatever the lock and the machine do.
KEPT_OUT_BY = {
    "fence": frozenset({Code.STALE_WRITE, Code.LOST_UPDATE}),
    "cas": frozenset({Code.LOST_UPDATE}),
    TRANSACTION: frozenset({Code.STALE_WRITE, Code.LOST_UPDATE}),
}
BEYOND_ANY_GUARD = frozenset(
    {Code.TOKEN_REGRESSION, Code.DOUBLE_RUN, Code.STUCK, Code.DEADLOCK, Code.UNFAIR}
)


def effect_of(terms: Terms, code: Code, blame: Blame) -> Verdict:
    """A guard that is not known is no guard: the strictest reading."""
    kept_out = KEPT_OUT_BY.get(terms.guard)
    if kept_out is not None and code not in BEYOND_ANY_GUARD:
        return Verdict.VIOLATION if code in kept_out else Verdict.OK
    return Verdict.UNKNOWN if blame.who is Culprit.MACHINE else Verdict.VIOLATION
