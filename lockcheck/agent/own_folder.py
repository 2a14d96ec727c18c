"""The nodes' folder in the local runtime, at a path that only this run has.

The way to the folder may lead through somebody else's, who could put a link in its place and so
direct what root writes. Looked at once, and mounted elsewhere, it stays the one that it was.
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
    # In the /proc of the run's own: every Linux has it, and nothing that a server wants is there.
    place: ClassVar[Path] = Path("/proc/driver")

    path: Path
    identity: str

    def mount(self) -> None:
        """From then on this process and its children find it at `place`."""
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
