"""`lockcheck export`: what it writes, where it must not, and what it says it left out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.formats.samples import SAMPLES
from tests.running import LOCKCHECK, lockcheck

USAGE = 2


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    lost = '{"time":12,"process":3,"type":"info","f":"lost","key":"k"}\n'
    stall = '{"time":13,"process":3,"type":"info","f":"stall","value":0}\n'
    path.write_text(SAMPLES["jsonl"] + lost + stall)
    return path


def test_what_is_left_out_is_said(history: Path) -> None:
    done = lockcheck("export", str(history), "--format", "csv")
    assert done.returncode == 0
    assert done.stdout.startswith("client,key,op")
    assert (
        "lockcheck: csv contains the clients' operations only: 1 notice is left out" in done.stderr
    )
    assert lockcheck("export", str(history), "--format", "edn").stderr == ""


def test_a_history_is_not_written_over_itself(history: Path) -> None:
    before = history.read_bytes()
    link = history.with_name("link")
    link.symlink_to(history)
    for out in (history, link):
        done = lockcheck("export", str(history), "--format", "edn", "--out", str(out))
        assert done.returncode == USAGE
        assert "is the history itself" in done.stderr
    assert history.read_bytes() == before


@pytest.mark.parametrize("out", [["--out", "/dev/full"], []], ids=["a file", "standard output"])
def test_a_full_disk(history: Path, out: list[str]) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [*LOCKCHECK, "export", str(history), "--format", "csv", *out],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == USAGE
    assert "cannot be written: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_what_is_closed(history: Path, closed: str) -> None:
    given = "-" if closed == "<&-" else str(history)
    command = [*LOCKCHECK, "export", given, "--format", "csv"]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == USAGE, done.stderr
    assert "is closed" in done.stderr
