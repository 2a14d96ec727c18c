"""One line of a Jepsen history, in any notation."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from lockcheck.errors import HistoryError
from lockcheck.formats.names import our_client, our_f
from lockcheck.formats.tables.cells import LARGEST_NUMBER
from lockcheck.history.event import LATEST_NS, NEMESIS, EventType

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
    process: int | str  # a client, or with a colon in front something else
    type: EventType
    f: str  # our name of the operation
    value: object
    time_ns: int | None = None
    error: str | None = None
    key: str | None = None
    token: int | None = None
    node: str | None = None
    of: int | str | None = None  # of a renewal: the process whose hold it extends
    shared: bool = False  # an acquire of a shared lock
    unsaid: bool = False  # a release that is `ok` whether or not the lock was still held

    @property
    def by_client(self) -> bool:
        return type(self.process) is int or not str(self.process).startswith(":")


def op_of_map(fields: dict[str, object], source: str, line: int, column: int) -> JepsenOp:
    """The operation in a map whose keys are Jepsen's, without their colons."""
    try:
        return JepsenOp(
            line,
            column,
            _process(fields["process"]),
            _TYPES[_word(fields["type"])],
            our_f(_word(fields["f"])),
            fields.get("value"),
            _time_ns(fields.get("time")),
            error_text(fields.get("error")),
            as_text(fields["key"]) if fields.get("key") is not None else None,
            token_in(fields) if "token" in fields or "fence" in fields else None,
            as_text(fields["node"]) if fields.get("node") is not None else None,
            _process(fields["of"]) if fields.get("of") is not None else None,
            shared=fields.get("shared") is True,
            unsaid=fields.get("unsaid") is True,
        )
    except KeyError as error:
        missing = {"process", "type", "f"} - fields.keys()
        reason = (
            f"an operation without its :{min(missing)}"
            if missing
            else f"its :type is none of {', '.join(_TYPES)}: {error.args[0][:40]}"
        )
    except ValueError as error:
        reason = str(error)
    raise HistoryError(reason, source=source, line=line, column=column)


def _word(value: object) -> str:
    if isinstance(value, str):
        return value.removeprefix(":")
    return "" if value is None else as_text(value)


def _process(value: object) -> int | str:
    if isinstance(value, str):
        return process_named(value)
    if type(value) is not int:
        raise ValueError(f"its :process is neither a number nor a name: {as_text(value)[:40]}")
    if abs(value) > LARGEST_NUMBER:
        raise ValueError(f"a process beyond 64 bits: {str(value)[:40]}")
    return value


def process_named(name: str) -> int | str:
    """The process of this name: a number, with a colon in front no client, or any other name."""
    digits = name.removeprefix(":")
    if is_plain_number(digits):
        return int(digits)
    if name == NEMESIS:
        return NEMESIS_PROCESS
    if not digits:
        raise ValueError("its :process has no name")
    return our_client(name)


def is_plain_number(name: str) -> bool:
    """Whether the name is a number in its usual form: `7` is the client 7, `007` another client."""
    if not (name.isascii() and name.isdigit() and len(name) <= LONGEST_PROCESS):
        return False
    return name == "0" or not name.startswith("0")


def _time_ns(value: object) -> int | None:
    if value is None:
        return None
    if type(value) is not int:
        raise ValueError(f"its :time is not a number of nanoseconds: {as_text(value)[:40]}")
    if abs(value) > LATEST_NS:
        raise ValueError(f"its :time is out of range: {str(value)[:40]}")
    return value


def error_text(value: object) -> str | None:
    return None if value is None else as_text(value)[:LONGEST_ERROR]


def token_in(value: object) -> int | None:
    """The fencing token in a map; None if there is none."""
    if not isinstance(value, dict):
        return None
    for name in TOKENS:
        token = value.get(name)
        if type(token) is int:
            return None if token == NO_FENCE and name.endswith("fence") else token
    return None


def as_text(value: object) -> str:
    """A string itself, any other value as JSON."""
    if isinstance(value, str):
        return str(value)
    return msgspec.json.encode(value, order="sorted").decode()
