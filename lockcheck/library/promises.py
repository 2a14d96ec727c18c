"""What a lock promises, by which a log is judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypedDict, cast

import msgspec

from lockcheck.errors import UserError
from lockcheck.history import Terms


class Promised(TypedDict, total=False):
    """The lock's promises, by which it is judged, and the guard of the data."""

    ttl_ms: int  # the lease, or the session's timeout, of acquires that do not name their own
    session: bool
    ends_with: str  # a session ends with its "connection" or "server": see `lock_nodes`
    lock_nodes: tuple[str, ...]
    tells_release: bool  # False: a release is `ok` whether or not the lock was still held
    fair: bool
    permits: int
    model: str
    guard: str


def terms_of(promised: Promised) -> Terms:
    """Raises a UserError for what is no promise, or no value of one."""
    from lockcheck.checker.modelling import SEMAPHORES

    given = cast("Mapping[str, object]", promised)
    known = dict(_known())
    for name, value in given.items():
        if name not in Promised.__annotations__:
            names = ", ".join(Promised.__annotations__)
            raise UserError(f"unknown promise {name!r}", cure=f"choose from: {names}")
        if name in known and value not in known[name]:
            names = ", ".join(filter(None, known[name]))
            raise UserError(f"unknown {name} {value!r}", cure=f"choose from: {names}")
        try:
            msgspec.convert({_in_files(name): value}, Terms)
        except msgspec.ValidationError as error:
            reason = str(error).partition(" - at")[0]
            raise UserError(f"{name}={value!r} is not possible", cure=reason) from error
    if promised.get("model") in SEMAPHORES and "permits" not in promised:
        raise UserError(f"a {promised['model']} has a number of permits", cure="permits=N")
    return msgspec.convert({_in_files(name): value for name, value in given.items()}, Terms)


def _known() -> Iterator[tuple[str, tuple[str, ...]]]:
    from lockcheck.checker.check import GUARDS
    from lockcheck.checker.linearizability import MODELS

    yield "guard", ("none", *sorted(GUARDS))
    yield "model", ("", *MODELS)
    yield "ends_with", ("", "connection", "server")


def _in_files(name: str) -> str:
    return name.replace("_", "-")
