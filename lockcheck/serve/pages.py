"""The pages of `lockcheck serve`. What comes from records is escaped text; the content security
policy lets the browser run and apply only the script and style written here, by their hashes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from math import ceil
from pathlib import Path
from urllib.parse import quote

import jinja2

from lockcheck.results import report as of_a_run
from lockcheck.results.pages import environment
from lockcheck.serve.difference import Part
from lockcheck.serve.entries import PAGES, Entry, Kind, Status
from lockcheck.serve.index import Snapshot
from lockcheck.serve.query import ROWS, SORTS, Query
from lockcheck.words import listed, plain

HERE = Path(__file__).parent
LONGEST = 200
MOST_NAMED = 5
SIGNS = {
    Status.VIOLATION: "✗",
    Status.ERROR: "!",
    Status.UNKNOWN: "?",
    Status.CUT_SHORT: "✂",
    Status.RUNNING: "▶",
    Status.OK: "✓",
}
COLUMNS = ("name", "time", "backend", "nemesis", "verdict", "duration")


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the list, in words."""

    entry: Entry
    now: float

    @property
    def id(self) -> str:
        """As the address has it."""
        return path_of(self.entry.parts)

    @property
    def link(self) -> str:
        """Of its page; empty: there is none yet."""
        page = next((name for name in self.entry.files if name in PAGES), "")
        return self.file(page) if page else ""

    @property
    def others(self) -> list[tuple[str, str]]:
        return [
            (name, self.file(name)) for name in self.entry.files if self.file(name) != self.link
        ]

    def file(self, name: str) -> str:
        return f"/files/{path_of((*self.entry.parts, name))}"

    @property
    def place(self) -> str:
        """What it is, and in which folder or of which campaign."""
        match self.entry.kind, self.entry.parts:
            case Kind.TRIAL, (*parts, _trials, _name, _run) if parts:
                return f"run of {'/'.join(parts)}"
            case Kind.RUN, (*parts, _run) if parts:
                return f"run in {'/'.join(parts)}"
            case kind, parts:
                return f"{kind} {'/'.join(parts)}" if kind is Kind.CAMPAIGN else str(kind)

    @property
    def time(self) -> str:
        if not self.entry.started:
            return ""
        return f"{datetime.fromtimestamp(self.entry.started).astimezone():%Y-%m-%d %H:%M:%S}"

    @property
    def duration(self) -> str:
        if self.entry.status is Status.RUNNING and self.entry.started:
            so_far = timedelta(seconds=max(0, round(self.now - self.entry.started)))
            return f"{so_far} so far"
        return "" if self.entry.took_s is None else _clock(self.entry.took_s)

    @property
    def backends(self) -> str:
        return listed(self.entry.backends, MOST_NAMED)

    @property
    def nemeses(self) -> str:
        return listed(self.entry.nemeses, MOST_NAMED)


def path_of(parts: Sequence[str]) -> str:
    return "/".join(quote(os.fsencode(part), safe="") for part in parts)


def _clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def list_page(root: Path, snapshot: Snapshot, query: Query, now: float) -> bytes:
    found = query.chosen(snapshot)
    last = max(1, ceil(len(found) / ROWS))
    page = min(query.page, last)
    start = (page - 1) * ROWS
    return _rendered(
        "list.html",
        title=f"Results in {root.name or root}",
        root=str(root),
        snapshot=snapshot,
        query=query,
        lines=[Line(entry, now) for entry in found[start : start + ROWS]],
        start=start,
        number=len(found),
        page=page,
        last=last,
        kinds=[str(kind) for kind in Kind],
        statuses=[str(status) for status in Status],
        sorts=SORTS,
        columns=COLUMNS,
    )


def difference_page(before: Entry, after: Entry, parts: Sequence[Part], now: float) -> bytes:
    both = [Line(before, now), Line(after, now)]
    return _rendered("difference.html", title="Difference", both=both, parts=parts)


def problem_page(problem: str) -> bytes:
    return _rendered("problem.html", title="Nothing to show", problem=problem)


def _rendered(name: str, **values: object) -> bytes:
    html = _environment().get_template(name).render(**values)
    return html.encode("utf-8", "replace")  # names of folders can have what UTF-8 cannot


@cache
def policy() -> str:
    """That of every page, and what the list does besides: ask for itself, and send its forms."""
    usual = str(_environment().globals["policy"])
    own = "form-action 'self'; connect-src 'self'; frame-ancestors 'none'"
    return usual.replace("form-action 'none'", own)


@cache
def _environment() -> jinja2.Environment:
    script = (HERE / "serve.js").read_text("utf-8")
    script = f"'use strict';\n(() => {{\n{script}\n}})();"
    made = environment(HERE, (of_a_run.PAGE / "page.css", HERE / "serve.css"), script)
    made.filters.update(plain=plain)
    made.globals.update(signs=SIGNS, longest=LONGEST)
    return made
