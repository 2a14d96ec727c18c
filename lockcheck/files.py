"""Files that another user may have put there: read without waiting and within bounds; and files
that are written whole or not at all, and through no link."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

from lockcheck.trust import refuse_foreign_place

MOST_BYTES = 1 << 24  # of a document: each of ours has a thousandth of it
# Links by which the system names what a process has open.
OPEN_FILES = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")


@contextmanager
def opened(path: Path, *, follow: bool = False) -> Iterator[BufferedReader]:
    """A regular file. Anything else is an OSError: a pipe has no end, and devices do things."""
    about = path.stat() if follow else path.lstat()
    _refuse_irregular(about, path)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123
        _refuse_irregular(os.fstat(file.fileno()), path)  # another one by now
        yield file


def _refuse_irregular(about: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(about.st_mode):
        kind = "a link" if stat.S_ISLNK(about.st_mode) else "no regular file"
        raise OSError(errno.EINVAL, f"it is {kind}", str(path))


def read_document(path: Path, *, follow: bool = False) -> bytes:
    with opened(path, follow=follow) as file:
        return bounded(file, path)


def bounded(file: IO[bytes], path: Path) -> bytes:
    """The content of a document; an OSError if it is too long for one."""
    content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it is longer than {MOST_BYTES} bytes", str(path))
    return content


def make_folder(path: Path, mode: int) -> None:
    """Makes a folder, and those above it, with no more rights than these, whatever the umask."""
    try:
        path.mkdir(mode)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(path.parent, mode)
        path.mkdir(mode)


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file for writing. It appears when it is complete, and replaces a link. A device or a
    pipe is written to as it is. Refused to root where others may have changed the way there."""
    if str(path.absolute()).startswith(OPEN_FILES):
        with path.open("wb") as out:
            yield out
        return
    unfinished = path.with_name(f".lockcheck-{secrets.token_hex(4)}")
    refuse_foreign_place(unfinished)
    if _is_stream(path):
        with path.open("wb") as out:
            yield out
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(unfinished, flags, 0o644), "wb") as out:  # noqa: PTH123
            yield out
        unfinished.replace(path)
    finally:
        with suppress(FileNotFoundError):  # it has its name by now
            unfinished.unlink()


def _is_stream(path: Path) -> bool:
    """Whether it is a device or a pipe."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode))
