"""What others have added: locks, servers, workloads, faults, storages, checks and models of
installed packages.

A package names what it adds in entry points, in the groups `lockcheck.backends`, `.servers`,
`.workloads`, `.faults`, `.storages`, `.checks` and `.models`:

    [project.entry-points."lockcheck.backends"]
    my-lock = "my_package.lock:BACKEND"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from lockcheck.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


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
        self._known: dict[str, T | str] = dict(own)  # a place, until it is looked up
        self._outside: frozenset[str] = frozenset()
        self._complete = False

    def __getitem__(self, name: str) -> T:
        if name not in self._known:
            self._look_at_what_is_installed()
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

    def _look_at_what_is_installed(self) -> None:
        if self._complete:
            return
        from importlib.metadata import entry_points

        added: dict[str, T] = {}
        for point in entry_points(group=self._group):
            each = _loaded(point, self._kind)
            if each.name in self._known or each.name in added:
                raise _refused(point, f"there is a {each.name!r} already")
            added[each.name] = each
        self._known |= added
        self._outside = frozenset(added)
        self._complete = True

    def is_from_outside(self, name: str) -> bool:
        return name in self and name in self._outside


def _loaded(point: EntryPoint, kind: type[T]) -> T:
    try:
        added = point.load()
    except Exception as error:  # the package's code may raise anything: the package is named
        raise _refused(point, f"{type(error).__name__}: {error}") from error
    if not isinstance(added, kind):
        raise _refused(point, f"it is a {type(added).__name__}, not a {kind.__name__}")
    return added


def _refused(point: EntryPoint, reason: str) -> UserError:
    package = point.dist.name if point.dist else "an installed package"
    return UserError(
        f"{package} adds {point.name!r} to {point.group}, and that cannot be used: {reason}",
        cure=f"fix {point.value}, or uninstall {package}",
    )
