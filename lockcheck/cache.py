"""lockcheck's cache, XDG_CACHE_HOME/lockcheck: what was fetched once, and whether it still is that.

It is executed, so no other user may be able to change it: owners and modes tell that. A note in
each folder has the digests of its files: who could change them could change it, so it shows damage.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

from lockcheck.errors import ClusterError, UserError
from lockcheck.files import make_folder, opened, read_document
from lockcheck.trust import doubt_about, doubt_on_the_way, own_users

NOTE = "fetched.json"
SCRATCH = "scratch"
OWN = 0o700
WRITTEN_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_root() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lockcheck"


def cache_folder() -> Path:
    """The folder, which is created if need be."""
    folder = cache_root()
    _refuse_foreign(folder)
    try:
        make_folder(folder, OWN)
    except OSError as error:
        raise ClusterError(
            f"the cache folder {folder} cannot be created: {error.strerror}",
            cure="set XDG_CACHE_HOME to a folder that this user may write",
        ) from error
    return folder


def _refuse_foreign(path: Path) -> None:
    if doubt := doubt_on_the_way(path, own_users()):
        raise _not_ours(doubt)


def _not_ours(doubt: str) -> UserError:
    return UserError(
        f"nothing in the cache {cache_root()} is executed: {doubt}",
        cure="name a folder in XDG_CACHE_HOME that only this user can write; sudo -H takes root's",
    )


# --- what was fetched ----------------------------------------------------------------------------


@contextmanager
def filling(folder: Path, content: str = "") -> Iterator[Path]:
    """An empty folder, which takes the place of this one when it is filled: one that exists is
    complete. `content` says what it is filled with."""
    with scratch() as work:
        complete = work / folder.name
        complete.mkdir(0o755)
        yield complete
        for path in complete.rglob("*"):  # the umask, or a package, may let others write
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~WRITTEN_BY_OTHERS)
        note = {"content": content, "files": _digests(complete)}
        (complete / NOTE).write_text(json.dumps(note))
        (complete / NOTE).chmod(0o644)
        make_folder(folder.parent, OWN)
        shutil.rmtree(folder, ignore_errors=True)
        complete.rename(folder)


def filled_with(folder: Path) -> str | None:
    """What the folder was filled with; None if it was not. Raises UserError if it is not as it was
    then, or if another user could have changed it."""
    _refuse_foreign(folder)
    try:
        about = (folder / NOTE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    content, damage = _compared(folder, about.st_ino, about.st_mtime_ns)
    if damage:
        raise UserError(
            f"{folder} is not as it was fetched: {damage}",
            cure=f"rm -r {folder}, and it is fetched again",
        )
    return content


@cache
def _compared(folder: Path, *_identity: int) -> tuple[str, str]:
    """Its content, and what is wrong with it. Once in a process: the largest takes 0.1 s."""
    try:
        note = json.loads(read_document(folder / NOTE))
        content, before, now = str(note["content"]), dict(note["files"]), _digests(folder)
    except OSError as error:
        return "", f"{error.filename}: {error.strerror}"
    except (ValueError, KeyError, TypeError):
        return "", f"{NOTE} is damaged"
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return content, f"{changed[0]} was changed" if changed else ""


def _digests(folder: Path) -> dict[str, str]:
    """Of all files but the note, and where links lead, by their paths in the folder."""
    found = {}
    for path in folder.rglob("*"):
        about = path.lstat()
        if doubt := doubt_about(about, own_users()):
            raise _not_ours(f"{path} {doubt}")
        name = str(path.relative_to(folder))
        if stat.S_ISLNK(about.st_mode):
            found[name] = f"-> {path.readlink()}"
        elif not stat.S_ISDIR(about.st_mode) and name != NOTE:
            with opened(path) as file:
                found[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


# --- work in progress ----------------------------------------------------------------------------


@contextmanager
def only_one_at_a_time(name: str) -> Iterator[None]:
    """A lock of this user's processes, by name; the kernel releases it if its holder dies."""
    with (cache_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder to work in, locked as long as its process lives: what a killed one leaves, another
    process removes."""
    with ExitStack() as stack:
        with only_one_at_a_time(SCRATCH):
            _remove_left()
            folder = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}-", dir=cache_folder()))
            stack.enter_context(_locked(folder))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


def remove_leftovers() -> int:
    """Removes the folders of processes that were killed; returns how many."""
    root = cache_root()
    if doubt_on_the_way(root, own_users()) or not any(root.glob(f"{SCRATCH}-*")):
        return 0
    with only_one_at_a_time(SCRATCH):
        return _remove_left()


def _remove_left() -> int:
    removed = 0
    for left in cache_root().glob(f"{SCRATCH}-*"):
        with suppress(BlockingIOError, FileNotFoundError), _locked(left):  # in use, or just removed
            shutil.rmtree(left, ignore_errors=True)
            removed += 1
    return removed


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Raises BlockingIOError if another process holds it."""
    handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)
