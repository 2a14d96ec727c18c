"""An event as a line of Jepsen's `history.edn`.

The fields that Jepsen knows have its names; ours (`:key`, `:token`, `:ttl-ms`...) are added if they
have a value, and Jepsen ignores them. Its checkers expect the key inside the value (`independent`),
so a history of several keys has to be split by `:key` first.
"""

from __future__ import annotations

import re

import msgspec

from lockcheck.history.event import NEMESIS, RUN, STORAGE, Event

PLAIN_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
EXTRA_FIELDS = (
    *("key", "node", "token", "error", "refused", "seq", "base"),
    *("ttl_ms", "valid_ms", "fault", "of"),
)
FLAGS = ("shared", "blind", "unsaid")
NOT_CLIENTS = (NEMESIS, STORAGE, RUN)
_json = msgspec.json.Encoder(order="deterministic").encode


def edn_line(index: int, event: Event) -> bytes:
    parts = [
        f":process {_process(event.process)}",
        f":type :{event.type}",
        f":f {_name(event.f)}",
        f":value {edn(event.value)}",
        f":time {event.time}",
        f":index {index}",
    ]
    for name in EXTRA_FIELDS:
        value = getattr(event, name)
        if value is not None:
            parts.append(f":{name.replace('_', '-')} {edn(value)}")
    parts += [f":{name} true" for name in FLAGS if getattr(event, name)]
    return f"{{{', '.join(parts)}}}\n".encode()


def _process(process: int | str) -> str:
    """A client's name stays a string: to Jepsen, a keyword is not a client."""
    return f":{process}" if process in NOT_CLIENTS else edn(process)


def _name(name: str) -> str:
    """A keyword if possible: Jepsen compares with keywords."""
    return f":{name}" if PLAIN_NAME.fullmatch(name) else edn(name)


def edn(value: object) -> str:
    """A JSON value in EDN; most values are written the same in both."""
    if value is None:
        return "nil"
    if isinstance(value, dict):
        inner = " ".join(f"{edn(str(key))} {edn(each)}" for key, each in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(edn, value))}]"
    return _json(value).decode()
