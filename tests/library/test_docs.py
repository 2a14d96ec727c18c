"""What docs/library.md shows is run, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from lockcheck.checker import Blame, Finding
from lockcheck.checker.doubt import Doubt
from lockcheck.checker.finding import Counts
from lockcheck.history import Hold
from lockcheck.library.log import LoggedOperation
from lockcheck.results.judgement import Judgement
from tests.running import RUNTIMES, need

DOCUMENT = Path(__file__).parents[2] / "docs" / "library.md"
BLOCK = re.compile(r"(?:^    .*\n|^\n)+", re.MULTILINE)
NAMED = re.compile(r"# (\w+\.py)\n")


def examples() -> dict[str, str]:
    """By their names: the indented blocks whose first line is one."""
    blocks = (
        dedent(found.group()).strip("\n") + "\n" for found in BLOCK.finditer(DOCUMENT.read_text())
    )
    return {named[1]: block for block in blocks if (named := NAMED.match(block))}


OF_A_JUDGEMENT = (Judgement, Finding, Blame, Hold, Counts, Doubt)


def test_what_a_judgement_has_is_there() -> None:
    """Each name in the table of the section, up to its parameters."""
    section = DOCUMENT.read_text().partition("a judgement.\n")[2].partition("It also takes")[0]
    names = re.findall(r"`(?:judgement\.|cluster\.)?([a-z_]+)(?:\([^)]*\))?`", section)
    known = {name for each in OF_A_JUDGEMENT for name in dir(each)}
    fields = {name for each in OF_A_JUDGEMENT for name in each.__dataclass_fields__}
    words = {"ok", "unknown", "report", "print"}
    assert len(names) > 20
    assert set(names) - known - fields - words == set()


def test_what_an_operation_takes_is_there() -> None:
    section = DOCUMENT.read_text().partition("## A verdict")[2].partition("`log.lost(")[0]
    called = set(re.findall(r"`([a-z_]+)\(", section))
    assert {"refused", "unknown", "released", "queued", "turn_came"} <= called
    assert called <= set(dir(LoggedOperation))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_example_passes(runtime: str, tmp_path: Path) -> None:
    need(runtime)
    assert list(examples()) == ["holder.py", "test_my_lock.py"]
    for name, text in examples().items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--basetemp",
            str(tmp_path / "tmp"),
            "test_my_lock.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "LOCKCHECK_RUN_RUNTIME": runtime},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
