"""What a campaign comes to: its reports, here and elsewhere, and in short on the terminal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lockcheck.cli.gate import say
from lockcheck.files import writing
from lockcheck.matrix.folder import TRIALS, Folder
from lockcheck.matrix.model import Standing
from lockcheck.matrix.report.html import page
from lockcheck.matrix.report.junit import junit_xml
from lockcheck.matrix.report.lines import cell_lines, held_in_words, sentence, tick
from lockcheck.matrix.report.markdown import annotation_lines, summary
from lockcheck.matrix.report.ndjson import ndjson

if TYPE_CHECKING:
    from lockcheck.matrix.campaign import Campaign

SHOWN = 20  # cells that were not as expected; the page has all


def conclude(campaign: Campaign, folder: Folder, elsewhere: Path | None) -> None:
    reports = {
        "index.html": page(campaign).encode(),
        "junit.xml": junit_xml(campaign).encode(),
        "summary.md": summary(campaign).encode(),
    }
    for name, content in reports.items():
        folder.write(name, content)
    if elsewhere is not None:
        _copy(reports | {"results.ndjson": ndjson(campaign.results)}, folder, elsewhere)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("ab") as job:
            job.write(reports["summary.md"])
    if os.environ.get("GITHUB_ACTIONS"):
        for line in annotation_lines(campaign):
            say(line)
    for line in _in_short(campaign):
        say(line)
    say(f"page           {folder.path / 'index.html'}")


def _copy(reports: dict[str, bytes], folder: Folder, elsewhere: Path) -> None:
    """With the pages of all runs, to which they link."""
    pages = [
        report
        for report in folder.path.glob(f"{TRIALS}/*/*/report.html")
        if not report.parent.is_symlink()
    ]
    elsewhere.mkdir(parents=True, exist_ok=True)
    for name, content in reports.items():
        with writing(elsewhere / name) as out:
            out.write(content)
    for page_of_a_run in pages:
        there = elsewhere / page_of_a_run.relative_to(folder.path)
        there.parent.mkdir(parents=True, exist_ok=True)
        with page_of_a_run.open("rb") as source, writing(there) as out:
            shutil.copyfileobj(source, out)


def _in_short(campaign: Campaign) -> Iterator[str]:
    yield ""
    yield sentence(campaign)
    lines = [each for each in cell_lines(campaign) if each.standing is not Standing.AS_EXPECTED]
    for line in lines[:SHOWN]:
        expected = line.outcome.cell.expectation.words
        yield f"  {line.standing.value:<11} {line.id}: expected {expected}"
    if len(lines) > SHOWN:
        yield f"  and {len(lines) - SHOWN:,} more on the page"
    for threshold in campaign.thresholds:
        held = f"{tick(threshold.held)} {threshold.text}: {held_in_words(threshold.held)}"
        yield f"threshold      {held}, {threshold.measured}"
    yield from (f"blind          {each}" for each in campaign.blind)
    if campaign.news:
        for name in ("new", "ongoing", "resolved"):
            yield from (f"{name:<15}{each}" for each in getattr(campaign.news, name))
