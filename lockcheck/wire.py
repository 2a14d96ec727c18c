"""What every client of a server needs to tell: where it talks to, and how far it got."""

from __future__ import annotations

from enum import StrEnum

Address = tuple[str, int]


class Phase(StrEnum):
    CONNECT = "connect"  # nothing was sent: what was asked certainly did not happen
    COMMAND = "command"  # it may have been sent


class WireFailure(Exception):
    """A server did not do what it was asked, or did not say so. `cause` is the library's error."""

    def __init__(self, phase: Phase, where: str, cause: Exception) -> None:
        super().__init__(f"{where}: {type(cause).__name__}: {cause}")
        self.phase = phase
        self.cause = cause
