"""One line of a Jepsen history, in any notation."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from lockcheck.errors import HistoryError
from lockcheck.formats.names import our_client, our_f
from lockcheck.history.event import LATEST_NS, NEMESIS, EventType

LARGEST_NUMBER = (1 << 63) - 1
LONGEST_PROCESS = 18  # digits
NEMESIS_PROCESS = f":{NEMESIS}"
LONGEST_ERROR = 500
NO_FENCE = 0
_TYPES = {kind.value: kind for kind in EventType}
TOKENS = ("token", ":token", "fence", ":fence")


class JepsenOp(NamedTuple):
    """One line of a Jepsen history."""

    line: int
    column: int
    process: int | str  # a client; with a colon in front, something else
    type: EventType
    f: str  # in our words
    value: object
    time_ns: int | None = None
    error: str | None = None
    key: str | None = None
    token: int | None = None
    node: str | None = None
    of: int | str | None = None  # whose hold a renewal extends

    @property
    def by_client(self) -> bool:
        return type(self.process) is int or not str(self.process).startswith(":")


def op_of_map(said: dict[str, object], source: str, line: int, column: int) -> JepsenOp:
    """From a map whose keys are Jepsen's, without their colons."""
    try:
        return JepsenOp(
            line,
            column,
            _process(said["process"]),
            _TYPES[_word(said["type"])],
            our_f(_word(said["f"])),
            said.get("value"),
            _time_ns(said.get("time")),
            error_text(said.get("error")),
            as_text(said["key"]) if said.get("key") is not None else None,
            token_in(said) if "token" in said or "fence" in said else None,
            as_text(said["node"]) if said.get("node") is not None else None,
            _process(said["of"]) if said.get("of") is not None else None,
        )
    except KeyError as error:
        missing = {"process", "type", "f"} - said.keys()
        reason = (
            f"an operation without its :{min(missing)}"
            if missing
            else f"its :type is none of {', '.join(_TYPES)}: {error.args[0][:40]}"
        )
    except ValueError as error:
        reason = str(error)
    raise HistoryError(reason, source=source, line=line, column=column)


def _word(said: object) -> str:
    return (
        said.removeprefix(":") if isinstance(said, str) else "" if said is None else as_text(said)
    )


def _process(said: object) -> int | str:
    if isinstance(said, str):
        return process_named(said)
    if type(said) is not int:
        raise ValueError(f"its :process is neither a number nor a name: {as_text(said)[:40]}")
    if abs(said) > LARGEST_NUMBER:
        raise ValueError(f"a process beyond 64 bits: {str(said)[:40]}")
    return said


def process_named(name: str) -> int | str:
    """Digits are a number, a keyword is not a client, and every other text is a client."""
    digits = name.removeprefix(":")
    if is_plain_number(digits):
        return int(digits)
    if name == NEMESIS:
        return NEMESIS_PROCESS
    if not digits:
        raise ValueError("its :process has no name")
    return our_client(name)


def is_plain_number(name: str) -> bool:
    """`7` is the client 7; `007` is another client."""
    if not (name.isascii() and name.isdigit() and len(name) <= LONGEST_PROCESS):
        return False
    return name == "0" or not name.startswith("0")


def _time_ns(said: object) -> int | None:
    if said is None:
        return None
    if type(said) is not int:
        raise ValueError(f"its :time is not a number of nanoseconds: {as_text(said)[:40]}")
    if abs(said) > LATEST_NS:
        raise ValueError(f"its :time is out of range: {str(said)[:40]}")
    return said


def error_text(said: object) -> str | None:
    return None if said is None else as_text(said)[:LONGEST_ERROR]


def token_in(value: object) -> int | None:
    if not isinstance(value, dict):
        return None
    for name in TOKENS:
        token = value.get(name)
        if type(token) is int:
            return None if token == NO_FENCE and name.endswith("fence") else token
    return None


def as_text(value: object) -> str:
    """A text itself, everything else as JSON."""
    if isinstance(value, str):
        return str(value)
    return msgspec.json.encode(value, order="sorted").decode()
