"""A history from wherever the user has it, as columns where it is long and as events where not."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lockcheck.errors import HistoryError
from lockcheck.formats import Asked, Reading, events_of
from lockcheck.formats.opening import GZIP, STANDARD_INPUT, ZSTD, name_of, opened
from lockcheck.formats.source import Source
from lockcheck.history import History
from lockcheck.history.scan import Scan, scan

LONG = 4 << 20  # bytes: below, reading events costs less than importing what reads columns
JSON_LINES = "jsonl"


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
            path = _unpacked(given, Path(folder))
            found = _scanned(path, name, asked, on_bytes) or _by_events(path, name, asked)
        except OSError as error:
            raise HistoryError(f"cannot be read: {error.strerror}", source=name) from error
        yield found


def _unpacked(given: str, folder: Path) -> Path:
    """What can be read again from any place in it."""
    path = Path(given)
    if given != STANDARD_INPUT and not _is_packed(path):
        return path
    path = folder / "history"
    with opened(given) as data, path.open("wb") as out:
        shutil.copyfileobj(data, out, 1 << 20)
    return path


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
