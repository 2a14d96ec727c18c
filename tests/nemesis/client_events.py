"""What clients write, as the nemesis hears it."""

from __future__ import annotations

import time
from typing import Protocol

from lockcheck.history import Event, EventType


class Observer(Protocol):
    def observe(self, event: Event) -> None: ...


def process_of(node: str) -> int:
    return int(node[1:])


def granted(node: str, key: str = "k1", at_ns: int | None = None) -> Event:
    return _of(node, key, EventType.OK, "acquire", at_ns)


def released(node: str, key: str = "k1") -> Event:
    return _of(node, key, EventType.INVOKE, "release", None)


def lost(node: str, key: str = "k1") -> Event:
    return _of(node, key, EventType.INFO, "lost", None)


def asks(node: str, key: str = "k1", at_ns: int | None = None) -> Event:
    return _of(node, key, EventType.INVOKE, "acquire", at_ns)


def grant(observer: Observer, node: str) -> None:
    """It asks for the lock, and gets it."""
    observer.observe(asks(node))
    observer.observe(granted(node))


def release(observer: Observer, node: str) -> None:
    """And is answered."""
    asked = released(node)
    observer.observe(asked)
    observer.observe(
        Event(asked.time, asked.process, EventType.OK, "release", asked.key, node=node)
    )


def _of(node: str, key: str, kind: EventType, f: str, at_ns: int | None) -> Event:
    at_ns = time.monotonic_ns() if at_ns is None else at_ns
    return Event(at_ns, process_of(node), kind, f, key, node=node)
