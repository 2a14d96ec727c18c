"""Whose files lockcheck relies on: root's, its own user's, and those of the user who called sudo.

Root reads no settings of another user, executes nothing that another user could have put there, and
writes nothing where another user could lead it elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from lockcheck.errors import UserError

ROOT = 0


def own_users() -> set[int]:
    """Those whose programs are executed."""
    return {ROOT, os.geteuid()}


def trusted_users() -> set[int]:
    """Those whose settings are obeyed, and in whose folders root writes: also the user who called
    sudo, who might have written there anyway."""
    caller = os.environ.get("SUDO_UID")
    if not caller:
        return own_users()
    try:
        return own_users() | {int(caller)}
    except ValueError as error:
        raise UserError(
            f"SUDO_UID={caller} is not the number of a user", cure="unset it: sudo sets it"
        ) from error


def doubt_about(about: os.stat_result, users: Collection[int]) -> str:
    """Why what has this status may be the work of others than these users; empty if it cannot."""
    if about.st_uid not in users:
        return f"belongs to another user (uid {about.st_uid})"
    if stat.S_ISLNK(about.st_mode):  # its mode means nothing
        return ""
    by_group = about.st_mode & stat.S_IWGRP and not _is_private_group(about)
    if about.st_mode & stat.S_IWOTH or by_group:
        return "can be written by other users"
    return ""


def _is_private_group(about: os.stat_result) -> bool:
    """Whether its owner is alone in its group, which many systems make for each user."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(about.st_uid).pw_name, grp.getgrgid(about.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner and not set(group.gr_mem) - {owner}


def doubt_on_the_way(path: Path, users: Collection[int]) -> str:
    """Why the path may lead to another place tomorrow, by others than these users; or empty.

    In a folder with the sticky bit others can add files, but replace none: it is no danger, unless
    the path ends there.
    """
    try:
        with suppress(FileNotFoundError):
            path.stat()  # raises for a circle of links
        for step, is_last in _looked_at(path):
            about = step.lstat()
            sticky = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX
            doubt = doubt_about(about, users)
            if doubt and not (sticky and not is_last and about.st_uid in users):
                return f"{step} {doubt}"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{path} cannot be looked at: {error.strerror}"
    return ""


def _looked_at(path: Path) -> Iterator[tuple[Path, bool]]:
    """What the kernel looks at on the way: folders, and links with those that they lead through."""
    at, left = Path("/"), list(reversed(path.absolute().parts))
    while left:
        step = at / left.pop()
        yield step, not left
        if step.is_symlink():
            left += reversed(step.readlink().parts)  # if it is absolute, it begins with "/" again
        else:
            at = step


def refuse_foreign_orders(path: Path) -> None:
    """Raises UserError if this is root, and others may decide what this file asks to be started."""
    if os.geteuid() == ROOT and (doubt := doubt_on_the_way(path, trusted_users())):
        raise UserError(
            f"root carries out nothing that {path} asks for: {doubt}",
            cure="do it as that user, or in a place where only root can write",
        )


def refuse_foreign_place(path: Path) -> None:
    """Raises UserError if this is root, and others may decide what is written to this path."""
    if os.geteuid() == ROOT and (doubt := doubt_on_the_way(path, trusted_users())):
        raise UserError(
            f"root does not write to {path.parent}: {doubt}",
            cure="do it as that user, or in a place where only root can write",
        )
