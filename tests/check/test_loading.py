"""Copies of streams: only of histories, and not until the disk is full."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest

import lockcheck.check.loading
from lockcheck.check.loading import loaded
from lockcheck.errors import UserError
from lockcheck.formats import ReadOptions
from lockcheck.history import Event, EventType, History
from lockcheck.history.event import encode_event
from lockcheck.history.scan import Scan

Disk = namedtuple("Disk", "total used free")
MIB = 1 << 20


def events(number: int) -> bytes:
    kinds = (EventType.INVOKE, EventType.OK)
    events = (Event(time, 0, kinds[time % 2], "read", key="k") for time in range(number))
    return b"".join(encode_event(event) + b"\n" for event in events)


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(lockcheck.check.loading, "DISK_CHECK_BYTES", MIB)
    path = tmp_path / "history.jsonl.gz"
    path.write_bytes(gzip.compress(events(40_000)))
    return path


def with_free(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(total, total - free, free))


@pytest.mark.parametrize(
    ("total", "free", "fits"),
    [
        (1 << 40, (1 << 30) + 2 * MIB, True),  # far less than a twentieth, and enough
        (1 << 40, (1 << 30) + MIB - 1, False),
        (100 * MIB, 8 * MIB, True),  # a small disk
        (100 * MIB, 5 * MIB, False),
    ],
)
def test_the_disk_is_not_filled(
    packed: Path, monkeypatch: pytest.MonkeyPatch, total: int, free: int, fits: bool
) -> None:
    with_free(monkeypatch, total, free)
    if fits:
        with loaded(str(packed), ReadOptions()) as found:
            assert found.format == "jsonl"
        return
    with pytest.raises(UserError, match=f"next to nothing of {free} free bytes") as error:
        loaded(str(packed), ReadOptions()).__enter__()
    assert "TMPDIR" in error.value.cure


def test_a_disk_that_is_full(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def copy(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lockcheck.check.loading, "_copy", copy)
    with pytest.raises(UserError, match=r"cannot be unpacked to .*: No space left on device"):
        loaded(str(packed), ReadOptions()).__enter__()


@pytest.mark.parametrize("given", ["/dev/zero", "zeros.gz"])
def test_what_is_no_history_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(b"\0" * (1 << 24)))
    monkeypatch.setattr(lockcheck.check.loading, "_copy", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="in no format that lockcheck recognizes"):
        loaded(given, ReadOptions()).__enter__()


@pytest.mark.parametrize("packing", ["plain", "packed", "standard input"])
def test_a_check_that_is_killed_leaves_no_file(tmp_path: Path, packing: str) -> None:
    """Whether it has all of the history, or waits for the rest."""
    temporary, history = tmp_path / "temporary", tmp_path / "history.jsonl"
    temporary.mkdir()
    text = events(100_000)
    history.write_bytes(gzip.compress(text) if packing == "packed" else text)
    script = ONCE_LOADED.format(given="-" if packing == "standard input" else history)
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if packing == "standard input":
            process.stdin.write(text)
            process.stdin.close()
            process.stdin = None
        assert process.stdout.readline() == b"100000\n"
        process.kill()
    assert list(temporary.iterdir()) == []


ONCE_LOADED = """
import time
from lockcheck.check.loading import loaded
from lockcheck.formats import ReadOptions
with loaded("{given}", ReadOptions()) as found:
    print(len(found.history.rows().events), flush=True)
    time.sleep(600)  # until it is killed
"""


def test_a_byte_order_mark_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockcheck.check.loading, "LONG", 1)
    plain, marked = tmp_path / "plain.jsonl", tmp_path / "marked.jsonl"
    plain.write_bytes(events(10))
    marked.write_bytes(b"\xef\xbb\xbf" + events(10))
    with loaded(str(marked), ReadOptions()) as found:
        assert isinstance(found.history, History)
        expected = found.history
    with loaded(str(plain), ReadOptions()) as found:
        history = found.history
        assert (history.rows() if isinstance(history, Scan) else history) == expected
