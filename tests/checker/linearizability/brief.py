"""Tables of operations in a few lines of text, for the engines' tests.

0 acquire 1-3             process 0 asks at 1 and is granted at 3
0 acquire 1-3!            ... is refused;  1-3? nobody knows;  1- never answered
0 acquire 1-3 token=7     the answer told this token
0 read 1-3 5              was answered 5;    0 read 1-3 [1,2]    a set
0 write 1-3 5             wrote 5
0 cas 1-3 5 6             expected 5, wrote 6
0 add 1-3 5               to a set, or a counter
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from lockcheck.history import Event, EventType
from lockcheck.history.model import Operation
from lockcheck.history.table import Table

OUTCOMES = {"": EventType.OK, "!": EventType.FAIL, "?": EventType.INFO}
SPAN = re.compile(r"(?P<start>\d+)-(?P<end>\d*)(?P<mark>[!?]?)$")


def table(*lines: str) -> Table:
    texts = [text.strip() for line in lines for text in line.strip().splitlines()]
    return Table.of(in_order(operation(text) for text in texts if text))


def in_order(operations: Iterable[Operation]) -> list[Operation]:
    return sorted(operations, key=lambda each: each.start_ns)


def operation(text: str) -> Operation:
    process, f, span, *rest = text.split()
    times = SPAN.match(span)
    assert times, span
    start, end, mark = times.group("start", "end", "mark")
    tokens = [int(word[6:]) for word in rest if word.startswith("token=")]
    values = [_literal(word) for word in rest if not word.startswith("token=")]
    asked: Any = values if f == "cas" else values[0] if values else None
    common: dict[str, Any] = {"process": int(process), "f": f}
    invoke = Event(
        time=int(start),
        type=EventType.INVOKE,
        value=None if f == "read" else asked,
        **common,
    )
    if not end:
        return Operation(invoke, None)
    token = tokens[0] if tokens else None
    answer = Event(time=int(end), type=OUTCOMES[mark], value=asked, token=token, **common)
    return Operation(invoke, answer)


def _literal(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word
