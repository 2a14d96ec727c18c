"""What all clients of servers share: addresses, phases of a request, tables of errors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from lockcheck.history import EventType, Refusal

Address = tuple[str, int]


class Phase(StrEnum):
    CONNECT = "connect"  # nothing was sent: the operation certainly did not happen
    COMMAND = "command"  # the request may have been sent


class WireFailure(Exception):
    """A request failed or was not confirmed; `cause` is the driver's error."""

    def __init__(self, phase: Phase, where: str, cause: Exception) -> None:
        super().__init__(f"{where}: {type(cause).__name__}: {cause}")
        self.phase = phase
        self.cause = cause


class ConnectionEndedError(Exception):
    """The session is over, so nothing was sent."""


class Refused(Exception):
    """The lock refused: the operation certainly did not happen. `detail` is for people."""

    def __init__(self, code: Refusal, detail: str = "") -> None:
        super().__init__(detail or code.value)
        self.code = code


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """What an error means for the operation; an error without a row is unknown (`info`)."""

    phase: str
    exception: str  # the name of the class, or of one that it inherits from
    outcome: EventType
    meaning: str
    refused: Refusal = Refusal.UNAVAILABLE  # where the outcome is `fail`


class NotWithdrawnError(Exception):
    """A client gave up waiting without a confirmed withdrawal: it may still be granted the lock."""


NOT_WITHDRAWN = ErrorRow(
    "command", "NotWithdrawnError", EventType.INFO, "gave up, but its withdrawal was not confirmed"
)


def not_withdrawn(key: str, why: Exception) -> WireFailure:
    return WireFailure(Phase.COMMAND, key, NotWithdrawnError(str(why)))


class Failure(NamedTuple):
    """How an operation that was not confirmed goes into the history."""

    outcome: EventType
    error: str
    refused: Refusal | None


def classify(errors: tuple[ErrorRow, ...], failure: Refused | WireFailure) -> Failure:
    """`fail` where the operation certainly did not happen, else `info`."""
    if isinstance(failure, Refused):
        return Failure(EventType.FAIL, str(failure), failure.code)
    names = {kind.__name__ for kind in type(failure.cause).__mro__}
    for row in errors:
        if row.phase == failure.phase and row.exception in names:
            refused = row.refused if row.outcome is EventType.FAIL else None
            return Failure(row.outcome, f"{row.meaning}: {failure}", refused)
    return Failure(EventType.INFO, f"not in the table of errors: {failure}", None)
