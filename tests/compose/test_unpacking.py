"""What the engine hands over ends up below its folder, or nowhere."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from lockcheck.compose.docker.unpacking import unpack
from lockcheck.errors import ClusterError


def archive(*members: tuple[str, bytes, bytes]) -> io.BytesIO:
    """Each: its name, its type, its content (of a link: where it points)."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, kind, content in members:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            if kind == tarfile.REGTYPE:
                entry.size = len(content)
            else:
                entry.linkname = content.decode()
            tar.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return packed


def test_files_and_folders(tmp_path: Path) -> None:
    unpack(
        archive(("./c1", tarfile.DIRTYPE, b""), ("./c1/history.jsonl", tarfile.REGTYPE, b"{}\n")),
        tmp_path,
    )
    assert (tmp_path / "c1" / "history.jsonl").read_bytes() == b"{}\n"


@pytest.mark.parametrize("name", ["../out", "c1/../../out", "/lockcheck-out"])
def test_nothing_outside(name: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(ClusterError, match="outside"):
        unpack(archive((name, tarfile.REGTYPE, b"x")), target)
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_no_links_and_no_devices(kind: bytes, tmp_path: Path) -> None:
    unpack(archive(("thing", kind, b"/etc/passwd")), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_archive(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="not an archive"):
        unpack(io.BytesIO(b"x" * 2000), tmp_path)
