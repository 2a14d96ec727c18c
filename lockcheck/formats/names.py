"""Other tools' names for the operations that lockcheck calls acquire, release, read and write."""

from __future__ import annotations

from functools import lru_cache

from lockcheck.history.event import NEMESIS, STORAGE, F, Notice

SYNONYMS = {
    F.ACQUIRE: ("acquire", "lock", "trylock", "tryacquire", "acquirelock", "getlock"),
    F.RELEASE: ("release", "unlock", "releaselock"),
    F.RENEW: ("renew", "extend", "refresh", "keepalive", "renewlock"),
    F.READ: ("read", "get", "r"),
    F.WRITE: ("write", "put", "set", "w"),
    F.CAS: ("cas", "compareandset", "compareandswap"),
    F.ADD: ("add",),
}
LOST_WORDS = frozenset({"lost", "locklost"})
KNOWN = {word: f for f, words in SYNONYMS.items() for word in words}
LOCKING = frozenset({F.ACQUIRE, F.RELEASE, F.RENEW})

# Names with another meaning in our own histories.
NOTICES = frozenset({Notice.TERMS, Notice.STALL, Notice.CLOCK_STEP, Notice.CLOCKS})
NOT_CLIENTS = frozenset({NEMESIS, STORAGE})


def known_f(name: str) -> str | None:
    """Our name of an operation; None if lockcheck does not know it."""
    return KNOWN.get(name) or KNOWN.get(_plain(name))


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def is_lost(name: str) -> bool:
    """Whether a row or span of this name is a notice that the lock was lost, and no operation."""
    return _plain(name) in LOST_WORDS


def known_row_f(name: str) -> str | None:
    """Like `known_f`, but also knows the notice that the lock was lost."""
    return known_f(name) or (Notice.LOST if is_lost(name) else None)


@lru_cache(maxsize=1000)
def our_row_f(name: str) -> str:
    return known_row_f(name) or our_f(name)


@lru_cache(maxsize=1000)
def our_f(name: str) -> str:
    """Our name of the operation, or else the given one, which no check knows or judges."""
    return known_f(name) or (f"{name} operation" if name in NOTICES else name)


def our_client(name: str) -> str:
    return f"client {name}" if name in NOT_CLIENTS else name
