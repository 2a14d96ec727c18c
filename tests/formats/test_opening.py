"""Where the bytes come from, how they are packed, and which format they are recognized as."""

from __future__ import annotations

import gzip
import io
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from lockcheck.errors import HistoryError, UserError
from lockcheck.formats import FORMATS, ReadOptions, opening, read_any, reading
from lockcheck.signals import Interrupted
from tests.formats.samples import SAMPLES
from tests.waiting import wait_for

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def test_there_is_a_sample_of_every_format() -> None:
    assert SAMPLES.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("named", [True, False], ids=["by its name", "by its content"])
def test_every_format_is_known_by_sight(
    tmp_path: Path, name: str, packing: str, named: bool
) -> None:
    path = tmp_path / (f"history{packing}" if named else "history")
    path.write_bytes(PACKED[packing](SAMPLES[name].encode()))
    history, found = read_any(str(path))
    assert found.format.name == name
    assert [operation.process for operation in history.operations] in ([3], [3, 3])


@pytest.mark.parametrize("name", ["edn", "csv"])
@pytest.mark.parametrize("packing", PACKED)
def test_standard_input(monkeypatch: pytest.MonkeyPatch, name: str, packing: str) -> None:
    data = io.BytesIO(PACKED[packing](SAMPLES[name].encode()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(data)))
    history, found = read_any("-")
    assert (found.format.name, found.source.name) == (name, "standard input")
    assert history.operations


def test_what_it_holds_counts_for_more_than_how_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text(SAMPLES["edn"])
    assert read_any(str(path))[1].format.name == "edn"


