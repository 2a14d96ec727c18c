"""Histories as files: what is damaged is named with its line, and a torn end costs one line."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockcheck.errors import HistoryError
from lockcheck.history import (
    Event,
    EventType,
    EventWriter,
    Terms,
    merge_event_files,
    read_events,
    read_history,
    write_events,
)
from lockcheck.history.event import terms_event
from lockcheck.history.files import LONE, LONGEST_LINE

OFTEN = settings(max_examples=300)


def event(time: int, process: int = 0, f: str = "read") -> Event:
    return Event(time=time, process=process, type=EventType.INVOKE, f=f, key="k")


def error_of(path: Path) -> HistoryError | None:
    try:
        read_history(path)
    except HistoryError as error:
        return error
    return None


def line_of(error: pytest.ExceptionInfo[HistoryError]) -> int:
    return error.value.line


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
maybe_numbers = st.none() | st.integers(0, 2**40)
any_events = st.builds(
    Event,
    time=st.integers(0, 2**60),
    process=st.integers(0, 99) | st.sampled_from(["nemesis", "storage", "run", "x"]),
    type=st.sampled_from(EventType),
    f=st.sampled_from(["acquire", "release", "renew", "read", "write", "lost", "pause", "heal"]),
    key=st.none() | st.text(max_size=5),
    value=json_values,
    node=st.none() | st.text(max_size=5),
    token=maybe_numbers,
    error=st.none() | st.text(max_size=9),
    seq=maybe_numbers,
    base=json_values,
    ttl_ms=st.none() | st.integers(0, 2**31 - 1),
    valid_ms=st.none() | st.floats(-1e308, 1e308),
    fault=st.none() | st.integers(0, 3),
    of=st.none() | st.integers(0, 9),
    shared=st.booleans(),
)


@given(st.lists(any_events, max_size=20))
def test_what_is_written_is_read_again(tmp_path: Path, events: list[Event]) -> None:
    path = tmp_path / "history.jsonl"
    write_events(path, events)
    assert list(read_events(path)) == events
    assert list(read_events(path, allow_torn_end=True)) == events


def test_terms_of_stored_histories_keep_their_meaning(tmp_path: Path) -> None:
    """Files name them as they did before they were called as the options are."""
    stored = tmp_path / "history.jsonl"
    stored.write_bytes(
        b'{"time":0,"process":"run","type":"info","f":"terms",'
        b'"value":{"ttl-ms":100,"honours-validity":true,"own-clocks":true}}\n'
    )
    terms = read_history(stored).terms
    assert terms == Terms(ttl_ms=100, check_validity=True, own_lease_clock=True)
    write_events(stored, [terms_event(terms)])
    assert b'"honours-validity":true' in stored.read_bytes()
    assert read_history(stored).terms == terms


def test_a_writer_appends_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    for time in (1, 2):
        with closing(EventWriter(path)) as writer:
            writer.write(event(time))
            assert [e.time for e in read_events(path)][-1] == time
    assert [e.time for e in read_events(path)] == [1, 2]


@pytest.mark.parametrize("torn", [1, 9, 10_000])
def test_the_next_writer_of_a_torn_file_begins_a_new_line(
    tmp_path: Path, torn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client was killed in the middle of a line, and is started again."""
    monkeypatch.setattr("lockcheck.history.files.LONGEST_LINE", 256)
    path = tmp_path / "history.jsonl"
    write_events(path, [event(1), event(2)])
    whole = path.read_bytes()
    with path.open("ab") as out:
        out.write(b"{" * torn)
    with closing(EventWriter(path)) as writer:
        assert path.read_bytes() == whole
        writer.write(event(3))
    assert [e.time for e in read_events(path)] == [1, 2, 3]


