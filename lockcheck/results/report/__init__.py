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
from lockcheck.history import History, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.results import story
from lockcheck.results.report.clocks import charts
from lockcheck.results.report.timeline import last_moment_ns, timeline

HERE = Path(__file__).parent
SCRIPTS = ("view.js", "draw.js", "bands.js", "marks.js", "input.js", "page.js")
FULLY_TOLD = 20
LISTED_BRIEFLY = 200
REFUSED_LISTED = 200
OPEN_AT_FIRST = 3
DOUBTS_LISTED = 12
COMPARED = 12
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
    def harm(self) -> list[str]:
        """What the heading does not say already."""
        [alone, *others] = self.incident.findings
        if not others and story.told_by_evidence(self.incident):
            return [story.full_stop(alone.note)] if alone.note else []
        return list(self.story.harm) if others or alone.note else []


def render(report: ReportInput) -> str:
    history, judgement = report.history, report.judgement
    incidents = story.worst_first(story.incidents_of(judgement))
    shown = FULLY_TOLD + LISTED_BRIEFLY
    windows = [_window(incident) for incident in incidents[:shown]]
    told = [
        _Told(number, incident, story.tell_incident(history, incident), window)
        for number, (incident, window) in enumerate(
            zip(incidents[:FULLY_TOLD], windows, strict=False), 1
        )
    ]
    refused = story.refused_writes(history)
    locks = story.about_locks(history, judgement)
    drawn = timeline(history, judgement, incidents[:shown], windows)
    html = _template().render(
        report=report,
        verdict=judgement.verdict,
        headline=story.headline(history, judgement),
        facts=_facts(history, judgement),
        first=told[0] if told else None,
        counts=_count_rows(report) if locks else _count_rows_without_a_lock(report),
        told=told,
        brief=list(enumerate(incidents[FULLY_TOLD:shown], FULLY_TOLD + 1)),
        unlisted=max(0, len(incidents) - shown),
        refused=refused[:REFUSED_LISTED],
        refused_total=len(refused),
        stale_refused_total=judgement.counts.stale_writes_refused,
        data=drawn.json,
        kinds=drawn.kinds,
        clocks=charts(history),
        lasted_ns=last_moment_ns(history),
        guard=history.terms.guard,
        compared=story.side_by_side(judgement.definitions, COMPARED),
        about_locks=locks,
        nothing=story.nothing_found(history, judgement),
        doubts=judgement.doubts[:DOUBTS_LISTED],
        doubts_unlisted=max(0, len(judgement.doubts) - DOUBTS_LISTED),
    )
    # A lone surrogate can hide in what somebody else's file said; a file of UTF-8 cannot hold it.
    return html.encode("utf-8", "replace").decode()


def _window(incident: story.Incident) -> range:
    """The stretch of time to look at, in ns: the incident with some room around it."""
    points = [f.time_ns for f in incident.findings]
    points += [t for h in incident.holds for t in (h.acquire.start_ns, h.end_ns)]
    points += [o.start_ns for f in incident.findings for o in f.operations]
    evidence = (o for f in story.told_by_evidence(incident) for o in f.operations)
    points += [o.answer.time for o in evidence if o.answer]
    start_ns, end_ns = min(points), max(points)
    room_ns = max(CLOSEST_LOOK_NS, (end_ns - start_ns) // 12)
    return range(max(0, start_ns - room_ns), end_ns + room_ns)


def _facts(history: History, judgement: Judgement) -> Rows:
    """What was tested, as far as the history says."""
    terms, whole = history.terms, story.clients(history, judgement) is not None
    facts = (
        ("backend", terms.backend),
        ("workload", terms.workload),
        ("model", terms.model),
        ("permits", str(terms.permits) if terms.permits > 1 and terms.excludes else ""),
        ("guard", terms.guard if terms.stores else ""),
        ("lease", story.span(terms.ttl_ms * NS_PER_MS) if terms.ttl_ms else ""),
        ("faults", ", ".join(terms.faults) or ("none" if terms.backend else "")),
        ("clients", str(terms.clients or "")),
        ("free again", story.freed_again(terms, judgement)),
        ("not exercised", story.not_exercised(judgement)),
        ("lasted", story.span(last_moment_ns(history)) if whole else ""),
        ("seed", "" if terms.seed is None else str(terms.seed)),
    )
    return tuple((name, value) for name, value in facts if value)


def _options(text: str) -> Markup:
    """Sets the command line's options apart, and keeps them from being broken in two."""
    html = re.sub(r"--[a-z-]+( (fence|cas|redis))?", r"<code>\g<0></code>", str(escape(text)))
    return Markup(html)  # noqa: S704 - escaped before


def _count_rows(report: ReportInput) -> Rows:
    counts, terms = report.judgement.counts, report.history.terms
    accepted = _counted(counts.writes_accepted, "write accepted", "writes accepted")
    jobs = _counted(counts.jobs_run, "job run", "jobs run")
    writes = counts.writes_accepted + counts.writes_refused or (
        terms.stores and not counts.jobs_run
    )
    shared, entered = counts.shared_together, counts.entered_deepest
    lost = f"{counts.updates_lost:,} of {counts.updates_acknowledged:,}"
    guarded: Rows = (
        _counted(counts.writes_refused, "write refused", "writes refused"),
        ("of them stale", f"{counts.stale_writes_refused:,}"),
    )
    return (
        _counted(counts.operations, "operation", "operations"),
        _counted(counts.acquisitions, "time granted", "times granted"),
        _counted(counts.holders, "holder", "different holders"),
        *((("shared it at once", f"{shared:,}"),) if shared else ()),
        *_permits(terms, counts.held_together),
        *((("levels entered", f"{entered:,}"),) if entered > 1 else ()),
        _counted(counts.faults, "proven fault", "proven faults"),
        *((jobs,) if counts.jobs_run else ()),
        *((accepted,) if writes else ()),
        *((("acknowledged updates lost", lost),) if counts.updates_acknowledged else ()),
        *(guarded if writes and (terms.guard != "none" or counts.writes_refused) else ()),
    )


def _permits(terms: Terms, held: int) -> Rows:
    several = terms.permits > 1 and terms.excludes
    return ((f"held at once, of {terms.permits} permits", f"{held:,}"),) if several else ()


def _count_rows_without_a_lock(report: ReportInput) -> Rows:
    counts, clients = report.judgement.counts, story.clients(report.history, report.judgement)
    return (
        _counted(counts.operations, "operation", "operations"),
        *(() if clients is None else (_counted(clients, "client", "clients"),)),
        _counted(counts.faults, "proven fault", "proven faults"),
    )


def _counted(number: int, one: str, many: str) -> tuple[str, str]:
    return one if number == 1 else many, f"{number:,}"


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
    environment.filters.update(
        brief_title=story.incident_title, options=_options, sentence=story.sentence
    )
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
