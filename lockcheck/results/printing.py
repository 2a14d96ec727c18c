"""A judgement as text: the story on a terminal, and the message of a test that fails."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.results.picture_text import lines_of_picture
from lockcheck.results.printable import lines_of, plain
from lockcheck.results.story.narrative import Narrative, again
from lockcheck.results.story.point import Level
from lockcheck.results.story.seen import (
    counted,
    ended_early,
    freed_again,
    not_exercised,
    programs_ended,
    without_grant,
)
from lockcheck.results.story.smallest import Row, Smallest
from lockcheck.results.story.steps.step import Step, weightiest
from lockcheck.results.story.untested import unguarded, untested
from lockcheck.results.story.wording.clocks import about_clocks
from lockcheck.results.story.wording.codes import note
from lockcheck.results.story.wording.definitions import SECOND_LOOK, side_by_side
from lockcheck.results.story.wording.doubts import beside_the_headline
from lockcheck.results.story.wording.reasons import Reason, shortened
from lockcheck.runs.facts import NOT_TESTED, RunFacts
from lockcheck.words import amount, full_stop, listed, moment

COLOURS = {
    Level.OK: "green",
    Level.GUARDED: "yellow",
    Level.UNKNOWN: "yellow",
    Level.VIOLATION: "red",
}
WIDTH_OF_A_LOG = 100
LABELS_WIDE = 13
NARROWEST = 24
LONGEST_NAME = 16
STEPS_SHOWN = 12  # the report has some more
EACH_END = 4  # sentences of an explanation
OBJECTS_SHOWN = 2
DOUBTS_SHOWN = 5
ACCENTS = {"harm": "red", "overlap": "bold", "fault": "yellow", "refused": "magenta"}


def print_story(
    console: Console, narrative: Narrative, report: Path | None, facts: RunFacts, seal: str = ""
) -> None:
    history, judgement = narrative.history, narrative.judgement
    console.print()
    if facts.problem:
        problem = "\n".join(map(plain, lines_of(facts.problem)))
        _print_beside(console, "[bold black on yellow] NOT FINISHED [/]", problem)
        console.print()
    _print_what_happened(console, narrative)
    if narrative.smallest is not None:
        _print_smallest(console, narrative.smallest)
    _print_definitions(console, judgement)
    there = [f"{number} {what}" for what, number in counted(history, judgement)]
    judged = ". ".join(filter(None, (", ".join(filter(None, (*there, seal))), judgement.cut)))
    rows = [
        ("judged", f"[dim]{plain(judged)}[/]"),
        ("clocks", plain(about_clocks(judgement))),
        ("ended early", plain(ended_early(history, judgement, facts))),
        ("no grant", plain(without_grant(judgement))),
        ("free again", plain(freed_again(history.terms, judgement))),
        ("the program", plain(programs_ended(history))),
        ("no effect", plain(not_exercised(judgement))),
        (NOT_TESTED, plain(dict(facts.plan).get(NOT_TESTED, ""))),
    ]
    _print_rows(console, [row for row in rows if row[1]])
    # Not wrapped: a path or a command in two lines cannot be copied.
    if report is not None:
        console.print(_label("report") + "  " + plain(str(report)), soft_wrap=True)
    if facts.rerun_command:
        command, _ = again(history.terms, facts.rerun_command)
        console.print(_label("run again") + "  " + plain(command), soft_wrap=True)


def story_text(narrative: Narrative, report: str = "") -> str:
    """The headline, the worst incident, and where the report is."""
    text = StringIO()
    console = Console(file=text, width=WIDTH_OF_A_LOG, highlight=False, color_system=None)
    _print_what_happened(console, narrative)
    if report:
        console.print(_label("report") + "  " + plain(report), soft_wrap=True)
    return text.getvalue().strip()


def _print_what_happened(console: Console, narrative: Narrative) -> None:
    judgement, point = narrative.judgement, narrative.point
    badge = f"[bold reverse {COLOURS[point.level]}] {point.title.upper()} [/]"
    _print_beside(console, badge, f"[bold]{plain(point.sentence)}[/]")
    if point.whose:
        whose, under = f"whose fault: [bold]{plain(point.whose)}[/].", " " * (len(point.title) + 2)
        if point.did:
            _print_beside(console, under, plain(point.did))
        _print_beside(console, under, f"{whose} {plain(point.why)}")
    console.print()
    if narrative.picture:
        for line in lines_of_picture(narrative.picture):
            console.print(f"  {plain(line)}", soft_wrap=True)
        console.print()
    _print_what_follows(console, narrative)
    console.print()
    _print_worst_incident(console, narrative)
    unknown = judgement.verdict is Verdict.UNKNOWN
    mark = "[bold yellow]?[/]" if unknown else _label("also")
    _print_doubts(console, mark, beside_the_headline(judgement))


def _print_what_follows(console: Console, narrative: Narrative) -> None:
    """Expected and happened, what to do, what was not tested; and all of it in numbers."""
    rows = []
    if contrast := narrative.contrast:
        rows += [("expected", plain(contrast.expected)), ("happened", plain(contrast.happened))]
    advice = map(plain, narrative.advice)
    rows += [("" if n > 1 else "do this", f"{n}. {step}") for n, step in enumerate(advice, 1)]
    if narrative.judgement.verdict is Verdict.OK:
        terms = narrative.history.terms
        not_tested = listed(f"{meaning} ({option})" for meaning, option in untested(terms))
        rows += [("not tested", plain(not_tested))] if not_tested else []
        rows += [("unguarded", plain(unguarded(terms)))] if unguarded(terms) else []
    _print_rows(console, [*rows, ("in numbers", f"[dim]{plain(narrative.detail)}[/]")])


def _print_worst_incident(console: Console, narrative: Narrative) -> None:
    for incident, story in narrative.stories(1):
        more = len(narrative.incidents) - 1
        if incident is not narrative.in_detail:  # else it is there
            _print_beside(console, "", f"[bold]{plain(story.title)}[/]")
        steps = weightiest(story.steps, STEPS_SHOWN)
        _print_steps(console, steps)
        if left_out := len(story.steps) - len(steps) + story.left_out:
            rest = amount(left_out, "more step")
            _print_beside(console, "", f"[dim]… and {rest} in the report[/]")
        console.print()
        if incident.main in incident.with_evidence:  # for others it is in the steps
            _print_reason(console, note(incident.main), story.reasons[:1])
        rows = [("whose fault", plain(story.blame))]
        rows += [("what helps", plain(story.prevention))] if not story.advice else []
        rows += [("", f"[dim]{amount(more, 'more incident')} in the report[/]")] if more else []
        _print_rows(console, rows)
        console.print()


def _print_smallest(console: Console, smallest: Smallest) -> None:
    rows = smallest.rows
    widths = [max(len(cell) for cell in cells) for cells in zip(*map(_cells, rows), strict=True)]
    _print_rows(console, [("smallest", f"{smallest.title}. {smallest.explanation}")])
    for row in rows:
        when, who, what = map(str.ljust, _cells(row), widths)
        _print_beside(console, f"  [dim]{when}[/]  {who}  {what}", plain(row.outcome))
    if smallest.path:
        console.print(_label("stored as") + "  " + plain(smallest.path), soft_wrap=True)
    console.print()


def _cells(row: Row) -> tuple[str, str, str]:
    return row.when, plain(row.who[:LONGEST_NAME]), plain(row.what)


def _print_reason(console: Console, note: str, reasons: Sequence[Reason]) -> None:
    """The proof, sentence by sentence."""
    sentences = [full_stop(note)] if note else []
    sentences += [s for reason in reasons for s in shortened(reason.sentences, EACH_END)]
    for number, sentence in enumerate(sentences):
        _print_rows(console, [("" if number else "because", plain(sentence))])


def _print_definitions(console: Console, judgement: Judgement) -> None:
    compared = side_by_side(judgement.definitions, OBJECTS_SHOWN)
    lines = [SECOND_LOOK] if compared.locks and compared.lines else []
    lines += map(plain, compared.lines)
    lines += [f"[dim]{plain(compared.summary)}[/]"] if compared.summary else []
    name = "cross-check" if compared.locks else "objects"
    _print_rows(console, [("" if number else name, line) for number, line in enumerate(lines)])


def _print_steps(console: Console, steps: Sequence[Step]) -> None:
    clock = max((len(moment(step.time_ns)) for step in steps), default=0)
    wide = min(LONGEST_NAME, max((len(step.who) for step in steps), default=0))
    for step in steps:
        accent = ACCENTS.get(step.kind.value, "default")
        when, who = f"{moment(step.time_ns):>{clock}}", f"{step.who[:LONGEST_NAME]:<{wide}}"
        mark = f"  [dim]{when}[/]  [{accent}]{plain(who)}[/]"
        _print_beside(console, mark, f"[{accent}]{plain(step.text)}[/]")


def _print_doubts(console: Console, mark: str, doubts: Sequence[str]) -> None:
    for doubt in doubts[:DOUBTS_SHOWN]:
        _print_beside(console, mark, plain(doubt))
    if (more := len(doubts) - DOUBTS_SHOWN) > 0:
        console.print(f"[dim]  and {amount(more, 'more doubt')} in the report[/]")
    if doubts:
        console.print()


def _label(name: str) -> str:
    return f"[dim]{name:<{LABELS_WIDE}}[/]"


def _print_rows(console: Console, rows: Sequence[tuple[str, str]]) -> None:
    for name, text in rows:
        _print_beside(console, _label(name), text)


def _print_beside(console: Console, mark: str, text: str) -> None:
    """A mark on the left, and text that wraps beside it."""
    left = Text.from_markup(f"{mark}  " if mark else "")
    room = max(NARROWEST, console.width - left.cell_len)
    for number, line in enumerate(Text.from_markup(text).wrap(console, room)):
        line.rstrip()
        console.print((Text(" " * left.cell_len) if number else left) + line, soft_wrap=True)
