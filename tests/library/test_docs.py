"""What docs/library.md shows is run, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

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
    assert "2 passed" in done.stdout
