"""The page of a sweep: one HTML file without a script that needs nothing but itself."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2

from lockcheck.matrix.folder import Plan
from lockcheck.matrix.report.html import STYLES
from lockcheck.matrix.report.lines import LONGEST, LONGEST_COMMAND, link
from lockcheck.results.pages import environment
from lockcheck.sweep.surface import Field, Surface, written
from lockcheck.sweep.table import gone
from lockcheck.words import plain

HERE = Path(__file__).parent
SHADES = 4  # of a share above zero, by quarters


def page(surface: Surface, plan: Plan) -> str:
    html = (
        _environment()
        .get_template("sweep.html")
        .render(surface=surface, plan=plan, config=plan.cells[0].config)
    )
    return html.encode("utf-8", "replace").decode()


def shade(field: Field) -> str:
    """A class of the style: how dark the field is."""
    if not field.answers:
        return "is-unknown"
    rate = field.broke / field.answers
    return f"broke-{-int(-rate * SHADES // 1)}" if rate else "is-as-expected"


@cache
def _environment() -> jinja2.Environment:
    made = environment(HERE, (*STYLES, HERE / "sweep.css"))
    made.filters.update(plain=plain, written=written, gone=gone, shade=shade, link=link)
    made.globals.update(longest=LONGEST, longest_command=LONGEST_COMMAND)
    return made
