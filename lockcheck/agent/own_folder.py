"""Mounts the nodes' folder of the local runtime at a path that only this run has.

The path to the folder may lead through another user's folder, and that user could put a link in its
place to redirect what root writes. Checked once and mounted elsewhere, it stays the same folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from lockcheck.errors import ClusterError
from lockcheck.nodes.namespaces import MS_BIND, mount


def identity_of(handle: int) -> str:
    status = os.fstat(handle)
    return f"{status.st_dev}:{status.st_ino}"


@dataclass(frozen=True, slots=True)
class OwnFolder:
    # In the run's own /proc: every Linux has it, and no server uses it.
    """The folder and its identity, `device:inode`."""

    place: ClassVar[Path] = Path("/proc/driver")

    path: Path
    identity: str

    def mount(self) -> None:
        """Mounts it at `place`, for this process and its children."""
        try:
            handle = os.open(self.path, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if identity_of(handle) != self.identity:
                    raise ClusterError(
                        f"another folder was put in the place of {self.path}",
                        cure="choose a folder with --out DIR that only you can write to",
                    )
                mount(f"/proc/self/fd/{handle}", self.place, flags=MS_BIND)
            finally:
                os.close(handle)
        except OSError as error:
            raise ClusterError(
                f"{self.path} cannot be mounted for the run: {error.strerror}",
                cure="use --runtime docker, or choose another folder with --out DIR",
            ) from error
