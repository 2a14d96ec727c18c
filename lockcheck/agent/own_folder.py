"""Mounts the nodes' folder of the local runtime at a path that is the same in every run: a server
without root's rights may not pass the folders above it, and the paths of sockets must be short."""

from __future__ import annotations

from pathlib import Path

from lockcheck.errors import ClusterError
from lockcheck.nodes.namespaces import MS_BIND, mount

OWN_FOLDER = Path("/proc/driver")  # in the run's own /proc: every Linux has it, no server uses it


def mount_own_folder(folder: Path) -> None:
    """For this process and its children."""
    try:
        mount(str(folder), OWN_FOLDER, flags=MS_BIND)
    except OSError as error:
        raise ClusterError(
            f"{folder} cannot be mounted for the run: {error.strerror}",
            cure="use --runtime docker, or choose another folder with --out DIR",
        ) from error
