"""A summary for the page of a CI job, in Markdown as GitHub has it, and its annotations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lockcheck.matrix.campaign import Campaign, News
from lockcheck.matrix.model import Standing
from lockcheck.matrix.report.lines import (
    LONGEST,
    LONGEST_COMMAND,
    SIGNS,
    CellLine,
    cell_lines,
    held_in_words,
    sentence,
    tick,
)
from lockcheck.words import amount, plain

MOST_ROWS = 40
MOST_ANNOTATIONS = 10  # of each step: GitHub shows no more
_MARKUP = re.compile(r"[\\`*_\[\]<>|~$&@#]|:(?=//)|^[-+=]")


def summary(campaign: Campaign) -> str:
    return "\n\n".join(_blocks(campaign)) + "\n"


def _blocks(campaign: Campaign) -> Iterator[str]:
    yield f"### {_escaped(sentence(campaign))}"
    if campaign.thresholds:
        yield _listed(
            f"{tick(each.held)} {_escaped(each.text)} {held_in_words(each.held)}"
            f"{': ' if each.measured else ''}{_escaped(each.measured)}"
            for each in campaign.thresholds
        )
    if campaign.blind:
        yield "**Blind spots: what never happened**"
        yield _listed(map(_escaped, campaign.blind))
    if campaign.news:
        yield from _news(campaign.news)
    yield from _table(cell_lines(campaign))


def _news(news: News) -> Iterator[str]:
    named = {"New": news.new, "Ongoing": news.ongoing, "Resolved": news.resolved}
    found = [f"**{name}:** {_escaped(text)}" for name, texts in named.items() for text in texts]
    yield f"**Since {_escaped(news.against)}**"
    yield _listed(found or ["nothing was found in either"])


def _table(lines: Sequence[CellLine]) -> Iterator[str]:
    if not lines:
        return
    rows = ["| Cell | Stands | Expected | Came | Why |", "| --- | --- | --- | --- | --- |"]
    yield "\n".join([*rows, *map(_row, lines[:MOST_ROWS])])
    left_out = lines[MOST_ROWS:]
    if left_out:
        good = sum(line.standing is Standing.AS_EXPECTED for line in left_out)
        yield f"And {amount(len(left_out), 'cell')} more, {good:,} of them as expected."


def _row(line: CellLine) -> str:
    why = _escaped(line.why)
    if line.telling:
        whose = line.telling.result.whose
        why += f" ({_escaped(whose)})" if whose else ""
        page = line.telling.page
        why += f" [page]({page})" if page else ""
    interval = f" ({line.interval})" if line.interval else ""
    parts = (
        _escaped(line.id),
        f"{SIGNS[line.standing]} {line.standing}",
        _escaped(line.expected),
        _escaped(f"{line.share}{interval}"),
        why,
    )
    return f"| {' | '.join(parts)} |"


def _listed(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _escaped(text: str) -> str:
    """One line on which nothing is markup, neither of Markdown nor of HTML."""
    return _MARKUP.sub(r"\\\g<0>", plain(text, LONGEST))


# --- annotations ---------------------------------------------------------------------------------


def annotation_lines(campaign: Campaign) -> list[str]:
    """Lines for the output of a step on GitHub: what is not as expected, the worst first."""
    every = [*_of_cells(campaign), *_of_thresholds(campaign)]
    lines = sorted(every, key=lambda line: line.startswith("::warning"))
    if len(lines) > MOST_ANNOTATIONS:
        number = len(lines) - MOST_ANNOTATIONS + 1
        more = _annotation("error", "lockcheck", f"{number:,} more are not as expected")
        return [*lines[: MOST_ANNOTATIONS - 1], more]
    return lines


def _of_cells(campaign: Campaign) -> Iterator[str]:
    for line in cell_lines(campaign):
        if line.standing is Standing.AS_EXPECTED:
            continue
        whose = line.telling.result.whose if line.telling else ""
        parts = (
            plain(line.why or line.share, LONGEST),
            f"Whose fault: {plain(whose)}" if whose else "",
            f"Run it again: {plain(line.rerun, LONGEST_COMMAND)}" if line.rerun else "",
        )
        kind = "warning" if line.standing is Standing.UNKNOWN else "error"
        title = f"{line.id}: {line.standing}"
        yield _annotation(kind, plain(title, LONGEST), "\n".join(filter(None, parts)))


def _of_thresholds(campaign: Campaign) -> Iterator[str]:
    for threshold in campaign.thresholds:
        if threshold.held is False:
            title = f"not kept: {plain(threshold.text, LONGEST)}"
            yield _annotation("error", title, plain(threshold.measured, LONGEST))


def _annotation(kind: str, title: str, message: str) -> str:
    name = _on_one_line(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} title={name}::{_on_one_line(message)}"


def _on_one_line(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
