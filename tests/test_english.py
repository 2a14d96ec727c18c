"""Words of which the house had too many: what stands there falls, and never rises.

Say what a thing is or does instead: reported, recorded, answered, known, returned, no client,
whichever client. Where a word is right (a client is told of its loss), it counts all the same.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lockcheck

PACKAGE = Path(lockcheck.__file__).parent
WORDS = re.compile(r"(?<![a-z])(told|said|nobody|whoever|somebody)(?![a-z])", re.IGNORECASE)
MOST = {"checker": 21, "config": 1, "nemesis": 1, "results": 6}
ROOMS = sorted(
    path.stem
    for path in PACKAGE.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
)


def number_in(path: Path) -> int:
    """In docstrings, comments, names and texts alike."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return sum(len(WORDS.findall(file.read_text())) for file in files)


@pytest.mark.parametrize("room", ROOMS)
def test_the_number_only_falls(room: str) -> None:
    number, most = number_in(PACKAGE / room), MOST.get(room, 0)
    assert number <= most, f"{room}: {number} of them, and {most} before: say it in other words"
    assert number == most, f"{room}: fewer of them, {number}: write that number into MOST"


def test_names_and_sentences_count(tmp_path: Path) -> None:
    (tmp_path / "room.py").write_text('"""Nobody is told."""\ntold_ns = fold = 1  # saidan\n')
    assert number_in(tmp_path) == 3