def test_a_line_of_which_only_a_part_fits_is_taken_back(tmp_path: Path) -> None:
    """By a limit to the file's size; a disk that is filling up does the same."""
    path = tmp_path / "history.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with closing(EventWriter(path)) as writer:
        writer.write(event(1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 5, hard))
        try:
            with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
                writer.write(event(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        writer.write(event(3))
    assert [e.time for e in read_events(path)] == [1, 3]


def test_a_file_with_nothing_but_a_torn_line_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'{"time": 1')
    with closing(EventWriter(path)) as writer:
        writer.write(event(3))
    assert [e.time for e in read_events(path)] == [3]


@given(st.lists(any_events, min_size=1, max_size=5), st.data())
def test_a_torn_last_line_costs_that_line_only(
    tmp_path: Path, events: list[Event], data: st.DataObject
) -> None:
    path = tmp_path / "history.jsonl"
    write_events(path, events)
    whole = path.read_bytes()
    last = len(whole.rstrip(b"\n").rpartition(b"\n")[2]) + 1
    path.write_bytes(whole[: len(whole) - data.draw(st.integers(1, last))])
    assert list(read_events(path, allow_torn_end=True)) == events[:-1]


def test_a_torn_line_is_an_error_where_a_file_must_be_whole(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write_events(path, [event(1), event(2)])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(HistoryError, match=r"line 2, column \d+: not an event: it is") as error:
        list(read_events(path))
    assert line_of(error) == 2


DAMAGED = {
    "no json": b"once upon a time",
    "not an object": b"[1, 2]",
    "a field is missing": b'{"time": 1, "process": 0, "f": "read"}',
    "a field has another type": b'{"time": "now", "process": 0, "type": "ok", "f": "read"}',
    "an unknown type": b'{"time": 1, "process": 0, "type": "maybe", "f": "read"}',
    "no text": b"\xff\xfe\x00",
    "half a character": b'{"time": 1, "process": 0, "type": "ok", "f": "\xe2\x82"}',
    "very deep": b'{"time": 1, "process": 0, "type": "ok", "f": "r", "value": ' + b"[" * 100_000,
    "very long": b'"' + b"x" * LONGEST_LINE + b'"',
    "a number beyond all bounds": b'{"time": 1e999, "process": 0, "type": "ok", "f": "read"}',
}


@pytest.mark.parametrize("allow_torn_end", [True, False])
@pytest.mark.parametrize("line", DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named_with_its_line(tmp_path: Path, line: bytes, allow_torn_end: bool) -> None:
    path = tmp_path / "history.jsonl"
    write_events(path, [event(1), event(2)])
    path.write_bytes(path.read_bytes() + line + b"\n" + path.read_bytes())
    with pytest.raises(HistoryError) as error:
        list(read_events(path, allow_torn_end=allow_torn_end))
    assert line_of(error) == 3
    assert "history.jsonl, line 3, column " in str(error.value)
    assert error.value.exit_code == 2


BEGINNING = '{"time": 1, "process": 0, "type": "ok", "f": "\u20ac'.encode()
PLACES = {
    "no json": (b"once upon a time", 1, "not an event: JSON is malformed: invalid character"),
    "blanks before it": (b"   x", 4, "not an event: JSON is malformed: invalid character"),
    "inside": (BEGINNING + b'", "key" 3}', 57, "not an event: JSON is malformed: expected ':'"),
    "cut off": (BEGINNING + b'", "ke', 52 + 2, "not an event: it is cut off"),
    "no text": (BEGINNING + b"\xff" + b'"}', 48, "not an event: not valid UTF-8"),
    "half a pair": (BEGINNING + rb'\ude00"}', 48, f"not an event: {LONE}"),
    "half a pair, and more": (
        BEGINNING + rb'\\ud83d\ud83d\ude00\ud83dx"}',
        67,
        f"not an event: {LONE}",
    ),
    "cut off in a pair": (BEGINNING + rb"\ud83d", 54, "not an event: it is cut off"),
    "no event": (b'  {"time": 1}', 3, "not an event: Object missing required field `process`"),
}


@pytest.mark.parametrize(("line", "column", "reason"), PLACES.values(), ids=PLACES)
def test_damage_is_named_with_its_column(
    tmp_path: Path, line: bytes, column: int, reason: str
) -> None:
    path = tmp_path / "history.jsonl"
    write_events(path, [event(1)])
    path.write_bytes(path.read_bytes() + line + b"\n")
    error = error_of(path)
    assert error is not None
    assert (error.line, error.column, error.reason) == (2, column, reason)


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write_events(path, [event(1)])
    whole = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + whole)
    assert list(read_events(path)) == [event(1)]
    path.write_bytes(whole + b"\xef\xbb\xbf" + whole)
    assert error_of(path) is not None


def test_blank_lines_are_no_events(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    write_events(path, [event(1)])
    path.write_bytes(b"\n  \n" + path.read_bytes() + b"\n")
    assert list(read_events(path)) == [event(1)]


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(HistoryError, match="cannot be read"):
        list(read_events(tmp_path / name))


@given(st.lists(st.lists(st.integers(0, 50), max_size=8), max_size=4))
def test_a_merge_keeps_the_order_of_each_file(tmp_path: Path, times: list[list[int]]) -> None:
    paths = []
    for process, own in enumerate(times):
        paths.append(tmp_path / f"{process}.jsonl")
        events = [event(t, process, f"step-{n}") for n, t in enumerate(sorted(own))]
        write_events(paths[-1], events)
    merged = list(merge_event_files(paths))
    assert [e.time for e in merged] == sorted(t for own in times for t in own)
    for process, path in enumerate(paths):
        assert [e for e in merged if e.process == process] == list(read_events(path))


def test_a_merge_drops_the_torn_ends_of_those_that_were_killed(tmp_path: Path) -> None:
    for process in (0, 1):
        write_events(
            tmp_path / f"{process}.jsonl", [event(process, process), event(process + 5, process)]
        )
    torn = tmp_path / "0.jsonl"
    torn.write_bytes(torn.read_bytes()[:-3])
    merged = merge_event_files(sorted(tmp_path.iterdir()))
    assert [(e.process, e.time) for e in merged] == [(0, 0), (1, 1), (1, 6)]


@OFTEN
@given(st.binary(max_size=200) | st.lists(st.binary(max_size=40)).map(b"\n".join))
def test_garbage_is_a_history_error_or_a_history(tmp_path: Path, garbage: bytes) -> None:
    path = tmp_path / "garbage.jsonl"
    path.write_bytes(garbage)
    error = error_of(path)
    assert error is None or str(path) in str(error)


@OFTEN
@given(st.lists(any_events, max_size=12))
def test_events_that_make_no_sense_are_a_history_error_or_a_history(
    tmp_path: Path, events: list[Event]
) -> None:
    path = tmp_path / "history.jsonl"
    write_events(path, sorted(events, key=lambda e: e.time))
    error = error_of(path)
    assert error is None or 1 <= error.line <= len(events)


@given(st.data())
def test_a_flipped_byte_is_no_crash(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "history.jsonl"
    write_events(path, [event(1, 0, "acquire"), event(2, 1, "release"), event(3, 2, "lost")])
    whole = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    error = error_of(path)
    assert error is None or str(path) in str(error)
