"""A history's bytes: from a file or standard input, packed or not.

Packed bytes are unpacked as they are read, with limits: what unpacks to more than any history has,
or from less than any history packs to, is refused. So is a pipe that does not end.
"""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lockcheck.errors import HistoryError, UserError
from lockcheck.formats.awaited import Readable, awaited

if TYPE_CHECKING:
    from typing_extensions import Buffer

STANDARD_INPUT = "-"
LARGEST_UNPACKED = 1 << 34
SMALL_UNPACKED = 1 << 26  # accepted at any ratio
LARGEST_RATIO = 200  # histories pack to a tenth or a thirtieth
CHUNK = 1 << 18
ZSTD_CHUNK = 1 << 10  # packed bytes that can unpack to 32 MiB at most
LARGEST_ZSTD_WINDOW = 1 << 27

ByteStream: TypeAlias = "io.BufferedReader[Guarded]"

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"


def name_of(given: str) -> str:
    return "standard input" if given == STANDARD_INPUT else given


@contextmanager
def opened(given: str) -> Iterator[ByteStream]:
    """The history's unpacked bytes, in a reader that can peek."""
    name = name_of(given)
    with _raw(given, name) as raw:
        guarded = Guarded(raw, name, sys.maxsize if _has_an_end(given) else LARGEST_UNPACKED)
        packed = io.BufferedReader(guarded, CHUNK)
        unpacked = _unpacked(packed, given, name)
        if unpacked is None:
            yield packed
        else:
            yield io.BufferedReader(
                Guarded(unpacked, name, LARGEST_UNPACKED, packed=guarded), CHUNK
            )


def _has_an_end(given: str) -> bool:
    """Whether it is a regular file; a pipe or a device may never end."""
    return given != STANDARD_INPUT and Path(given).is_file()


@contextmanager
def _raw(given: str, name: str) -> Iterator[Readable]:
    if given == STANDARD_INPUT:
        if sys.stdin is None:
            raise HistoryError("it is closed", source=name)
        with awaited(sys.stdin.buffer) as stream:
            yield stream
        return
    try:
        file = Path(given).open("rb", buffering=0)  # noqa: SIM115 - closed below, outside of `try`
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from error
    with file:
        if _has_an_end(given):
            yield file
        else:
            with awaited(file) as stream:
                yield stream


def _unreadable(name: str, error: OSError | ValueError) -> HistoryError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return HistoryError(f"cannot be read: {reason}", source=name)


def plain_name(given: str) -> str:
    """The name without the ending of a compression."""
    return given.removesuffix(".gz").removesuffix(".zst")


def _unpacked(packed: ByteStream, given: str, name: str) -> Readable | None:
    head = packed.peek(len(ZSTD))
    if head.startswith(GZIP) or given.endswith(".gz"):
        return gzip.GzipFile(fileobj=packed)
    if head.startswith(ZSTD) or given.endswith(".zst"):
        return _Zstd(packed, name)
    return None


class Guarded(io.RawIOBase):
    """Reads at most `limit` bytes, and no more than `packed` can contain."""

    def __init__(
        self, inner: Readable, name: str, limit: int, *, packed: Guarded | None = None
    ) -> None:
        self.passed = 0  # bytes
        self._inner = inner
        self._name = name
        self._limit = limit
        self._packed = packed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        filled = 0
        while data := self._read(min(len(view) - filled, CHUNK)):
            view[filled : filled + len(data)] = data
            filled += len(data)
        return filled

    def _read(self, size: int) -> bytes:
        try:
            data = self._inner.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._error(f"damaged: {str(error).rstrip('.')}") from error
        except (OSError, ValueError) as error:
            raise _unreadable(self._name, error) from error
        self.passed += len(data)
        self._refuse_too_much()
        return data

    def _refuse_too_much(self) -> None:
        if self.passed > self._limit:
            verb = "is" if self._packed is None else "unpacks to"
            raise self._error(f"it {verb} more than {self._limit} bytes")
        if self._packed is None or self.passed <= SMALL_UNPACKED:
            return
        if self.passed > LARGEST_RATIO * self._packed.passed:
            raise self._error(
                f"it unpacks to more than {LARGEST_RATIO} times its size: no history does"
            )

    def _error(self, reason: str) -> HistoryError:
        return HistoryError(reason, source=self._name)


class _Zstd:
    """Unpacks Zstandard frame by frame: the package's own reader misses a truncated file."""

    def __init__(self, packed: ByteStream, name: str) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise UserError(
                f"{name} is packed with Zstandard, which this Python cannot unpack",
                cure="pip install zstandard, or unpack it: zstd -dc FILE | lockcheck check -",
            ) from error
        unpacker = zstandard.ZstdDecompressor(max_window_size=LARGEST_ZSTD_WINDOW)
        self._new_frame: Callable[[], zstandard.ZstdDecompressionObj] = unpacker.decompressobj
        self._damage = zstandard.ZstdError
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._packed = packed
        self._name = name
        self._rest = b""
        self._ready = memoryview(b"")

    def read(self, size: int) -> bytes:
        while not self._ready:
            packed = self._rest or self._packed.read(ZSTD_CHUNK)
            self._rest = b""
            if not packed:
                if self._frame is not None:
                    raise HistoryError("damaged: it is cut off", source=self._name)
                return b""
            self._ready = memoryview(self._unpack(packed))
        data, self._ready = bytes(self._ready[:size]), self._ready[size:]
        return data

    def _unpack(self, packed: bytes) -> bytes:
        frame = self._frame = self._frame or self._new_frame()
        try:
            data = frame.decompress(packed)
        except self._damage as error:
            raise HistoryError(f"damaged: {error}", source=self._name) from error
        if frame.eof:
            self._frame, self._rest = None, frame.unused_data
        return data
