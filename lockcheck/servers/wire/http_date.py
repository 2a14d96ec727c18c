"""The wall clock of servers that speak HTTP: the Date of their answers, in seconds."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

from lockcheck.servers.base import Question, TellsTime

NS_PER_S = 10**9


def tells_date(path: str) -> TellsTime:
    """Reads the server's clock from the Date of its answer to a GET of this path."""
    ask = f"GET {path} HTTP/1.0\r\n\r\n".encode()
    return TellsTime("its Date", Question(ask, rb"\r\nDate: ([^\r]+)\r\n"), _read_ns, step_ms=1000)


def _read_ns(answer: re.Match[bytes]) -> int:
    return int(parsedate_to_datetime(answer[1].decode()).timestamp()) * NS_PER_S
