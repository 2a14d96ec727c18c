"""Rows as columns mean the same as their events."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

import lockcheck.formats.tables.csv_rows
from lockcheck.errors import HistoryError
from lockcheck.formats.source import Source
from lockcheck.formats.tables.csv_rows import read_csv
from lockcheck.formats.tables.otlp import read_otlp
from lockcheck.formats.tables.row_events import RowEvents
from lockcheck.history import Event
from lockcheck.history.columns import Columns, read_columns
from lockcheck.history.event import encode_event
from lockcheck.native import core
from tests.formats.test_rows import EPOCH, HEADER
from tests.history.test_columns import plain
from tests.production.day import day
from tests.production.service import lived

SEEDS = range(1, 12)


def rows_of(text: str) -> RowEvents:
    read = read_otlp if text.startswith("{") else read_csv
    rows = read(BytesIO(text.encode()), Source("h"))
    assert isinstance(rows, RowEvents)
    return rows


def by_lines(events: list[Event]) -> Columns | None:
    return read_columns(BytesIO(b"".join(encode_event(event) + b"\n" for event in events)))


def meaning(columns: Columns) -> dict[str, Any]:
    """What the numbers stand for, by the places of the events among all."""
    text, table = columns.table.symbols.value, columns.table
    lines = sorted([*columns.invoked_at, *columns.answered_at, *columns.special_at])
    place = {line: number for number, line in enumerate(line for line in lines if line >= 0)}
    numbered = zip(columns.numbered.tolist(), columns.number.tolist(), strict=True)
    based = zip(columns.based.tolist(), columns.base.tolist(), strict=True)
    processes = set(table.process.tolist())
    return {
        "table": plain(table),
        "node": [text(n) for n in columns.node.tolist()],
        "invoked": [place[at] for at in columns.invoked_at.tolist()],
        "answered": [place.get(at) for at in columns.answered_at.tolist()],
        "notices": [place[at] for at in columns.special_at.tolist()],
        "seen": {text(n): int(columns.seen_last[n]) for n in processes},
        "numbered": sorted(numbered),
        "based": [(row, text(base)) for row, base in based],
        "end": (columns.end_ns, columns.events, columns.has_foreign_owners),
    }


@pytest.mark.skipif(core() is None, reason="the compiled reader was not built")
@pytest.mark.parametrize("seed", SEEDS)
def test_columns_are_those_of_the_events(seed: int) -> None:
    rows = rows_of(lived(day(seed, turns=20)).text)
    columns, read = rows.columns(), by_lines(list(rows))
    assert columns is not None
    assert read is not None
    assert meaning(columns) == meaning(read)


@pytest.mark.parametrize("seed", SEEDS)
def test_some_events_are_those_of_all(seed: int) -> None:
    rows = rows_of(lived(day(seed, turns=20)).text)
    events, columns = list(rows), rows.columns()
    assert columns is not None
    places = columns.answered_at[::3]
    assert rows.at(places) == {at: events[at] for at in sorted(places.tolist()) if at >= 0}


def test_what_no_model_knows_is_left_to_events() -> None:
    rows = rows_of(f"{HEADER}a,k,acquire,{EPOCH},{EPOCH + 1},ok,\na,k,drain,{EPOCH + 2},,,\n")
    assert rows.columns() is None
    assert [event.f for event in rows] == ["acquire", "acquire", "drain"]


@pytest.mark.parametrize("size", [1, 40, 1 << 20])
def test_pieces_of_any_size_are_one_table(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(lockcheck.formats.tables.csv_rows, "CHUNK", size)
    rows = [f"c{at % 3},k{at % 2},acquire,{at},{at},ok,{at}" for at in range(30)]
    rows[20] = rows[20].replace("k0", '"k\n0"')  # from here on they are no plain ones
    events = list(rows_of(HEADER + "\n".join(rows)))
    assert [event.token for event in events[1::2]] == list(range(30))
    assert [event.process for event in events[::2]] == [f"c{at % 3}" for at in range(30)]
    assert events[40].key == "k\n0"
    for wrong, line in ((10, 12), (25, 28)):
        damaged = [*rows[:wrong], rows[wrong].replace("ok", "yes"), *rows[wrong + 1 :]]
        with pytest.raises(HistoryError, match="neither ok") as error:
            rows_of(HEADER + "\n".join(damaged))
        assert error.value.line == line


@pytest.mark.parametrize(
    "later",
    [
        'b,k,acquire,3,4,ok,"7"\n',
        "\nb,k,acquire,3,4,ok,7\n",
        "b,k,acquire,3,4,ok,7,more\n",
        "b,k,acquire,3,4,ok,7\r\n",
        "b,k,acquire,3,4,ok,7",
    ],
    ids=["a quote", "an empty line", "a row that is longer", "lines of Windows", "no end"],
)
def test_rows_that_are_no_plain_ones(later: str) -> None:
    events = list(rows_of(f"{HEADER}a,k,acquire,0,1,ok,6\n{later}"))
    assert [(event.process, event.token) for event in events][1::2] == [("a", 6), ("b", 7)]
