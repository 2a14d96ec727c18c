"""Any bytes in any format are a history, or an error that names the file."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.errors import HistoryError, UserError
from lockcheck.formats import FORMATS, read_any
from tests.formats.samples import SAMPLES
from tests.formats.texts import error_in

ODD = [
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\r",
    b'"',
    b"'",
    b"\\",
    b",",
    b"{",
    b"}",
    b"[",
    b"]",
    b"[" * 200,
    b'{"a":' * 200,
    b"{:a " * 200,
    b"9" * 5000,
    b"1e999",
    b"-1",
    b"1.5",
    b"null",
    b"nil",
    b":ok",
    b"#_",
    b"\\ud800",
    b"\xed\xa0\x80",
    b"process",
    b"18446744073709551616",
    b"9223372036854775807",
]
edits = st.lists(
    st.tuples(
        st.floats(0, 1),  # where
        st.integers(0, 30),  # how much is taken out
        st.sampled_from(ODD) | st.binary(max_size=6),  # what is put in
    ),
    max_size=4,
)


def edited(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    for where, less, more in edits:
        place = int(where * len(data))
        data = data[:place] + more + data[place + less :]
    return data


@pytest.mark.parametrize("name", FORMATS)
@given(edits=edits, again=st.booleans())
def test_what_was_edited(name: str, edits: list[tuple[float, int, bytes]], again: bool) -> None:
    data = edited(SAMPLES[name].encode() * (1 + again), edits)
    error = error_in(name, data)
    assert error is None or "given" in str(error)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.binary(max_size=80) | st.lists(st.sampled_from(ODD), max_size=8).map(b"".join))
def test_bytes_in_any_order(name: str, data: bytes) -> None:
    error = error_in(name, data)
    assert error is None or "given" in str(error)


@given(st.sampled_from(list(SAMPLES)), edits, st.sampled_from([".gz", ".zst"]), edits)
def test_what_was_packed(
    tmp_path: Path,
    name: str,
    inside: list[tuple[float, int, bytes]],
    packing: str,
    outside: list[tuple[float, int, bytes]],
) -> None:
    pack = gzip.compress if packing == ".gz" else zstandard.ZstdCompressor().compress
    path = tmp_path / f"history{packing}"
    path.write_bytes(edited(pack(edited(SAMPLES[name].encode(), inside)), outside))
    assert error_of(path) is None or str(path) in str(error_of(path))


def error_of(path: Path) -> UserError | None:
    try:
        read_any(str(path))
    except UserError as error:
        return error
    return None


LONG = {
    "one line": b"x" * (1 << 22),
    "blanks": b" " * (1 << 22),
    "ends of lines": b"\n" * (1 << 20),
    "nothing": b"\x00" * (1 << 22),
    "a text": b'"' + b"x" * (1 << 22),
    "brackets": b"[" * (1 << 20),
    "objects": b'{"a":' * (1 << 20),
    "maps": b"{:a " * (1 << 20),
    "discards": b"#_ " * (1 << 20),
    "texts": b'""' * (1 << 20),
    "escapes": b'"' + b"\\" * (1 << 21),
    "commas": b"," * (1 << 22),
    "an operation and blanks": b"3\t:ok" + b" " * (1 << 19) + b"\r" + b" " * (1 << 19),
    "the log and blanks": (b"jepsen.util" + b" " * 5000) * 200,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("data", LONG.values(), ids=LONG)
@pytest.mark.timeout(60)
def test_megabytes_of_nonsense_end_soon(name: str, data: bytes) -> None:
    """Each takes well below a second; what grew with the square of the size would take hours."""
    error = error_in(name, data)
    assert error is None or isinstance(error, HistoryError)
