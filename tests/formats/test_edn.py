"""EDN is read as data, whatever it contains, and damage is named with its place."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.errors import HistoryError
from lockcheck.formats import text as text_module
from lockcheck.formats.exports.export_edn import edn
from lockcheck.formats.jepsen.edn import DEEPEST, Pair, read_forms, read_value


def forms(text: str | bytes) -> list[tuple[Any, int, int]]:
    data = text.encode() if isinstance(text, str) else text
    return [tuple(form) for form in read_forms(BytesIO(data), "given")]  # type: ignore[misc]


VALUES = {
    "nil": None,
    "true": True,
    "false": False,
    "7": 7,
    "-7": -7,
    "+7": 7,
    "7N": 7,
    "123456789012345678901234567890": 123456789012345678901234567890,
    "1.5": 1.5,
    "1.5M": 1.5,
    "-1e3": -1000.0,
    "1/2": "1/2",
    "0x1F": "0x1F",
    "##NaN": "##NaN",
    "##-Inf": "##-Inf",
    '"a \\"b\\" \\\\ \\n\\t\\r\\u00e9"': 'a "b" \\ \n\t\ré',
    '"\\ud83d\\ude00"': "😀",
    '"\\ud83d"': "\ufffd",
    '"two\nlines"': "two\nlines",
    "\\a": "a",
    "\\newline": "\n",
    "\\u00e9": "é",
    "\\{": "{",
    ":timed-out": "timed-out",
    "name/space": "name/space",
    "[1 2, 3]": [1, 2, 3],
    "(1 (2))": [1, [2]],
    "#{3 1 2}": [1, 2, 3],
    "[]": [],
    "[:a [:b]]": [":a", [":b"]],
    '{"a" 1}': {"a": 1},
    "{:a 1}": {":a": 1},
    "{:a {:b 1}}": {":a": {":b": 1}},
    '{:a "x"}': {":a": "x"},
    "{1 2, [3] 4}": {"1": 2, "[3]": 4},
    '#inst "2020-01-01"': "2020-01-01",
    "#unknown/tag {:a 1}": {":a": 1},
    "#a #b 1": 1,
    "[1 #_2 3]": [1, 3],
    "[#_ #_ 1 2 3]": [3],
    "[#_ #a 1]": [],
    "1 ; a remark": 1,
    "#jepsen.independent.Tuple [1 nil]": [1, None],
    '#object[java.lang.Thread 0x1f "x"]': ["java.lang.Thread", "0x1f", "x"],
}


@pytest.mark.parametrize(("text", "value"), VALUES.items(), ids=VALUES)
def test_values(text: str, value: object) -> None:
    read = read_value(text)
    assert read == value
    assert type(read) in (type(value), Pair) or isinstance(read, str)


FORMS = {
    "one a line": ("{:a 1}\n{:a 2}\n", [({"a": 1}, 1, 1), ({"a": 2}, 2, 1)]),
    "a vector": ("[{:a 1}\n {:a 2}]", [({"a": 1}, 1, 2), ({"a": 2}, 2, 2)]),
    "a list": ("({:a 1})", [({"a": 1}, 1, 2)]),
    "an empty vector": (" [ ] ", []),
    "nothing": (" ; nothing\n", []),
    "records": ("#jepsen.history.Op{:a :b}", [({"a": "b"}, 1, 19)]),
    "over several lines": ("{:a\n 1,\n :b [2\n3]}", [({"a": 1, "b": [2, 3]}, 1, 1)]),
    "ends of lines as on Windows": ("{:a 1}\r\n{:a 2}\r\n", [({"a": 1}, 1, 1), ({"a": 2}, 2, 1)]),
    "a mark of the byte order": ("\ufeff{:a 1}", [({"a": 1}, 1, 1)]),
    "no operations": ("7 #{:b :a} (:c)", [(7, 1, 1), ([":a", ":b"], 1, 3), ([":c"], 1, 12)]),
    "discarded": ("#_{:a 1} {:a 2}", [({"a": 2}, 1, 10)]),
    "text with brackets": ('{:a "}{" :b 1}', [({"a": "}{", "b": 1}, 1, 1)]),
}


@pytest.mark.parametrize(("text", "expected"), FORMS.values(), ids=FORMS)
def test_forms_and_their_places(text: str, expected: list[object]) -> None:
    assert forms(text) == expected


DAMAGED = {
    "an open map": ("{:a 1}\n{:a", 2, 4, "the file ends inside a `{`"),
    "an open vector": ("[{:a 1}", 1, 8, "the file ends inside a vector"),
    "an open text": ('{:a 1}\n{:a "b', 2, 5, "a text without an end"),
    "the wrong bracket": ("{:a 1]", 1, 6, "`]` closes a `{`"),
    "a bracket too many": ("{:a 1}}", 1, 7, "`}` closes nothing"),
    "a key without a value": ("{:a 1 :b}", 1, 9, "a map in which a key has no value"),
    "a key twice": ("\n {:a 1 :a 2}", 2, 2, "a map with the same key twice"),
    "no number": ("{:a 12x}", 1, 5, "not a number: 12x"),
    "a number without end": ("1" * 1001, 1, 1, "a number of more than 1000 digits"),
    "a number out of range": ("{:a 1e999}", 1, 5, "a number out of range: 1e999"),
    "no escape": ('{:a "\\q"}', 1, 5, "unknown escape: \\q"),
    "no character": ("{:a \\foo}", 1, 5, "not a character: \\foo"),
    "half a character": ("{:a \\", 1, 5, "a character without an end"),
    "a tag of nothing": ("{:a #inst}", 1, 10, "a tag or a discard without a value"),
    "a discard of nothing": ("#_", 1, 3, "the file ends where a value should follow"),
    "deep": ("[" * (DEEPEST + 2), 1, DEEPEST + 2, f"nested deeper than {DEEPEST}"),
}


@pytest.mark.parametrize(("text", "line", "column", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named_with_its_place(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(HistoryError) as error:
        forms(text)
    assert (error.value.line, error.value.column, error.value.reason) == (line, column, reason)
    assert str(error.value) == f"given, line {line}, column {column}: {reason}"


def test_what_is_no_utf8_is_named_with_its_place() -> None:
    with pytest.raises(HistoryError) as error:
        forms("{:é 1}\n{:ab".encode() + b"\xff}")
    assert (error.value.line, error.value.column) == (2, 5)


def test_what_has_no_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "LARGEST", 1000)
    assert forms("{:a 1} " * 100)
    endless = BytesIO(b"{:a 1} " * 1000)
    with pytest.raises(HistoryError, match="longer than 1000 bytes"):
        list(read_forms(endless, "given"))
    assert endless.tell() == 1001


def test_tags_upon_tags_end_soon() -> None:
    with pytest.raises(HistoryError, match="too many tags in a row"):
        forms("#_ " * 100_000)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inner)
    ),
    max_leaves=8,
)


@given(json_values)
def test_what_is_written_is_read_again(value: object) -> None:
    assert read_value(edn(value)) == value


SIGNS = st.text(st.sampled_from(list('{}[]()#_;:"\\ ,\nab1-+./Nux\x00é')), max_size=60)


@given(SIGNS | st.text(max_size=30))
def test_signs_in_any_order_are_values_or_an_error(text: str) -> None:
    result = outcome(text)
    places = [result[:2]] if isinstance(result, tuple) else [form[1:] for form in result]
    assert all(line >= 1 and column >= 1 for line, column in places)


def outcome(text: str) -> list[tuple[Any, int, int]] | tuple[int, Any, str]:
    try:
        return forms(text.encode(errors="replace"))
    except HistoryError as error:
        return error.line, error.column, error.reason
