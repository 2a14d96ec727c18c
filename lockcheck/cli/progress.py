"""Shows a run while it lasts, on a terminal or in the log of a nightly job; always on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lockcheck.cli.gate import plain
from lockcheck.run import notes
from lockcheck.run.notes import LiveState, Note, Stop
from lockcheck.words import amount

QUIET_PROGRESS_S = 5.0  # between lines of progress where output is kept, as in a log
WAITING = "waiting for open operations and faults"
STOPPING = {
    Stop.TIME_LIMIT: f"time limit reached: {WAITING}",
    Stop.OVERLAP: f"two clients hold the lock at once: {WAITING}",
    Stop.TOO_MANY_HOLDERS: f"more clients hold the lock than may at once: {WAITING}",
    Stop.INTERRUPTED: "interrupted: healing the faults and ending the clients",
}


class Terminal:
    """Updates one line on a terminal; elsewhere prints a line every few seconds."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._live: Live | None = None
        self._last_line = time.monotonic()
        self._mute = False

    def show(self, note: Note) -> None:
        match note:
            case LiveState():
                self._show_state(note)
            case notes.Planned():
                self._print(_table(note.rows))
            case notes.Judged():
                self.close()
            case notes.Kept():
                self._show_commands(note.commands)
            case notes.Preparing():
                self._tell(note.text)
            case notes.LeaseOutlived():
                self._tell("some holders will work for longer than their lease: expect overlaps")
            case notes.Ready():
                self._tell(f"{note.nodes} nodes ready {note.took_ms:,.0f} ms after the start")
            case notes.Stopping():
                self._tell(STOPPING[note.why])

    def _tell(self, text: str) -> None:
        self._print(f"[dim]·[/] {plain(text)}")

    def _show_state(self, state: LiveState) -> None:
        if self._console.is_terminal:
            self._quietly(lambda: self._live_display().update(_live_line(state)))
        elif time.monotonic() - self._last_line > QUIET_PROGRESS_S:
            self._last_line = time.monotonic()
            self._print(_live_line(state))

    def _show_commands(self, commands: dict[str, str]) -> None:
        self.close()
        self._print("\nThe cluster is kept. Look around in a node; Ctrl-C ends it.")
        for name, command in commands.items():
            self._print(f"  {name:>4}  {plain(command)}")

    def _live_display(self) -> Live:
        if self._live is None:
            self._live = Live(console=self._console, refresh_per_second=10, transient=True)
            self._live.start()
        return self._live

    def close(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            self._quietly(live.stop)

    def _print(self, *what: RenderableType) -> None:
        self._quietly(lambda: self._console.print(*what))

    def _quietly(self, show: Callable[[], None]) -> None:
        """A stream that is closed ends the progress, and not the run."""
        if self._mute:
            return
        try:
            show()
        except (OSError, ValueError, SystemExit):  # rich leaves by SystemExit when a pipe is closed
            self._mute = True


def _table(rows: tuple[tuple[str, str], ...]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for label, value in rows:
        table.add_row(label, plain(value))
    return table


def _live_line(state: LiveState) -> RenderableType:
    line = Text(f"{state.elapsed_s:5.1f} s  {state.operations:>6,} operations  ")
    line.append(f"{state.acquisitions:>5,} acquired")
    holders = f"held by {', '.join(state.holders[:4])}" if state.holders else "not held"
    line.append(f"  {holders}", style="cyan")
    line.append(f"  fault: {', '.join(state.faults)}" if state.faults else "", style="yellow")
    line.append(
        f"  {amount(state.overlaps, 'overlap')}", style="bold red" if state.overlaps else "dim"
    )
    return line
