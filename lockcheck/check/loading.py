"""Loads a history from anywhere: as columns if it is long, otherwise as events."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from lockcheck.errors import HistoryError, UserError
from lockcheck.formats import Format, ReadOptions, format_of, with_user_terms
from lockcheck.formats.opening import GZIP, STANDARD_INPUT, ZSTD, ByteStream, name_of, opened
from lockcheck.formats.source import Source
from lockcheck.formats.tables.row_events import RowEvents
from lockcheck.history import Event, History
from lockcheck.history.scan import Scan, scan
from lockcheck.history.seal import Seal, seal_of

# Below these, reading events takes less time than importing the reader of columns.
LONG = 4 << 20  # bytes of JSON Lines
MANY = 50_000  # events in other formats
JSON_LINES = "jsonl"
CHUNK = 1 << 20
DISK_CHECK_BYTES = 64 << 20
KEPT_FREE = 1 << 30  # of the disk that is unpacked to; on a small one a twentieth
KEPT_FREE_SHARE = 20


@dataclass(frozen=True, slots=True)
class Loaded:
    history: History | Scan
    format: str
    notes: tuple[str, ...] = ()  # what was ignored, and why
    seal: Seal | None = None  # None: another tool's history, or an older one


@contextmanager
def loaded(
    given: str, options: ReadOptions, on_bytes: Callable[[int], object] | None = None
) -> Iterator[Loaded]:
    """Opens a history: `given` is a file, packed or not, or `-` for standard input. A long one is
    read again while it is judged: what was unpacked has no name, and is gone with this process."""
    source = Source(name_of(given), options)
    with ExitStack() as kept:
        try:
            with opened(given) as data:
                form = format_of(data, source)
                if form.name == JSON_LINES:
                    path = _unpacked(given, data, kept)
                    found = _of_lines(path, form, source, on_bytes)
                else:
                    found = _of_other_format(data, form, source)
        except OSError as error:
            raise HistoryError(f"cannot be read: {error.strerror}", source=source.name) from error
        yield found


def _of_lines(
    path: Path, form: Format, source: Source, on_bytes: Callable[[int], object] | None
) -> Loaded:
    seal = seal_of(path, source.name)
    if path.stat().st_size >= LONG:
        found = scan(lambda: path.open("rb"), source.name, on_bytes, source.options.terms)
        if found is not None:
            return Loaded(found, form.name, seal=seal)
    with path.open("rb") as data:
        return replace(_by_events(form.read(data, source), form, source), seal=seal)


def _of_other_format(data: ByteStream, form: Format, source: Source) -> Loaded:
    events = form.read(data, source)
    if isinstance(events, RowEvents) and len(events) >= MANY:
        columns = events.columns()
        if columns is not None:
            terms = replace(source.options, partial=form.partial).terms
            found = Scan.of_columns(columns, events, source.name, terms)
            return Loaded(found, form.name, tuple(source.notes))
    return _by_events(events, form, source)


def _by_events(events: Iterable[Event], form: Format, source: Source) -> Loaded:
    complete = with_user_terms(events, form, source)
    history = History.of(complete, source=source.name, place=source.place)
    return Loaded(history, form.name, tuple(source.notes))


def _unpacked(given: str, data: ByteStream, kept: ExitStack) -> Path:
    """The path of a file that can be read again from any position, as long as it is kept."""
    if given != STANDARD_INPUT and not _is_packed(Path(given)):
        return Path(given)
    name = name_of(given)
    try:
        file = kept.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        _copy(data, file, name)
        file.flush()
    except OSError as error:
        raise _no_room(name, os.strerror(error.errno or 0)) from error
    return Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")


def _copy(data: ByteStream, out: IO[bytes], name: str) -> None:
    """Copies the stream. It raises its own HistoryErrors: an OSError comes from writing."""
    since = 0
    while piece := data.read(CHUNK):
        since += len(piece)
        if since >= DISK_CHECK_BYTES:
            _refuse_to_fill_the_disk(name, since)
            since = 0
        out.write(piece)


def _refuse_to_fill_the_disk(name: str, wanted: int) -> None:
    disk = shutil.disk_usage(tempfile.gettempdir())
    if disk.free - wanted < min(KEPT_FREE, disk.total // KEPT_FREE_SHARE):
        raise _no_room(name, f"it would leave next to nothing of {disk.free} free bytes")


def _no_room(name: str, reason: str) -> UserError:
    return UserError(
        f"{name} cannot be unpacked to {tempfile.gettempdir()}: {reason}",
        cure="name another folder for temporary files by TMPDIR, or unpack it and check the file",
    )


def _is_packed(path: Path) -> bool:
    """Whether it is packed, or is no regular file but a pipe."""
    if not path.is_file() or path.suffix in (".gz", ".zst"):
        return True
    with path.open("rb") as data:
        return data.read(len(ZSTD)).startswith((GZIP, ZSTD))
