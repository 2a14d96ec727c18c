"""The reader of columns against the reader of events: it refuses, or it reads the same."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockcheck.errors import HistoryError
from lockcheck.history import Event, EventType, History, Refusal, Terms
from lockcheck.history.columns import Columns, read_columns
from lockcheck.history.event import encode_event
from lockcheck.history.files import events_in
from lockcheck.history.scan import scan
from lockcheck.history.table import TYPES, Table
from lockcheck.native import core

pytestmark = pytest.mark.skipif(core() is None, reason="the compiled reader was not built")

SYMBOLS = ("process", "key", "argument", "second", "result", "owner")


def plain(table: Table) -> list[tuple[Any, ...]]:
    """Rows with the meaning of their symbols, so that tables of different readers can be equal."""
    columns = [
        [table.symbols.text(int(n)) if n >= 0 else None for n in getattr(table, name)]
        if name in SYMBOLS
        else getattr(table, name).tolist()
        for name in TYPES
    ]
    return sorted(zip(*columns, strict=True), key=repr)


def by_events(text: bytes) -> History | None:
    try:
        return History.of(events_in(io.BytesIO(text), "h"))
    except HistoryError:
        return None


def by_columns(text: bytes) -> Columns | None:
    return read_columns(io.BytesIO(text))


def lines(events: Iterable[Event]) -> bytes:
    return b"".join(encode_event(event) + b"\n" for event in events)


VALUES = st.sampled_from(
    [
        None,
        1,
        -1,
        0,
        "a",
        "n1-2",
        [1, 2],
        ["a", None],
        True,
        1.0,
        1e300,
        {"x": [1]},
        {"blind": True},
    ]
)


@st.composite
def clients(draw: st.DrawFn) -> list[Event]:
    """Clients that invoke and are answered, mostly correctly."""
    events, open_ones, time = [], dict[int, str](), 0
    for _ in range(draw(st.integers(0, 14))):
        time += draw(st.integers(0, 2))
        process = draw(st.integers(0, 3))
        f = open_ones.pop(process, None)
        kind = EventType.INVOKE if f is None else draw(st.sampled_from(["ok", "fail", "info"]))
        if f is None:
            f = draw(
                st.sampled_from(["acquire", "release", "renew", "read", "write", "cas", "add"])
            )
            open_ones[process] = f
        events.append(
            Event(
                time=time, process=process, type=EventType(kind), f=f,
                key=draw(st.sampled_from([None, "k", "l"])), value=draw(VALUES),
                node=draw(st.sampled_from([None, "n1", "n2"])), base=draw(VALUES),
                token=draw(st.none() | st.integers(-5, 5)), seq=draw(st.none() | st.integers(0, 3)),
                ttl_ms=draw(st.none() | st.integers(0, 2**31 - 1)),
                valid_ms=draw(st.none() | st.sampled_from([0.5, 3.0, 1e9])),
                error=draw(st.sampled_from([None, "held", "a", "b", "c", "d", "e", "ünder"])),
                of=draw(st.sampled_from([None, None, 0, 1, 7, "1", "c1"])),
                refused=draw(st.sampled_from([None, *Refusal])),
            )
        )  # fmt: skip
        if draw(st.integers(0, 9)) == 0:
            f = draw(st.sampled_from(["lost", "stall", "queued", "clock-step"]))
            events.append(Event(time=time, process=process, type=EventType.INFO, f=f, value=1))
    return events


@given(clients())
def test_both_readers_read_the_same(events: list[Event]) -> None:
    text = lines(events)
    history, columns = by_events(text), by_columns(text)
    if columns is None:
        assert history is None or not text.isascii()
        return
    assert history is not None
    assert plain(columns.table) == plain(Table.of(history.operations))
    assert columns.end_ns == history.end_ns


@given(clients(), st.data())
def test_nothing_is_accepted_that_the_other_reader_refuses(
    events: list[Event], data: st.DataObject
) -> None:
    text = bytearray(lines(events))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        new = data.draw(
            st.sampled_from([b"", b"\n", b" ", b'"', b"}", b"1", b"-", b"\x00", b"\xff"])
        )
        text[at : at + data.draw(st.integers(0, 2))] = new
    columns = by_columns(bytes(text))
    if columns is not None:
        history = by_events(bytes(text))
        assert history is not None
        assert plain(columns.table) == plain(Table.of(history.operations))


@given(st.binary(max_size=60))
@example(b'{"time":1,"process":1,"type":"ok","f":"lost"')
@example(b"{" * 100)
@example(b'{"":')
def test_rubbish_is_refused(text: bytes) -> None:
    if by_columns(text) is not None:
        assert by_events(text) is not None


ACQUIRE = b'{"time":1,"process":0,"type":"invoke","f":"acquire"}\n'

REFUSED = {
    "a time that is no integer": b'{"time":1.5,"process":0,"type":"invoke","f":"read"}',
    "a time beyond columns": b'{"time":9999999999999999999,"process":0,"type":"invoke","f":"x"}',
    "an unknown type": b'{"time":1,"process":0,"type":"begin","f":"read"}',
    "no process": b'{"time":1,"type":"invoke","f":"read"}',
    "an answer to nothing": b'{"time":1,"process":0,"type":"ok","f":"read"}',
    "backwards": ACQUIRE + b'{"time":0,"process":1,"type":"invoke","f":"read"}',
    "two open at once": ACQUIRE + ACQUIRE,
    "a shared lock": b'{"time":1,"process":0,"type":"invoke","f":"acquire","shared":true}',
    "a release that did not check the owner": (
        ACQUIRE.replace(b"acquire", b"release")
        + b'{"time":1,"process":0,"type":"ok","f":"release","blind":true}'
    ),
    "an operation that it does not know": b'{"time":1,"process":0,"type":"invoke","f":"drain"}',
    "an error that is a number": b'{"time":1,"process":0,"type":"invoke","f":"read","error":1}',
    "a refusal without a code": b'{"time":1,"process":0,"type":"fail","f":"read","refused":"no"}',
    "a leading zero": b'{"time":01,"process":0,"type":"invoke","f":"read"}',
    "deep nesting": ACQUIRE.replace(b"}", b',"value":' + b"[" * 99 + b"]" * 99 + b"}"),
    "a number out of range": ACQUIRE.replace(b"}", b',"value":' + b"7" * 9999 + b"}"),
    "a line too long": b'{"time":1,"process":0,"type":"invoke","f":"' + b"x" * (1 << 20) + b'"}',
    "a negative lease": b'{"time":1,"process":0,"type":"invoke","f":"renew","ttl_ms":-1}',
    "torn": ACQUIRE[:-9],
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_it_is_not_sure_of_it_leaves_to_the_other(text: bytes) -> None:
    assert by_columns(text) is None


def test_one_value_has_one_number_however_it_is_written() -> None:
    text = ACQUIRE.replace(b"acquire", b"cas").replace(b"}", b',"value":[ {"b":1,"a":[1, 2]} ,7]}')
    text += (
        ACQUIRE.replace(b"acquire", b"write")
        .replace(b"0,", b"1,")
        .replace(b"}", b',"value":{"a":[1,2],"b":1}}')
    )
    columns = by_columns(text)
    assert columns is not None
    table = columns.table
    assert table.argument[0] == table.argument[1]
    assert table.symbols.value(int(table.second[0])) == 7
    assert table.argument[0] == table.symbols.number({"b": 1, "a": [1, 2]})


def test_a_table_outlives_its_reader(tmp_path: Path) -> None:
    """The columns lie in the reader's memory, which has to live as long as they do."""
    path = tmp_path / "h.jsonl"
    path.write_bytes(lines(events_of_many(20_000)))
    found = scan(lambda: path.open("rb"), "h")
    assert found is not None
    start = found.table.start
    del found
    assert int(start.sum()) == sum(range(0, 40_000, 2))


