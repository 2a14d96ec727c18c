"""What others have added: locks, servers, workloads, faults, storages, checks and models of
installed packages.

A package names what it adds in entry points, in the groups `lockcheck.backends`, `.servers`,
`.workloads`, `.faults`, `.storages`, `.checks` and `.models`: one each, or an iterable of several.

    [project.entry-points."lockcheck.backends"]
    my-lock = "my_package.lock:BACKEND"
    my-locks = "my_package.locks:BACKENDS"

An entry point that cannot be used is left out. Its own name is refused with the reason; so that a
command can say what it went without, `newly_broken` has the reasons, each once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from lockcheck.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


class Named(Protocol):
    @property
    def name(self) -> str: ...


class UnknownNameError(UserError, KeyError):
    """A KeyError, so that `in` and `get` work as with any mapping."""


T = TypeVar("T", bound=Named)
PLACE = re.compile(r"[\w.]+:[\w.]+\s*(\[.*\])?")
_broken: list[UserError] = []


def newly_broken() -> list[UserError]:
    """The entry points that turned out to be unusable since the last call."""
    found = _broken.copy()
    del _broken[: len(found)]
    return found


class Registry(MutableMapping[str, T]):
    """By name: our own, and what installed packages add to them.

    Each of our own is imported when it is looked up: a client of a run needs one lock, and its
    start should not wait for all the others. Entry points are searched for when a name is none of
    ours, or all names are wanted: the search takes longer than the start of a client.
    """

    def __init__(self, group: str, kind: type[T], room: str, own: Mapping[str, str]) -> None:
        """`own`: by name, where each is in the package `room`, as in "etcd.etcd:BACKEND"."""
        self._group = group
        self._kind = kind
        self._room = room
        self.own = tuple(own)  # names
        self._known: dict[str, T | str] = dict(own)  # a place, until it is looked up
        self._outside: dict[str, str] = {}  # the packages, by the names of what they add
        self._refused: dict[str, UserError] = {}  # by the names of entry points
        self._complete = False
        self._completing = RLock()  # a package may look here while it is imported

    def __getitem__(self, name: str) -> T:
        if name not in self._known:
            self._look_at_what_is_installed()
        if name not in self._known:
            raise self._refused.get(name) or self._unknown(name)
        found = self._known[name]
        if isinstance(found, str):
            module, _, attribute = found.partition(":")
            found = cast("T", getattr(import_module(f"{self._room}.{module}"), attribute))
            self._known[name] = found
        return found

    def __setitem__(self, name: str, value: T) -> None:
        self._known[name] = value

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        self._look_at_what_is_installed()
        return iter(self._known)

    def __len__(self) -> int:
        self._look_at_what_is_installed()
        return len(self._known)

    def _unknown(self, name: str) -> UserError:
        one = self._group.partition(".")[2].removesuffix("s")
        return UnknownNameError(f"unknown {one} {name!r}", cure=f"choose from: {', '.join(self)}")

    def _look_at_what_is_installed(self) -> None:
        with self._completing:
            if self._complete:
                return
            self._complete = True
            for point in _entry_points(self._group):
                try:
                    self._add(point)
                except UserError as refused:
                    self._refused.setdefault(point.name, refused)
                    _broken.append(refused)

    def _add(self, point: EntryPoint) -> None:
        """All that it names, or nothing."""
        added: dict[str, T] = {}
        for each in _loaded(point, self._kind):
            if each.name in self._known or each.name in added:
                raise _refusal(point, f"there is a {each.name!r} already")
            added[each.name] = each
        self._known |= added
        self._outside |= dict.fromkeys(added, point.dist.name if point.dist else "")

    def package_of(self, name: str) -> str:
        """The installed package that adds it; empty for one of ours."""
        return self._outside.get(name, "") if name in self else ""


def _entry_points(group: str) -> Iterable[EntryPoint]:
    """Where one package's cannot be parsed, those of each package by itself."""
    from importlib.metadata import distributions, entry_points

    try:
        return entry_points(group=group)
    except (TypeError, ValueError):
        each = {distribution.name: distribution for distribution in reversed([*distributions()])}
        return [point for one in each.values() for point in _entry_points_of(one, group)]


def _entry_points_of(package: Distribution, group: str) -> Iterable[EntryPoint]:
    try:
        return package.entry_points.select(group=group)
    except (TypeError, ValueError) as error:
        if f"[{group}]" in (package.read_text("entry_points.txt") or ""):
            reason = f"the entry points of {package.name} cannot be read: {error}"
            _broken.append(UserError(reason, cure=f"uninstall {package.name}, or install it anew"))
        return []


def _loaded(point: EntryPoint, kind: type[T]) -> list[T]:
    if not PLACE.fullmatch(point.value):
        raise _refusal(point, f"{point.value!r} is no MODULE:NAME")
    try:
        added = point.load()
        several = added.values() if isinstance(added, Mapping) else added
        is_one = isinstance(added, kind | str) or not isinstance(several, Iterable)
        found = [added] if is_one else list(several)
    except (Exception, SystemExit) as error:  # its code may raise anything: the package is named
        raise _refusal(point, f"{type(error).__name__}: {error}") from error
    for each in found:
        if not isinstance(each, kind):
            raise _refusal(point, f"it is a {type(each).__name__}, not a {kind.__name__}")
    if not found:
        raise _refusal(point, f"it is an empty {type(added).__name__}")
    return found


def _refusal(point: EntryPoint, reason: str) -> UserError:
    package = point.dist.name if point.dist else "an installed package"
    return UserError(
        f"{package} adds {point.name!r} to {point.group}, and that cannot be used: {reason}",
        cure=f"fix {point.value or point.name}, or uninstall {package}",
    )
