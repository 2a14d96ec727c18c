"""Files that are written whole or not at all, and through no link."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from lockcheck.files import writing
from tests.running import LOCKCHECK, lockcheck
from tests.runs.test_store import HISTORY

USAGE, UNKNOWN = 2, 3
WAYS = {
    "--report": ("check", "--report"),
    "--out": ("export", "--format", "jsonl", "--out"),
}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    path.write_text(HISTORY)
    return path


def test_a_file_is_there_as_a_whole_or_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with writing(file) as out:
        out.write(b"before")
    with suppress(KeyboardInterrupt), writing(file) as out:
        out.write(b"aft")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text() == "before"


@pytest.mark.parametrize("way", WAYS)
def test_a_link_is_replaced_and_not_followed(way: str, history: Path, tmp_path: Path) -> None:
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("keep me")
    link.symlink_to(precious)
    command, *options = WAYS[way]
    done = lockcheck(command, str(history), *options, str(link))
    assert done.returncode in {0, UNKNOWN}, done.stderr
    assert precious.read_text() == "keep me"
    assert not link.is_symlink()
    assert link.stat().st_size > 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", ["/dev/stdout", "/proc/self/fd/1", "pipe"])
@pytest.mark.parametrize("into", ["file", "another process"])
def test_a_stream_is_written_to_as_it_is(
    way: str, stream: str, into: str, history: Path, tmp_path: Path
) -> None:
    """Also where standard output is a file: it stays the same one."""
    (command, *options), pipe, file = WAYS[way], tmp_path / "pipe", tmp_path / "file"
    file.write_text("x" * 10)
    before = file.stat().st_ino
    reader = None
    if stream == "pipe":
        subprocess.run(["mkfifo", pipe], check=True)
        stream = str(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    with file.open("ab") as out:
        done = subprocess.run(
            [*LOCKCHECK, command, str(history), *options, stream],
            stdout=out if into == "file" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode in {0, UNKNOWN}, done.stderr
    written = reader.communicate()[0] if reader else done.stdout or file.read_bytes()
    assert b"<!doctype html>" in written or b'"f":"acquire"' in written
    assert file.stat().st_ino == before
    assert not reader or pipe.is_fifo()


def test_nothing_is_left_of_what_cannot_be_written(history: Path, tmp_path: Path) -> None:
    full = tmp_path / "no" / "such" / "file"
    done = lockcheck("export", str(history), "--format", "edn", "--out", str(full))
    assert done.returncode == USAGE
    assert f"{full} cannot be written: No such file or directory" in done.stderr
    assert list(tmp_path.iterdir()) == [history]