def events_of_many(count: int) -> Iterable[Event]:
    for number in range(count):
        f = "acquire" if number % 2 == 0 else "release"
        for shift, kind in enumerate((EventType.INVOKE, EventType.OK)):
            yield Event(time=2 * number + shift, process=0, type=kind, f=f, key="k")


def test_some_of_the_operations_are_read_again_and_their_holds_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(lines(events_of_many(1_000)))
    found = scan(lambda: path.open("rb"), "h")
    assert found is not None
    [operation] = found.operations([500])
    assert (operation.start_ns, operation.f) == (1000, "acquire")
    around = found.around([np.array([500])])
    assert [(hold.start_ns, hold.end_ns) for hold in around.holds] == [(1001, 1002)]
    assert len(around.operations) < 10
    assert around.number_of(operation) == found.rows().number_of(operation) == 501
    assert found.rows().operations == History.of(events_in(path.open("rb"), "h")).operations


def test_a_newline_may_lie_anywhere_between_two_reads() -> None:
    text = lines(events_of_many(50)) + msgspec.json.encode(
        {"time": 500, "process": 1, "type": "invoke", "f": "read"}
    )

    class Drops(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(7)

    columns = read_columns(Drops(text))
    assert columns is not None
    assert len(columns.table) == 51


def test_times_since_1970_are_counted_from_the_first() -> None:
    began_ns = 1_700_000_000_000_000_000
    events = [
        msgspec.structs.replace(event, time=began_ns + event.time) for event in events_of_many(50)
    ]
    found = scan(
        lambda: io.BytesIO(lines(events)),
        "h",
        None,
        lambda given, at: Terms(began_ns=at, seed=given.seed),
    )
    assert found is not None
    assert found.terms.began_ns == began_ns
    assert found.table.start.tolist() == list(range(0, 100, 2))
    assert list(found.rows().events) == list(events_of_many(50))
    assert [operation.start_ns for operation in found.operations([7])] == [14]


def test_numbers_are_exact_up_to_the_longest() -> None:
    tokens = ((1 << 63) - 1, 1 - (1 << 63), 999_999_999_999_999_999, 1_000_000_000_000_000_000)
    for token in tokens:
        answer = ACQUIRE.replace(b"invoke", b"ok").replace(b"}", b',"token":%d}' % token)
        columns = by_columns(ACQUIRE + answer)
        assert columns is not None
        assert columns.table.token.tolist() == [token]
    assert by_columns(ACQUIRE.replace(b"}", b',"token":%d}' % (1 << 63))) is None
