"""What all clients of servers share: addresses, how far a request got, what an error means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lockcheck.history import EventType

Address = tuple[str, int]


class Phase(StrEnum):
    CONNECT = "connect"  # nothing was sent: what was asked certainly did not happen
    COMMAND = "command"  # it may have been sent


class WireFailure(Exception):
    """A server did not do what it was asked, or did not confirm it; `cause`: the driver's error."""

    def __init__(self, phase: Phase, where: str, cause: Exception) -> None:
        super().__init__(f"{where}: {type(cause).__name__}: {cause}")
        self.phase = phase
        self.cause = cause


class ConnectionEndedError(Exception):
    """The session is over, so nothing was sent."""


class Refused(Exception):
    """The server refused explicitly: the operation certainly did not happen."""


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """What an error means for the operation; an error without a row is unknown (`info`)."""

    phase: str
    exception: str  # the name of the class, or of one that it inherits from
    outcome: EventType
    meaning: str


class NotWithdrawnError(Exception):
    """A client gave up waiting, and nobody confirmed that it left the queue: it may be let in."""


NOT_WITHDRAWN = ErrorRow(
    "command", "NotWithdrawnError", EventType.INFO, "gave up, but its withdrawal was not confirmed"
)


def not_withdrawn(key: str, why: Exception) -> WireFailure:
    return WireFailure(Phase.COMMAND, key, NotWithdrawnError(str(why)))


def classify(errors: tuple[ErrorRow, ...], failure: Refused | WireFailure) -> tuple[EventType, str]:
    """Whether an operation that failed certainly did not happen, and why, in a few words."""
    if isinstance(failure, Refused):
        return EventType.FAIL, str(failure)
    names = {kind.__name__ for kind in type(failure.cause).__mro__}
    for row in errors:
        if row.phase == failure.phase and row.exception in names:
            return row.outcome, f"{row.meaning}: {failure}"
    return EventType.INFO, f"not in the table of errors: {failure}"
