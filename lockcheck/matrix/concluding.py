"""What a campaign comes to: its cells, thresholds, what never happened, and what is new."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from lockcheck.checker.finding import Verdict
from lockcheck.errors import ClusterError
from lockcheck.matrix import baseline as known
from lockcheck.matrix.campaign import Campaign
from lockcheck.matrix.folder import Folder, Plan, campaigns_in, outcomes_of
from lockcheck.matrix.judging import standing_of_cell
from lockcheck.matrix.model import CellOutcome, Standing
from lockcheck.matrix.sometimes import blind_spots
from lockcheck.matrix.thresholds import measured, parse


def concluded(
    plan: Plan, folders: Iterable[Folder], earlier: Folder | None, baseline: Path | None
) -> Campaign:
    cells, today = outcomes_of(plan, folders), datetime.now().astimezone().date()
    accepted = known.read_baseline(baseline) if baseline else known.NONE
    forgiven = known.forgiven(cells, accepted, today)
    news = None
    if earlier or baseline:
        before = earlier.outcomes() if earlier else ()
        against = earlier.path.name if earlier else str(baseline)
        news = known.news_of(cells, before, against=against, today=today, baseline=accepted)
    return Campaign(
        name=plan.source,
        started=plan.started or datetime.now().astimezone(),
        seconds=sum(result.seconds for outcome in cells for result in outcome.results),
        cells=cells,
        thresholds=tuple(measured(parse(text), cells, forgiven) for text in plan.thresholds),
        blind=blind_spots(cells),
        news=news,
        forgiven=forgiven,
    )


def last_of(out: Path, plan: Plan) -> Folder | None:
    """The newest campaign of the same file that has ended."""
    for folder in campaigns_in(out):
        if folder.finished and folder.plan().source == plan.source:
            return folder
    return None


def exit_code_of(campaign: Campaign, *, fail_unknown: bool) -> int:
    """What was not as expected counts most, then what could not be carried out or known."""
    standings = {_counting(outcome, campaign.forgiven) for outcome in campaign.cells}
    broken = any(threshold.held is False for threshold in campaign.thresholds)
    if broken or standings & {Standing.VIOLATION, Standing.MISSED}:
        return Verdict.VIOLATION.exit_code
    if Standing.ERROR in standings:
        return ClusterError.exit_code
    if Standing.UNKNOWN in standings or campaign.blind:
        return (Verdict.VIOLATION if fail_unknown else Verdict.UNKNOWN).exit_code
    return Verdict.OK.exit_code


def _counting(outcome: CellOutcome, forgiven: frozenset[str]) -> Standing:
    """Without the trials in which all that was unexpected is known."""
    left = [result for result in outcome.results if result.trial not in forgiven]
    if outcome.results and not left:
        return Standing.AS_EXPECTED
    return standing_of_cell(CellOutcome(outcome.cell, left))
