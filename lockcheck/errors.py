"""All errors that lockcheck raises on purpose, by who has to act.

    LockcheckError            exit
    ├── UserError              2    the command, a file or a setting is wrong: the user fixes it
    │   └── HistoryError       2    a history cannot be read: names the place and the reason
    ├── ClusterError           4    servers, nodes or the host do not do what the run needs
    │   ├── NoRuntimeError     4    this host cannot run these servers at all
    │   └── FaultError         4    a fault could not be injected or healed
    └── InternalError          4    a bug in lockcheck, to be reported

A message is one line that names the cause; `cure` is one line that says what to do about it.
"""

from __future__ import annotations

import errno


class LockcheckError(Exception):
    exit_code = 4

    def __init__(self, message: str, *, cure: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.cure = cure

    def __str__(self) -> str:
        return f"{self.message}\n  {self.cure}" if self.cure else self.message


class UserError(LockcheckError):
    exit_code = 2


class HistoryError(UserError):
    """A history that cannot be read or makes no sense, with the place of the mistake."""

    def __init__(
        self,
        reason: str,
        *,
        source: str = "history",
        line: int = 0,
        column: int | None = None,
        cure: str = "",
    ) -> None:
        place = f"{source}, line {line}" if line else source
        if line and column:
            place = f"{place}, column {column}"
        super().__init__(f"{place}: {reason}", cure=cure)
        self.reason = reason
        self.line = line
        self.column = column


class ClusterError(LockcheckError):
    exit_code = 4


class NoRuntimeError(ClusterError):
    pass


class FaultError(ClusterError):
    pass


class InternalError(LockcheckError):
    exit_code = 4


def is_out_of_space(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
