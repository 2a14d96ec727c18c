"""Servers that speak HTTP tell the time in every answer: their wall clock, in seconds."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

from lockcheck.servers.base import Question, TellsTime

NS_PER_S = 10**9


def tells_date(path: str) -> TellsTime:
    ask = f"GET {path} HTTP/1.0\r\n\r\n".encode()
    return TellsTime("its Date", Question(ask, rb"\r\nDate: ([^\r]+)\r\n"), _read_ns, step_ms=1000)


def _read_ns(said: re.Match[bytes]) -> int:
    return int(parsedate_to_datetime(said[1].decode()).timestamp()) * NS_PER_S
