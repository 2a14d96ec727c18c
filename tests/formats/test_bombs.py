"""Small files that take much: some of those in `tests.tools.bombs`, which tries all."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.running import LOCKCHECK
from tests.tools.bombs import QUICK, at_once, check, csv, format_of, write_bomb
from tests.waiting import wait_for

SOON_S = 2.0
BUSY_S = 3.0  # more, for a machine that has other work


@pytest.mark.parametrize("name", QUICK)
def test_neither_memory_nor_time_grows_without_bound(tmp_path: Path, name: str) -> None:
    ended = check(write_bomb(name, tmp_path), format_of(name), "--report", str(tmp_path / "page"))
    assert not ended.wrong, ended


@pytest.mark.parametrize("worked_s", [0.5, 1.5, 3.0])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_soon_whatever_it_does(
    tmp_path: Path, worked_s: float, number: signal.Signals
) -> None:
    path = tmp_path / "h.csv"
    path.write_text("".join(csv(at_once(50_000))))
    with subprocess.Popen(
        [*LOCKCHECK, "check", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as checking:
        wait_for(lambda: worked_by_child(checking.pid) >= worked_s, "it is at work")
        checking.send_signal(number)
        sent = time.monotonic()
        assert checking.wait(60) == 128 + number
        assert time.monotonic() - sent < SOON_S + BUSY_S
        output, errors = checking.communicate()
        assert (output, errors.strip()) == (b"", b"")


def worked_by_child(pid: int) -> float:
    """Seconds of a processor that the child of this process has used."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    if not children:
        return 0.0
    fields = Path(f"/proc/{children[0]}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
