"""A history from wherever the user has it, as columns where it is long and as events where not."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lockcheck.errors import HistoryError, UserError
from lockcheck.formats import Asked, Reading, events_of, format_of
from lockcheck.formats.opening import GZIP, STANDARD_INPUT, ZSTD, Stream, name_of, opened
from lockcheck.formats.source import Source
from lockcheck.history import History
from lockcheck.history.scan import Scan, scan

LONG = 4 << 20  # bytes: below, reading events costs less than importing what reads columns
JSON_LINES = "jsonl"
AT_ONCE = 1 << 20
LOOKED_AT_DISK_EVERY = 64 << 20
LEFT_FREE = 1 << 30  # of the disk that it is unpacked to; of a small one a twentieth
LEFT_FREE_SHARE = 20


@dataclass(frozen=True, slots=True)
class Loaded:
    history: History | Scan
    format: str
    notes: tuple[str, ...] = ()  # what was left out, and why


@contextmanager
def loaded(
    given: str, asked: Asked, on_bytes: Callable[[int], object] | None = None
) -> Iterator[Loaded]:
    """`given` is a file, packed or not, or `-` for standard input. What is long is read from its
    file again while it is judged, so that is there for as long as this is."""
    name = name_of(given)
    with tempfile.TemporaryDirectory(prefix="lockcheck-") as folder:
        try:
            path = _unpacked(given, asked, Path(folder))
            found = _scanned(path, name, asked, on_bytes) or _by_events(path, name, asked)
        except OSError as error:
            raise HistoryError(f"cannot be read: {error.strerror}", source=name) from error
        yield found


def _unpacked(given: str, asked: Asked, folder: Path) -> Path:
    """What can be read again from any place in it."""
    path = Path(given)
    if given != STANDARD_INPUT and not _is_packed(path):
        return path
    path, name = folder / "history", name_of(given)
    with opened(given) as data:
        format_of(data, Source(name, asked))  # what is no history is not copied
        try:
            _copy(data, path, name)
        except OSError as error:
            raise _no_room(name, folder, os.strerror(error.errno or 0)) from error
    return path


def _copy(data: Stream, path: Path, name: str) -> None:
    """The stream says of itself what is wrong with it: an OSError is one of the copy."""
    since = 0
    with path.open("wb") as out:
        while piece := data.read(AT_ONCE):
            since += len(piece)
            if since >= LOOKED_AT_DISK_EVERY:
                _refuse_to_fill_the_disk(path.parent, name, since)
                since = 0
            out.write(piece)


def _refuse_to_fill_the_disk(folder: Path, name: str, wanted: int) -> None:
    disk = shutil.disk_usage(folder)
    if disk.free - wanted < min(LEFT_FREE, disk.total // LEFT_FREE_SHARE):
        raise _no_room(name, folder, f"it would leave next to nothing of {disk.free} free bytes")


def _no_room(name: str, folder: Path, reason: str) -> UserError:
    return UserError(
        f"{name} cannot be unpacked to {folder.parent}: {reason}",
        cure="name another folder for temporary files by TMPDIR, or unpack it and check the file",
    )


def _is_packed(path: Path) -> bool:
    """Or no file at all, but a pipe."""
    if not path.is_file() or path.suffix in (".gz", ".zst"):
        return True
    with path.open("rb") as data:
        return data.read(len(ZSTD)).startswith((GZIP, ZSTD))


def _scanned(
    path: Path, name: str, asked: Asked, on_bytes: Callable[[int], object] | None
) -> Loaded | None:
    if path.stat().st_size < LONG:
        return None
    with _reading(path, name, asked) as reading:
        if reading.format.name != JSON_LINES:
            return None
    found = scan(lambda: path.open("rb"), name, on_bytes, asked.terms)
    return None if found is None else Loaded(found, JSON_LINES)


def _by_events(path: Path, name: str, asked: Asked) -> Loaded:
    with _reading(path, name, asked) as reading:
        source = reading.source
        history = History.of(reading.events, source=name, place=source.place)
        return Loaded(history, reading.format.name, tuple(source.notes))


@contextmanager
def _reading(path: Path, name: str, asked: Asked) -> Iterator[Reading]:
    with opened(str(path)) as data:
        yield events_of(data, Source(name, asked))
