"""What clients tell, as the nemesis hears it."""

from __future__ import annotations

from lockcheck.history import Event, EventType


def granted(node: str, key: str = "k1", time: int = 0) -> Event:
    return Event(time=time, process=0, type=EventType.OK, f="acquire", key=key, node=node)


def released(node: str) -> Event:
    return Event(time=0, process=0, type=EventType.INVOKE, f="release", key="k1", node=node)


def lost(node: str) -> Event:
    return Event(time=0, process=0, type=EventType.INFO, f="lost", key="k1", node=node)
