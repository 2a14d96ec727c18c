"""A judgement as Markdown, to be pasted into a ticket: the main point, its picture, the command."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.results.picture_text import lines_of_picture
from lockcheck.results.story.narrative import Narrative, again
from lockcheck.runs.facts import RunFacts


def ticket(narrative: Narrative, facts: RunFacts) -> str:
    return "\n\n".join(_parts(narrative, facts)) + "\n"


def _parts(narrative: Narrative, facts: RunFacts) -> Iterator[str]:
    point = narrative.point
    yield f"**{point.title}**: {point.sentence}"
    if point.whose:
        yield " ".join(filter(None, (point.did, f"Whose fault: {point.whose}.", point.why)))
    if narrative.picture:
        yield _block(lines_of_picture(narrative.picture))
    if contrast := narrative.contrast:
        yield f"- Expected: {contrast.expected}\n- Happened: {contrast.happened}"
    if narrative.advice:
        yield "\n".join(f"{number}. {step}" for number, step in enumerate(narrative.advice, 1))
    yield narrative.detail
    commands = [again(narrative.history.terms, facts.rerun_command)[0], facts.check_command]
    if any(commands):
        yield _block([command for command in commands if command])


def _block(lines: list[str]) -> str:
    """Indented: no text in it can end it."""
    return "\n".join(f"    {line}" for line in lines)
