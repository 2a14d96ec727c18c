"""A service's log: a row for each operation, by a clock that is as coarse as it is."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace

from tests.production.day import Day

NEEDED = ("client", "key", "op", "start_ns", "end_ns", "outcome")
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
    """What was begun in a part of the day; who was not answered by its end has no answer."""
    inside = [row for row in rows if since_ns <= row.start_ns <= until_ns]
    return [
        replace(row, end_ns=None, outcome="", token=None, result=None, seq=None)
        if row.end_ns is not None and row.end_ns > until_ns
        else row
        for row in inside
        if day.refusals or row.op != "acquire" or row.outcome != "fail"
    ]


def written(rows: list[Row], day: Day) -> str:
    """As CSV. Rows stand in the order in which they were begun, of all or of each client."""
    rows = sorted(rows, key=lambda row: (row.client if day.by_client else "", row.start_ns))
    cells = [asdict(_by_its_clock(row, day)) for row in rows]
    named = [name for name in Row.__slots__ if any(row[name] is not None for row in cells)]
    out = io.StringIO()
    writer = csv.DictWriter(out, {*NEEDED, *named} & set(Row.__slots__), extrasaction="ignore")
    writer.fieldnames = [name for name in Row.__slots__ if name in NEEDED or name in named]
    writer.writeheader()
    writer.writerows(cells)
    return out.getvalue()


def _by_its_clock(row: Row, day: Day) -> Row:
    def told(time_ns: int) -> int:
        time_ns += BEGAN_NS
        return time_ns - time_ns % day.resolution_ns

    end_ns = None if row.end_ns is None else told(row.end_ns)
    value = row.value
    if row.op == "cas":
        value = json.dumps([_plain(row.base), _plain(row.value)])
    return replace(
        row,
        start_ns=told(row.start_ns),
        end_ns=end_ns,
        value=value,
        token=row.token if day.tokens else None,
        ttl_ms=row.ttl_ms if day.leases_told and row.ttl_ms else None,
        seq=row.seq if day.seqs else None,
        base=row.base if day.seqs and row.op == "write" else None,
    )


def _plain(text: str | None) -> object:
    return None if text is None else json.loads(text)
