"""What a report shows of a run and its history does not have; kept for rewriting the report."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.finding import Judgement, Verdict

NOT_TESTED = "not tested"  # a row of the plan, where servers are not lockcheck's
STARTED_AT = "%Y-%m-%d %H:%M:%S %Z"


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    started_at: str
    plan: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    rerun_command: str
    check_command: str
    problem: str = ""
    stops_within_ms: int = 0  # the time limit of a run that stops at the first overlap; else 0
    took_ms: float | None = None  # until the cluster was gone; None: it was killed, or still runs
    failed_with: int = 0  # the exit code of an error or an interruption; else 0

    @property
    def started(self) -> datetime | None:
        """None of a file, or where it is not a time."""
        try:
            return datetime.strptime(self.started_at, STARTED_AT).replace(tzinfo=UTC)
        except ValueError:
            return None

    def exit_code(self, verdict: Verdict) -> int | None:
        """Of the run's command; None: it was killed, or still runs."""
        if self.problem:
            return self.failed_with or None
        return verdict.exit_code

    def applied_to(self, judgement: Judgement) -> Judgement:
        """Adds a doubt if the run broke off: it may have missed what would have happened."""
        if not self.problem:
            return judgement
        first_line = self.problem.splitlines()[0]
        return judgement.doubting(Doubt(DoubtCode.RUN_UNFINISHED, reason=first_line))


def now_in_words() -> str:
    return datetime.now(UTC).strftime(STARTED_AT)
