"""The report of a run: one HTML file that needs nothing but itself.

`render` puts words (results.story) and the timeline's data (report.timeline) into page.html. The
browser is told to load nothing, and to run and apply only the very script and style written here:
their hashes are in the page's content security policy. What comes from the history is text.
"""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from lockcheck.checker.finding import Judgement, Verdict
from lockcheck.history import History
from lockcheck.history.event import NS_PER_MS
from lockcheck.results import story
from lockcheck.results.report.timeline import last_moment_ns, timeline_json

HERE = Path(__file__).parent
SCRIPTS = ("view.js", "draw.js", "input.js", "page.js")
FULLY_TOLD = 20
LISTED_BRIEFLY = 200
REFUSED_LISTED = 200
OPEN_AT_FIRST = 3
CLOSEST_LOOK_NS = 20_000_000

Rows = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportInput:
    run_id: str
    started_at: str
    history: History
    judgement: Judgement
    plan: Rows
    versions: Rows
    rerun_command: str
    check_command: str
    problem: str = ""  # why lockcheck or the cluster failed midway; the report is written anyway


@dataclass(frozen=True, slots=True)
class _Told:
    """An incident as the page shows it."""

    number: int
    incident: story.Incident
    story: story.Story
    window: range

    @property
    def effect(self) -> Verdict:
        return self.incident.effect

    @property
    def more(self) -> list[str]:
        """What the heading does not say already."""
        return [line for line in self.story.harm if line != f"{self.story.title}."]


def render(report: ReportInput) -> str:
    history, judgement = report.history, report.judgement
    incidents = _worst_first(story.incidents(judgement.findings))
    windows = [_window(incident) for incident in incidents]
    told = [
        _Told(number, incident, story.tell_incident(history, incident), window)
        for number, (incident, window) in enumerate(
            zip(incidents[:FULLY_TOLD], windows, strict=False), 1
        )
    ]
    refused = story.refused_writes(history)
    shown = FULLY_TOLD + LISTED_BRIEFLY
    headline = story.headline(history, judgement)
    words = headline.partition(": ")[2]
    html = _template().render(
        report=report,
        verdict=judgement.verdict,
        headline=headline,
        sentence=words[:1].upper() + words[1:],
        facts=_facts(history),
        first=told[0] if told else None,
        counts=_count_rows(report),
        told=told,
        brief=list(enumerate(incidents[FULLY_TOLD:shown], FULLY_TOLD + 1)),
        unlisted=max(0, len(incidents) - shown),
        refused=refused[:REFUSED_LISTED],
        refused_total=len(refused),
        stale_refused_total=judgement.counts.stale_writes_refused,
        data=timeline_json(history, judgement, incidents[:shown], windows[:shown]),
    )
    # A lone surrogate can hide in what somebody else's file said; a file of UTF-8 cannot hold it.
    return html.encode("utf-8", "replace").decode()


def _worst_first(incidents: tuple[story.Incident, ...]) -> tuple[story.Incident, ...]:
    """What counts comes first; in the order of time where it counts the same."""
    rank = list(Verdict)
    return tuple(sorted(incidents, key=lambda incident: -rank.index(incident.effect)))


def _window(incident: story.Incident) -> range:
    """The stretch of time to look at, in ns: the incident with some room around it."""
    points = [f.time_ns for f in incident.findings]
    points += [t for h in incident.holds for t in (h.acquire.start_ns, h.end_ns)]
    points += [o.start_ns for f in incident.findings for o in f.operations]
    start_ns, end_ns = min(points), max(points)
    room_ns = max(CLOSEST_LOOK_NS, (end_ns - start_ns) // 12)
    return range(max(0, start_ns - room_ns), end_ns + room_ns)


def _facts(history: History) -> Rows:
    """What was tested, as far as the history says."""
    terms = history.terms
    facts = (
        ("backend", terms.backend),
        ("workload", terms.workload),
        ("guard", terms.guard),
        ("lease", story.span(terms.ttl_ms * NS_PER_MS) if terms.ttl_ms else ""),
        ("faults", ", ".join(terms.faults) or "none"),
        ("clients", str(terms.clients or "")),
        ("lasted", story.span(last_moment_ns(history))),
        ("seed", "" if terms.seed is None else str(terms.seed)),
    )
    return tuple((name, value) for name, value in facts if value)


def _options(text: str) -> Markup:
    """Sets the command line's options apart, and keeps them from being broken in two."""
    html = re.sub(r"--[a-z-]+( (fence|cas|redis))?", r"<code>\g<0></code>", str(escape(text)))
    return Markup(html)  # noqa: S704 - escaped before


def _brief_title(incident: story.Incident) -> str:
    others = len(incident.findings) - 1
    return story.title(incident.main) + (
        f" (and {others} more of the same cause)" if others else ""
    )


def _count_rows(report: ReportInput) -> Rows:
    counts, guard = report.judgement.counts, report.history.terms.guard
    guarded: Rows = (
        ("writes refused", f"{counts.writes_refused:,}"),
        ("of them stale", f"{counts.stale_writes_refused:,}"),
    )
    return (
        ("operations", f"{counts.operations:,}"),
        ("times granted", f"{counts.acquisitions:,}"),
        ("different holders", f"{counts.holders:,}"),
        ("proven faults", f"{counts.faults:,}"),
        ("writes accepted", f"{counts.writes_accepted:,}"),
        *(guarded if guard != "none" or counts.writes_refused else ()),
    )


@cache
def _template() -> jinja2.Template:
    script = "\n".join((HERE / name).read_text("utf-8") for name in SCRIPTS)
    script = f"'use strict';\n(() => {{\n{script}\n}})();"
    style = (HERE / "page.css").read_text("utf-8")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(span=story.span, moment=story.moment, plain=story.plain)
    environment.filters.update(brief_title=_brief_title, options=_options, sentence=story.sentence)
    environment.globals.update(
        script=script,
        style=style,
        policy=(
            f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
            "base-uri 'none'; form-action 'none'"
        ),
        open_at_first=OPEN_AT_FIRST,
    )
    return environment.get_template("page.html")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
