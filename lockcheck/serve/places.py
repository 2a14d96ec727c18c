"""Files below a folder, opened so that nothing outside of it can be read: not by `..` and not by a
link, even one that another user puts there meanwhile."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from lockcheck.files import bounded

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


def is_plain(name: str) -> bool:
    """Whether it names something in a folder, and no other place."""
    return name not in ("", ".", "..") and not {"/", "\0"} & {*name}


@contextmanager
def opened_below(root: Path, parts: Sequence[str]) -> Iterator[BufferedReader]:
    """A regular file; anything else, and a link anywhere below `root`, is an OSError."""
    if not parts or not all(map(is_plain, parts)):
        raise OSError(errno.EINVAL, "it is no name of a file", "/".join(parts))
    *folders, name = parts
    at = os.open(root, _FOLDER)
    try:
        for folder in folders:
            below = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        descriptor = os.open(name, _FILE, dir_fd=at)
    finally:
        os.close(at)
    with open(descriptor, "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", name)
        yield file


def read_below(root: Path, parts: Sequence[str]) -> bytes:
    """A document."""
    with opened_below(root, parts) as file:
        return bounded(file, Path(*parts))
