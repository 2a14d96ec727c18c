"""Unpacks archives from the engine: files and folders only, and none outside of the target.

tarfile's own `filter="data"` came with Python 3.11.4, and Debian 12 has 3.11.2.
"""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from lockcheck.errors import ClusterError


def unpack(packed: IO[bytes], target: Path) -> None:
    """Leaves out links and devices: we write none, and none can be trusted."""
    try:
        with tarfile.open(fileobj=packed) as tar:
            for member in tar:
                _unpack_one(tar, member, target)
    except tarfile.TarError as error:
        raise ClusterError(f"what the engine sent is not an archive: {error}") from error


def _unpack_one(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    place = PurePosixPath(member.name)
    if place.is_absolute() or ".." in place.parts:
        raise ClusterError(f"the engine sent {member.name!r}, which lies outside of its folder")
    path = target / place
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif member.isfile() and (content := tar.extractfile(member)) is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with content, path.open("wb") as file:
            shutil.copyfileobj(content, file)
