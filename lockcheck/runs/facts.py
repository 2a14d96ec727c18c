"""What a report says of a run beside its history; kept, so that it can be written again."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.finding import Judgement


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    started_at: str
    plan: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    rerun_command: str
    check_command: str
    problem: str = ""
    stops_within_ms: int = 0  # the time limit of a run that stops at the first overlap; else 0

    def applied_to(self, judgement: Judgement) -> Judgement:
        """A run that did not come to its end may have missed what would have come."""
        if not self.problem:
            return judgement
        first_line = self.problem.splitlines()[0]
        return judgement.doubting(Doubt(DoubtCode.RUN_UNFINISHED, reason=first_line))


def now_in_words() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
