"""The cache folder of lockcheck, XDG_CACHE_HOME/lockcheck, and a lock between its processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lockcheck.errors import ClusterError
from lockcheck.servers.base import cache_root


def cache_folder() -> Path:
    """The folder, which is created if need be."""
    folder = cache_root()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ClusterError(
            f"the cache folder {folder} cannot be created: {error.strerror}",
            cure="set XDG_CACHE_HOME to a folder that this user may write",
        ) from error
    return folder


@contextmanager
def only_one_at_a_time(name: str) -> Iterator[None]:
    """A lock of this user's processes, by name; the kernel releases it if its holder dies."""
    import fcntl

    with (cache_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
