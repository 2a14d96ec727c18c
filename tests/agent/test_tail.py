"""The clients' lines are read at once, only whole ones, also when a client is killed in the
middle."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from lockcheck.agent.tail import CHUNK, Tail
from lockcheck.history import Event, EventType, EventWriter
from lockcheck.history.event import encode_event


def event(time: int, value: object = None) -> Event:
    return Event(time=time, process=0, type=EventType.OK, f="read", key="k", value=value)


def times(tail: Tail) -> list[int]:
    return [event.time for event in tail.read()]


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as out:
        out.write(data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def test_what_is_new_comes_once_and_files_may_come_later(tmp_path: Path) -> None:
    one, other = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    tail = Tail([one, other])
    assert times(tail) == []
    with closing(EventWriter(other)) as writer:
        writer.write(event(1))
        assert times(tail) == [1]
        writer.write(event(2))
        writer.write(event(3))
    with closing(EventWriter(one)) as writer:
        writer.write(event(4))
    assert sorted(times(tail)) == [2, 3, 4]
    assert times(tail) == []


def test_half_a_line_is_left_for_the_next_time(path: Path) -> None:
    tail, line = Tail([path]), encode_event(event(2)) + b"\n"
    add(path, encode_event(event(1)) + b"\n" + line[:7])
    assert times(tail) == [1]
    assert times(tail) == []
    add(path, line[7:-1])
    assert times(tail) == []
    add(path, line[-1:])
    assert times(tail) == [2]


@pytest.mark.parametrize("size", [CHUNK - 100, CHUNK, 5 * CHUNK])
def test_lines_may_be_longer_than_what_is_read_at_once(path: Path, size: int) -> None:
    tail = Tail([path])
    with closing(EventWriter(path)) as writer:
        for time in range(3):
            writer.write(event(time, "x" * size))
    assert times(tail) == [0, 1, 2]


def test_the_next_life_of_a_client_that_was_killed_in_the_middle_of_a_line(path: Path) -> None:
    tail = Tail([path])
    with closing(EventWriter(path)) as writer:
        writer.write(event(1))
    add(path, encode_event(event(2))[:20])
    assert times(tail) == [1]
    with closing(EventWriter(path)) as writer:
        assert times(tail) == []
        writer.write(event(3))
        assert times(tail) == [3]
        writer.write(event(4))
    assert times(tail) == [4]
