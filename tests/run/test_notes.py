"""The notes of a run as lines of JSON, and as words on a terminal."""

from __future__ import annotations

import io
from contextlib import closing

import msgspec
import pytest

from lockcheck.cli.progress import Terminal
from lockcheck.run.notes import (
    Judged,
    Kept,
    LeaseOutlived,
    LiveState,
    Note,
    Planned,
    Preparing,
    Ready,
    Stop,
    Stopping,
    json_lines,
)
from lockcheck.runs.record import record_of
from tests.runs.test_record import CONFIG, facts

NOTES: dict[str, Note] = {
    "seed": Planned((("seed", "7"),)),
    "building an image": Preparing("building an image"),
    "expect overlaps": LeaseOutlived(),
    "7 nodes ready 1,234 ms after the start": Ready(7, 1234.4),
    "time limit reached": Stopping(Stop.TIME_LIMIT),
    "two clients hold the lock at once": Stopping(Stop.OVERLAP),
    "more clients hold the lock than may at once": Stopping(Stop.TOO_MANY_HOLDERS),
    "interrupted: healing the faults": Stopping(Stop.INTERRUPTED),
    "enter r1": Kept({"r1": "enter r1"}),
}
STATE = LiveState(1.5, 1200, 30, ("k1: c3",), ("pause of c3",), 1)


def test_each_note_is_a_line_of_json() -> None:
    out = io.BytesIO()
    write = json_lines(out)
    notes = [*NOTES.values(), STATE, Judged(record_of(facts(), CONFIG, None))]
    for note in notes:
        write(note)
    lines = out.getvalue().splitlines()
    assert [msgspec.json.decode(line, type=Note) for line in lines] == notes
    assert lines[-3] == b'{"note":"kept","commands":{"r1":"enter r1"}}'


@pytest.mark.parametrize(("words", "note"), NOTES.items())
def test_a_terminal_puts_notes_into_words(
    words: str, note: Note, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(Terminal()) as terminal:
        terminal.show(note)
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


def test_text_from_outside_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    with closing(Terminal()) as terminal:
        terminal.show(Preparing("\x1b[2Jpulling [red]it"))
    assert capsys.readouterr().err == "· ?[2Jpulling [red]it\n"
