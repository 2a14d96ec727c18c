"""A service's log: a row or span for each operation, by a clock that may be coarse."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tests.production.day import Day

NEEDED = ("client", "key", "op", "start_ns", "end_ns", "outcome")
BATCH = 20
BEGAN_NS = 1_700_000_000_000_000_000  # by the clock on the wall


@dataclass(slots=True)
class Row:
    client: str
    key: str
    op: str
    start_ns: int
    end_ns: int | None = None
    outcome: str = ""
    token: int | None = None
    value: str | None = None
    result: str | None = None
    ttl_ms: int | None = None
    seq: int | None = None
    base: str | None = None
    of: str | None = None


def cut(rows: Iterable[Row], day: Day, since_ns: int, until_ns: int) -> list[Row]:
    """The operations of a part of the day; later answers are missing."""
    inside = [row for row in rows if since_ns <= row.start_ns <= until_ns]
    return [
        replace(row, end_ns=None, outcome="", token=None, result=None, seq=None)
        if row.end_ns is not None and row.end_ns > until_ns
        else row
        for row in inside
        if day.refusals or row.op != "acquire" or row.outcome != "fail"
    ]


def written(rows: list[Row], day: Day) -> str:
    """In the order in which they were begun, of all or of each client."""
    rows = sorted(rows, key=lambda row: (row.client if day.by_client else "", row.start_ns))
    cells = [_cells(row, day) for row in rows]
    return _spans(cells) if day.spans else _csv(cells)


def _cells(row: Row, day: Day) -> dict[str, object]:
    def logged(time_ns: int) -> int:
        time_ns += BEGAN_NS
        return time_ns - time_ns % day.resolution_ns

    cells = {name: getattr(row, name) for name in Row.__slots__}
    cells["start_ns"] = logged(row.start_ns)
    cells["end_ns"] = None if row.end_ns is None else logged(row.end_ns)
    if row.op == "cas":
        cells["value"] = json.dumps([_plain(row.base), _plain(row.value)])
    hidden = {
        "token": not day.tokens,
        "ttl_ms": not (day.leases_told and row.ttl_ms),
        "seq": not day.seqs,
        "base": not (day.seqs and row.op == "write"),
    }
    return cells | {name: None for name, never in hidden.items() if never}


def _plain(text: str | None) -> object:
    return None if text is None else json.loads(text)


def _csv(cells: list[dict[str, object]]) -> str:
    named = [name for name in Row.__slots__ if any(row[name] is not None for row in cells)]
    names = [name for name in Row.__slots__ if name in NEEDED or name in named]
    out = io.StringIO()
    writer = csv.DictWriter(out, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(cells)
    return out.getvalue()


def _spans(cells: list[dict[str, object]]) -> str:
    """As a collector writes them: some at once, each time on a line of its own."""
    batches = (cells[first : first + BATCH] for first in range(0, len(cells), BATCH))
    exports = (
        {"resourceSpans": [{"scopeSpans": [{"spans": [_span(row) for row in batch]}]}]}
        for batch in batches
    )
    return "".join(f"{json.dumps(export)}\n" for export in exports)


def _span(row: dict[str, object]) -> dict[str, object]:
    present = {name: value for name, value in row.items() if value not in (None, "")}
    times = {"start_ns": "startTimeUnixNano", "end_ns": "endTimeUnixNano"}
    return {
        "name": f"lock {row['op']}",
        **{name: str(present[ours]) for ours, name in times.items() if ours in present},
        "attributes": [
            {"key": f"lock.{name}", "value": _value(value)}
            for name, value in present.items()
            if name not in times
        ],
    }


def _value(value: object) -> dict[str, str]:
    return {"intValue" if isinstance(value, int) else "stringValue": str(value)}
