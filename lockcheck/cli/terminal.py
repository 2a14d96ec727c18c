"""Prints a verdict to the terminal, and the progress of reading a long history."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockcheck.results.story.narrative import Narrative
    from lockcheck.runs.facts import RunFacts

MINIMIZING_SHOWN_EACH_S = 2.0
SHOWN_AFTER_S = 1.0  # shorter reading needs no bar
WIDEST = 120  # longer lines are hard to read


def print_verdict(
    narrative: Narrative, report: Path | None, facts: RunFacts, seal: str = ""
) -> None:
    """What happened, to which clients, when, whose fault it is, what helps, and where to look."""
    from rich.console import Console

    from lockcheck.results.printing import WIDTH_OF_A_LOG, print_story

    console = Console(highlight=False)
    console.width = min(console.width, WIDEST) if console.is_terminal else WIDTH_OF_A_LOG
    print_story(console, narrative, report, facts, seal)


def minimizing_progress() -> Callable[[int, int], None]:
    """Prints a line now and then, once minimizing takes longer than a moment."""
    began, shown = time.monotonic(), 0

    def show(left: int, tried: int) -> None:
        nonlocal shown
        number = int((time.monotonic() - began) / MINIMIZING_SHOWN_EACH_S)
        if number > shown:
            shown = number
            print(f"minimizing: {left:,} operations, {tried:,} parts judged", file=sys.stderr)

    return show


@contextmanager
def reading_progress() -> Iterator[Callable[[int], object]]:
    """A bar for a history that takes long to read; shown only after SHOWN_AFTER_S."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeElapsedColumn

    columns = ("reading", BarColumn(pulse_style="dim"), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None, visible=False)
        began = time.monotonic()

        def read(size: int) -> None:
            shown = time.monotonic() - began > SHOWN_AFTER_S
            progress.update(task, advance=size, visible=shown)

        yield read
