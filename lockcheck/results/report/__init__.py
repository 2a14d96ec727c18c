"""The report of a run: one HTML file that needs nothing but itself.

`render` puts words (results.story) and the data of the timeline (report.timeline) into what is in
the folder page/. The page's content security policy has the browser load nothing, and run and apply
only the script and style written here, by their hashes. What comes from the history is escaped
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from html import unescape
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.history import History
from lockcheck.results.pages import environment
from lockcheck.results.report.clocks import charts
from lockcheck.results.report.glossary import glossary
from lockcheck.results.report.over_time import over_time
from lockcheck.results.report.picture import svg
from lockcheck.results.report.plot import axis
from lockcheck.results.report.timeline import timeline
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.log import about_log
from lockcheck.results.story.narrative import Narrative, Story, again
from lockcheck.results.story.properties import properties
from lockcheck.results.story.refused import refused_writes
from lockcheck.results.story.seen import (
    clients,
    counted,
    ended_early,
    freed_again,
    last_moment_ns,
    not_exercised,
    own_cause,
    programs_ended,
    without_grant,
)
from lockcheck.results.story.settings import Rows, settings_of
from lockcheck.results.story.untested import unguarded, untested
from lockcheck.results.story.wording.clocks import about_clocks
from lockcheck.results.story.wording.codes import note
from lockcheck.results.story.wording.definitions import side_by_side
from lockcheck.results.story.wording.doubts import beside_the_headline
from lockcheck.results.story.wording.titles import incident_title
from lockcheck.results.ticket import ticket
from lockcheck.runs.facts import RunFacts
from lockcheck.words import full_stop, moment, plain, sentence, span

PAGE = Path(__file__).parent / "page"
SCRIPTS = (
    "view.js",
    "draw.js",
    "bands.js",
    "marks.js",
    "flags.js",
    "input.js",
    "links.js",
    "page.js",
)
STYLES = ("page.css", "print.css")
SHOWN_FULLY = 20
LISTED_BRIEFLY = 200
REFUSED_LISTED = 200
OPEN_AT_FIRST = 3
DOUBTS_LISTED = 12
COMPARED = 12
CLOSEST_LOOK_NS = 20_000_000
# Where the glossary goes once the page's words are known. No text of a history holds a tag.
WORDS_BELOW = Markup("<!--words below-->")


@dataclass(frozen=True, slots=True)
class _Shown:
    """An incident that is shown with all its steps."""

    number: int
    incident: Incident
    story: Story

    @property
    def effect(self) -> Verdict:
        return self.incident.effect

    @property
    def opened(self) -> bool:
        """Whether its steps show at first, and on paper."""
        worst = self.number <= OPEN_AT_FIRST and self.effect is Verdict.VIOLATION
        return self.number == 1 or worst

    @property
    def harm(self) -> list[str]:
        """The lines that the heading does not already say."""
        [alone, *others] = self.incident.findings
        noted = note(alone)
        if not others and self.incident.with_evidence:
            return [full_stop(noted)] if noted else []
        return list(self.story.harm) if others or noted else []


def render(narrative: Narrative, facts: RunFacts) -> str:
    history, judgement = narrative.history, narrative.judgement
    incidents = narrative.incidents[: SHOWN_FULLY + LISTED_BRIEFLY]
    shown = [_Shown(n, *each) for n, each in enumerate(narrative.stories(SHOWN_FULLY), 1)]
    doubts = beside_the_headline(judgement)
    refused = refused_writes(narrative.case)
    drawn = timeline(narrative, incidents, [_window(each) for each in incidents])
    page = (
        _environment()
        .get_template("page.html")
        .render(
            facts=facts,
            terms=history.terms,
            log=() if facts.started_at else about_log(judgement),
            judgement=judgement,
            verdict=judgement.verdict,
            detail=narrative.detail,
            point=narrative.point,
            contrast=narrative.contrast,
            ticket=ticket(narrative, facts),
            untested=untested(history.terms) if judgement.verdict is Verdict.OK else (),
            unguarded=unguarded(history.terms) if judgement.verdict is Verdict.OK else "",
            ungranted=judgement.ungranted,
            picture=svg(narrative.picture) if narrative.picture else None,
            tested=_tested(history, judgement, facts),
            answer=shown[0].story if shown and _asks_whose_fault(judgement) else None,
            again=again(history.terms, facts.rerun_command),
            counts=list(counted(history, judgement)),
            properties=properties(history, judgement),
            shown=shown,
            folded=next((each.number for each in shown if not each.opened), None),
            above=narrative.in_detail,
            brief=list(enumerate(incidents[SHOWN_FULLY:], SHOWN_FULLY + 1)),
            unlisted=len(narrative.incidents) - len(incidents),
            refused=refused[:REFUSED_LISTED],
            refused_total=len(refused),
            data=drawn.json,
            kinds=drawn.kinds,
            smallest=narrative.smallest,
            over_time=over_time(judgement),
            clocks=charts(history),
            axis=axis(last_moment_ns(history)),
            compared=side_by_side(judgement.definitions, COMPARED),
            about_locks=narrative.about_locks,
            doubts=doubts[:DOUBTS_LISTED],
            steps=narrative.advice,
            doubts_unlisted=max(0, len(doubts) - DOUBTS_LISTED),
        )
    )
    html = _with_glossary(page, narrative, drawn.names)
    # A file from elsewhere may hold a lone surrogate, which UTF-8 cannot.
    return html.encode("utf-8", "replace").decode()


def _with_glossary(page: str, narrative: Narrative, drawn: Iterable[str]) -> str:
    """Explains the words that occur on the page; `drawn`: names that its script draws."""
    known = glossary(narrative, " ".join([_visible(page), *map(plain, drawn)]))
    return page.replace(WORDS_BELOW, _explained(known), 1)


def _explained(rows: Rows) -> str:
    return _environment().get_template("words.html").render(rows=rows) + "\n" if rows else ""


def _visible(page: str) -> str:
    """What a reader sees without the script."""
    body = page.partition("</head>")[2].partition("<script")[0]
    text = re.sub(r"<pre\b.*?</pre>", " ", body, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", " ", text))


def _window(incident: Incident) -> range:
    """The stretch of time to show, in ns: the incident with some room around it."""
    points = [f.time_ns for f in incident.findings]
    points += [t for h in incident.holds for t in (h.acquire.start_ns, h.end_ns)]
    points += [o.start_ns for f in incident.findings for o in f.operations]
    evidence = (o for f in incident.with_evidence for o in f.operations)
    points += [o.answer.time for o in evidence if o.answer]
    start_ns, end_ns = min(points), max(points)
    room_ns = max(CLOSEST_LOOK_NS, (end_ns - start_ns) // 12)
    return range(max(0, start_ns - room_ns), end_ns + room_ns)


def _tested(history: History, judgement: Judgement, facts: RunFacts) -> Rows:
    """What was tested, by the names of the command line, and how it went."""
    whole = clients(history, judgement) is not None
    rows = (
        *(facts.plan or settings_of(history.terms)),
        ("cause", own_cause(judgement)),
        ("lasted", span(last_moment_ns(history)) if whole else ""),
        ("clocks", about_clocks(judgement)),
        ("ended early", ended_early(history, judgement, facts)),
        ("no grant", without_grant(judgement)),
        ("free again", freed_again(history.terms, judgement)),
        ("the client program", programs_ended(history)),
        ("made no difference", not_exercised(judgement)),
    )
    return tuple((name, value) for name, value in rows if value)


def _asks_whose_fault(judgement: Judgement) -> bool:
    """Whether data was damaged, or would have been without the guard."""
    refused = judgement.verdict is Verdict.OK and judgement.counts.stale_writes_refused
    return bool(refused) or judgement.verdict is Verdict.VIOLATION


def _options(text: str) -> Markup:
    """Marks up the command line's options, so that none is broken in two."""
    html = re.sub(
        r"--[a-z-]+( (fence|cas|none|redis|\d+|(?<=nemesis )[a-z]+(:[a-z]+)?))?",
        r"<code>\g<0></code>",
        str(escape(text)),
    )
    return Markup(html)  # noqa: S704 - escaped before


def _unbroken(text: str) -> Markup:
    """Keeps a value such as v10-c4 from being broken in two at its hyphen."""
    html = re.sub(r"\b\w{1,12}-\w{1,12}\b", r'<span class="num">\g<0></span>', str(escape(text)))
    return Markup(html)  # noqa: S704 - escaped before


def _words(command: str) -> Markup:
    """Has the lines of a command break between options only: each stays with its value."""
    words = re.findall(r"--?[a-z][\w-]*(?: (?!-)\S+)?|\S+", command)
    spans = (f"<span>{escape(word)}</span>" for word in words)
    return Markup(" ".join(spans))  # noqa: S704 - escaped word by word


@cache
def _environment() -> jinja2.Environment:
    script = "\n".join((PAGE / name).read_text("utf-8") for name in SCRIPTS)
    script = f"'use strict';\n(() => {{\n{script}\n}})();"
    made = environment(PAGE, (PAGE / name for name in STYLES), script)
    made.filters.update(span=span, moment=moment, plain=plain, sentence=sentence)
    made.filters.update(brief_title=incident_title, options=_options, words=_words)
    made.filters.update(unbroken=_unbroken)
    made.globals.update(words_below=WORDS_BELOW)
    return made
