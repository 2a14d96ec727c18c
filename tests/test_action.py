"""The action for CI: its steps are run here as a runner would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.running import need

ACTION: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
FILE = """
[matrix]
seeds = 1
[matrix.run]
runtime = "local"
time-limit = "5s"
[[matrix.row]]
backend = "redis"
nemesis = "none"
"""


def run(name: str, folder: Path, **given: str) -> subprocess.CompletedProcess[str]:
    """A step in bash, as runners have it: it ends with the first command that fails."""
    step, inputs = STEPS[name], ACTION["inputs"]

    def filled(text: str) -> str:
        return re.sub(
            r"\$\{\{ inputs\.(\w+) \}\}",
            lambda found: given.get(found[1], inputs[found[1]]["default"]),
            text,
        )

    variables = {key: filled(value) for key, value in step.get("env", {}).items()}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env=os.environ | variables | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_input_is_a_part_of_a_script() -> None:
    """It comes by a variable: then a shell has nothing in it to run."""
    assert all("${{" not in step.get("run", "") for step in STEPS.values())


@pytest.mark.parametrize("name", [name for name, step in STEPS.items() if "run" in step])
def test_each_script_can_be_read(name: str) -> None:
    """The one that sets what users may do is not run here: it is for a runner's whole machine."""
    read = ["bash", "-n", "-c", STEPS[name]["run"]]
    assert subprocess.run(read, capture_output=True, check=False).returncode == 0


def test_what_is_there_is_not_installed_again(tmp_path: Path) -> None:
    done = run("Install", tmp_path, install="")
    assert done.returncode == 0, done.stderr
    assert "lockcheck" in done.stdout


def test_more_arguments_are_words_and_no_commands(tmp_path: Path) -> None:
    (tmp_path / "lockcheck.toml").write_text(FILE)
    hostile = "--list; touch owned $(touch owned) `touch owned`"
    done = run("Run the campaign", tmp_path, arguments=hostile)
    assert done.returncode == 2  # such arguments there are not
    assert not (tmp_path / "owned").exists()
    listed = run("Run the campaign", tmp_path, arguments="--list -k redis")
    assert listed.returncode == 0, listed.stderr
    assert "redis::none" in listed.stdout


@pytest.mark.cluster
def test_the_campaign_is_run_and_its_reports_are_there(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "lockcheck.toml").write_text(FILE)
    done = run("Run the campaign", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = tmp_path / "lockcheck-reports"
    names = {path.name for path in reports.iterdir()}
    assert {"index.html", "junit.xml", "summary.md", "results.ndjson"} <= names
