"""A history that ends with a seal: later changes are noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.errors import HistoryError
from lockcheck.history.files import read_events
from lockcheck.history.seal import digest_of, seal_of, sealed
from tests.simulation import Plan, simulated_events

FACTS = b"{}\n"
Lines = list[bytes]


def lines_of(seed: int) -> Lines:
    return list(sealed(simulated_events(Plan(seed=seed, until_ms=200)), FACTS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.jsonl"


def test_an_undamaged_history_has_its_seal(path: Path) -> None:
    path.write_bytes(b"".join(lines_of(1)))
    seal = seal_of(path, "it")
    assert seal is not None
    assert seal.facts == digest_of(FACTS)
    assert sum(seal.events.values()) == len(list(read_events(path))) - 1


def test_another_tools_history_has_none(path: Path) -> None:
    lines = lines_of(1)
    path.write_bytes(b"".join([lines[0], *lines[2:-1]]))
    assert seal_of(path, "it") is None
    for text in (b"", b"\n", b"a,b\n1,2\n", b"\xff" * 100, b"[]"):
        path.write_bytes(text)
        assert seal_of(path, "it") is None


@given(st.integers(0, 3), st.data())
def test_whatever_is_done_to_its_bytes_is_seen(
    tmp_path_factory: pytest.TempPathFactory, seed: int, data: st.DataObject
) -> None:
    """Except for changes that leave neither the announcement nor the seal."""
    path = tmp_path_factory.getbasetemp() / "history.jsonl"
    lines = lines_of(seed)
    whole = b"".join(lines)
    begin = data.draw(st.integers(0, len(whole) - 1))
    length = data.draw(st.integers(0, 200))
    other = data.draw(st.binary(max_size=20))
    damaged = whole[:begin] + other + whole[begin + length :]
    path.write_bytes(damaged)
    promised = damaged.startswith(b"".join(lines[:2]))
    if damaged.rstrip(b"\n") == whole.rstrip(b"\n"):
        assert seal_of(path, "it")
    elif promised or damaged.endswith(lines[-1]):
        with pytest.raises(HistoryError):
            seal_of(path, "it")


DAMAGES: dict[str, tuple[Callable[[Lines], Lines], str]] = {
    "cut at the end of a line": (lambda lines: lines[:-1], "cut off"),
    "cut after the promise": (lambda lines: lines[:2], "cut off"),
    "cut within a line": (lambda lines: [*lines[:-1], lines[-1][:-9]], "cut off"),
    "a line is missing": (lambda lines: [*lines[:9], *lines[10:]], "1 of process"),
    "a client is missing": (
        lambda lines: [line for line in lines if b'"process":1,' not in line],
        "of process 1",
    ),
    "a line stands twice": (lambda lines: [*lines[:9], *lines[8:]], "changed"),
    "the promise is gone": (lambda lines: [lines[0], *lines[2:]], "1 of run"),
    "a digit is another": (
        lambda lines: [*lines[:9], lines[9].replace(b'"time":', b'"time":1'), *lines[10:]],
        "changed",
    ),
    "something follows": (lambda lines: [*lines, lines[-2]], "cut off"),
}


@pytest.mark.parametrize(("damaged", "words"), DAMAGES.values(), ids=DAMAGES)
def test_what_was_done_to_it_is_seen(
    path: Path, damaged: Callable[[Lines], Lines], words: str
) -> None:
    path.write_bytes(b"".join(damaged(lines_of(1))))
    with pytest.raises(HistoryError, match=words):
        seal_of(path, "it")
