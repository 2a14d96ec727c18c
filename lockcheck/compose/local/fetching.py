"""Brings servers that this host lacks, without root: Debian packages, fetched by this host's apt
and unpacked into lockcheck's cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lockcheck.cache import filled_with, filling, only_one_at_a_time, scratch
from lockcheck.compose.apt import Apt, can_fetch
from lockcheck.compose.runtime import Say
from lockcheck.errors import ClusterError
from lockcheck.servers.base import Command, Server, unpacked
from lockcheck.servers.faketime import CURE, LIBRARY, PACKAGE, find_library
from lockcheck.servers.versions import program_of, why_not_chosen


def why_no_server(server: Server) -> str:
    """Empty if the server is on this host, or can be fetched when a run needs it."""
    if program_of(server) is not None or can_be_fetched(server):
        return ""
    other = why_not_chosen(server)
    return f"no {server.title} here{f' ({other})' if other else ''}: {server.cure}"


def can_be_fetched(server: Server) -> bool:
    wanted = bool(server.debs) and not _wanted(server).is_there()
    return wanted and server.debs_suffice() and can_fetch()


def bring_server(server: Server, say: Say) -> None:
    program = program_of(server)
    if program is not None and not (_was_fetched(program, server) and can_be_fetched(server)):
        return
    _bring(_wanted(server), say)
    if program_of(server) is None:
        other = why_not_chosen(server) or "there is no program"
        raise ClusterError(
            f"Debian's packages do not provide {server.title} here: {other}", cure=server.cure
        )


def bring_faketime(say: Say) -> None:
    """Fetches libfaketime if this host lacks it: some servers' clocks can only be moved by it."""
    if find_library() is None and can_fetch():
        _bring(_Wanted(PACKAGE, PACKAGE, (PACKAGE,), "", CURE), say)
    library = find_library()
    if library is None or not library.is_file():
        raise ClusterError(
            f"{LIBRARY} is missing: without it these clocks cannot be moved", cure=CURE
        )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Packages, and the folder that they are unpacked into."""

    title: str
    folder: str
    packages: tuple[str, ...]
    suite: str  # of Debian; empty: this host's
    cure: str

    @property
    def list(self) -> str:
        return " ".join((self.suite, *self.packages))

    def is_there(self) -> bool:
        """Whether exactly these were unpacked: another version of lockcheck may need others."""
        return filled_with(unpacked(self.folder)) == self.list


def _wanted(server: Server) -> _Wanted:
    suite = server.debs_suite or server.suite
    return _Wanted(server.title, server.unpacked_as, server.debs, suite, server.cure)


def _was_fetched(program: Command, server: Server) -> bool:
    """Whether the program comes from fetched packages, of whichever version of lockcheck."""
    folder = str(unpacked(server.unpacked_as))
    return any(folder in word for word in program)


def _bring(wanted: _Wanted, say: Say) -> None:
    folder = unpacked(wanted.folder)
    with only_one_at_a_time(f"fetch-{folder.name}"):
        if not wanted.is_there():
            whose = f"Debian {wanted.suite}'s" if wanted.suite else "Debian's"
            packages = ", ".join(wanted.packages)
            say(f"fetching {wanted.title}: {whose} {packages}, unpacked once into {folder}")
            _fetch(wanted, folder)


def _fetch(wanted: _Wanted, target: Path) -> None:
    with scratch() as work, filling(target, wanted.list) as folder:
        try:
            Apt(work, wanted.suite).unpack(wanted.packages, folder)
        except ClusterError as error:
            raise ClusterError(
                f"{wanted.title} could not be fetched: {error.message}",
                cure=f"{error.cure}; or {wanted.cure}",
            ) from error
