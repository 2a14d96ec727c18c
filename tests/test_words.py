"""Times, values and operations in words: the same for judges, page and terminal."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from lockcheck.history.model import name_of
from lockcheck.words import (
    at,
    by_node,
    exactly,
    operation_words,
    plain,
    shown,
    span,
    spans,
)
from tests.checker.dsl import history, ns


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"),
        (0.04, "0.04 ms"),
        (1.234, "1.2 ms"),
        (9.96, "10 ms"),
        (312, "312 ms"),
        (999.6, "1.000 s"),
        (2013, "2.013 s"),
        (30_000, "30.0 s"),
    ],
)
def test_how_long(ms: float, text: str) -> None:
    assert span(ns(ms)) == text


def test_of_several_lengths_the_shortest_and_the_longest() -> None:
    assert spans([ns(5.6), ns(9), ns(15)]) == "5.6 to 15 ms each"
    assert spans([ns(9), ns(9)]) == "9.0 ms each"
    assert spans([ns(9), ns(1200)]) == "9.0 ms to 1.200 s each"
    assert spans([ns(9)]) == "9.0 ms"


def test_when() -> None:
    assert exactly(ns(1234.5)) == "1.2345 s"
    assert exactly(0) == "0.000 s"
    assert at(ns(100)) == "at 0.100 s"


def test_values() -> None:
    assert shown({"a": [1]}) == '{"a": [1]}'
    assert shown(object).startswith('"<class')
    assert len(shown("x" * 99)) == 40


def test_text_from_a_history_cannot_move_the_cursor_or_turn_the_line_round() -> None:
    assert plain("k\x1b[2J\u202e\ud800") == "k\\x1b[2J\\u202e\\ud800"
    assert len(plain("x" * 500)) == 60
    assert plain(12) == "12"


def test_an_operation_and_its_client_are_called_the_same_everywhere() -> None:
    read, write = history("1@c7 read 12-13.5 = 7", "2 write 14- 8").operations
    assert operation_words(read) == "c7 read k: 7 (0.012 to 0.0135 s)"
    assert operation_words(write) == "n2 write 8 to k: no answer came (from 0.014 s)"
    said = "process 1 read 7 after process 2, process 12 and process w1"
    assert by_node(said, [read, write]) == "c7 read 7 after n2, process 12 and w1"


def test_a_client_is_called_as_in_its_log_and_a_bare_number_is_no_name() -> None:
    assert [name_of(name) for name in ("w1", 1, "1")] == ["w1", "process 1", "process 1"]
    unnamed = history("1 read 2-3 = 7").operations[0]
    invoke = msgspec.structs.replace(unnamed.invoke, node=None, process="w1")
    read = replace(unnamed, invoke=invoke)
    assert operation_words(read).startswith("w1 read k")
    assert by_node("process w1 read 7 after process w2", [read]) == "w1 read 7 after w2"