def test_what_cannot_be_recognized_by_content_is_by_its_ending(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n\nonce upon a time"))
    with pytest.raises(HistoryError, match=r"history\.jsonl\.gz, line 3, column 1: not an event"):
        read_any(str(path))


def test_an_unknown_format(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("once upon a time")
    with pytest.raises(UserError, match="in no format that lockcheck recognizes") as error:
        read_any(str(path))
    assert "--format: otlp, jsonl" in error.value.cure
    with pytest.raises(UserError, match="unknown format 'xml'"):
        read_any(str(path), ReadOptions(format="xml"))


def test_the_user_names_the_format_and_the_model(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text(SAMPLES["jsonl"])
    assert read_any(str(path))[0].terms.model == "mutex"
    history, _ = read_any(str(path), ReadOptions(format="jsonl", model="fenced"))
    assert history.terms.model == "fenced"
    with pytest.raises(HistoryError):
        read_any(str(path), ReadOptions(format="csv"))


def test_lines_are_counted_with_the_blank_ones(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_text("\n" + SAMPLES["jsonl"] + "\n\n" + SAMPLES["jsonl"].splitlines()[2])
    with pytest.raises(HistoryError) as error:
        read_any(str(path))
    assert error.value.line == 7
    assert "has an answer to a acquire that it never invoked" in error.value.reason


SAMPLE = SAMPLES["edn"].encode() * 50
ZSTD = PACKED[".zst"](SAMPLE)
DAMAGED = {
    "gzip cut off": ("h.gz", gzip.compress(SAMPLE)[:-9]),
    "gzip without its head": ("h.gz", SAMPLE),
    "gzip with a wrong sum": ("h.gz", gzip.compress(SAMPLE)[:-8] + b"12345678"),
    "gzip with something behind it": ("h.gz", gzip.compress(SAMPLE) + b"more"),
    "gzip broken inside": ("h.gz", gzip.compress(SAMPLE)[:30] + b"\xff" * 40),
    "zstd cut off": ("h.zst", ZSTD[:-5]),
    "zstd without its head": ("h.zst", SAMPLE),
    "zstd broken inside": ("h.zst", ZSTD[:20] + b"\xff\xff" + ZSTD[22:]),
    "zstd with something behind it": ("h.zst", ZSTD + b"more, and more"),
}


@pytest.mark.parametrize(("name", "data"), DAMAGED.values(), ids=DAMAGED)
def test_damage_is_named(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(HistoryError, match="damaged: ") as error:
        read_any(str(path))
    assert str(path) in str(error.value)


def test_several_packed_parts_are_one_history(tmp_path: Path) -> None:
    lines = SAMPLES["txt"].splitlines(keepends=True)
    for ending in (".gz", ".zst"):
        path = tmp_path / f"history{ending}"
        path.write_bytes(b"".join(PACKED[ending](line.encode()) for line in lines))
        assert len(read_any(str(path))[0].operations) == 1


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_what_unpacks_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = tmp_path / f"history.edn{ending}"
    path.write_bytes(PACKED[ending](b" " * (1 << 22)))
    monkeypatch.setattr(opening, "LARGEST_UNPACKED", 1 << 21)
    with pytest.raises(HistoryError, match="it unpacks to more than 2097152 bytes"):
        read_any(str(path))


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_what_no_history_can_be_packed_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = tmp_path / f"history.edn{ending}"
    path.write_bytes(PACKED[ending](SAMPLES["edn"].encode() + b" " * (1 << 24)))
    assert read_any(str(path))[0].operations
    monkeypatch.setattr(opening, "SMALL_UNPACKED", 1 << 20)
    with pytest.raises(HistoryError, match="to more than 200 times its size: no history does"):
        read_any(str(path))


def test_what_is_packed_well_is_none_of_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "history.txt.gz"
    line = "{0}\t:invoke\t:write\t{0}\n{0}\t:ok\t:write\t{0}\n"
    path.write_bytes(gzip.compress("".join(map(line.format, range(9999))).encode()))
    monkeypatch.setattr(opening, "SMALL_UNPACKED", 1 << 10)
    assert len(read_any(str(path))[0].operations) == 9999


def test_a_pipe_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO(SAMPLES["edn"].encode() + b" " * (1 << 22))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(data)))
    monkeypatch.setattr(opening, "LARGEST_UNPACKED", 1 << 21)
    with pytest.raises(HistoryError, match="standard input: it is more than 2097152 bytes"):
        read_any("-")


def test_a_signal_that_breaks_off_no_read_is_heard_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another thread gets it, while this one waits for more than the first byte."""
    read_end, write_end = os.pipe()
    heard = threading.Event()
    in_time = []

    def interrupt(number: int, _frame: object) -> None:
        raise Interrupted(number)

    def sending() -> None:
        os.write(write_end, b"{")
        wait_for(lambda: not select.select([read_end], [], [], 0)[0], "it has read that byte")
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        in_time.append(heard.wait(20))
        os.close(write_end)

    with os.fdopen(read_end, encoding="utf-8") as standard_input:
        monkeypatch.setattr(sys, "stdin", standard_input)
        sender = threading.Thread(target=sending)
        before = signal.signal(signal.SIGTERM, interrupt)
        try:
            sender.start()
            with pytest.raises(Interrupted):
                read_any("-")
        finally:
            signal.signal(signal.SIGTERM, before)
        heard.set()
        sender.join()
    assert in_time == [True]


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(HistoryError, match="standard input: it is closed"):
        read_any("-")


@pytest.mark.parametrize("name", ["history", *(f"history.{name}" for name in FORMATS)])
@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_what_is_empty(tmp_path: Path, name: str, packing: str, data: bytes) -> None:
    path = tmp_path / f"{name}{packing}"
    path.write_bytes(PACKED[packing](data))
    for asked in (ReadOptions(), *map(ReadOptions, FORMATS)):
        with pytest.raises(HistoryError, match="it is empty"):
            read_any(str(path), asked)


@pytest.mark.parametrize("name", ["missing.edn", ".", "zero\0"])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(HistoryError, match="cannot be read"):
        read_any(str(tmp_path / name))


def test_what_the_reader_does_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text(SAMPLES["edn"])
    with pytest.raises(BrokenPipeError), reading(str(path)):
        raise BrokenPipeError
