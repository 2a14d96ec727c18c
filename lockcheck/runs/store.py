"""The folder of a run: the names of its files, how they are written, and which are read back."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, takewhile
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from lockcheck.errors import ClusterError, HistoryError, UserError, is_out_of_space
from lockcheck.history import Terms, read_history
from lockcheck.history.event import terms_event
from lockcheck.history.files import merge_event_files, read_events, write_events
from lockcheck.history.seal import Seal, digest_of, sealed
from lockcheck.nodes import NODES_FOLDER
from lockcheck.runs.facts import RunFacts

if TYPE_CHECKING:
    from lockcheck.config import RunConfig
    from lockcheck.runs.record import Record

HISTORY_FILE, VERDICT_FILE, REPORT_FILE = "history.jsonl", "verdict.json", "report.html"
CONFIG_FILE, FACTS_FILE, RECORD_FILE = "config.json", "facts.json", "record.json"
TERMS_FILE = "terms.jsonl"
ALONE = "check the file history.jsonl alone, if that is enough"


@dataclass(frozen=True, slots=True)
class Store:
    """Writes only to this folder: not to one that takes its place meanwhile, nor through links in
    it. Both may belong to another user while lockcheck runs as root."""

    folder: Path
    device_and_inode: tuple[int, int]

    @property
    def run_id(self) -> str:
        return self.folder.name

    @property
    def history(self) -> Path:
        return self.folder / HISTORY_FILE

    @property
    def report(self) -> Path:
        return self.folder / REPORT_FILE

    @staticmethod
    def at(folder: Path) -> Store:
        folder = folder.resolve()
        return Store(folder, _identity(folder.stat()))

    @staticmethod
    def create(out: Path) -> Store:
        """A new folder below `out`, and `out/latest` pointing to it."""
        run_id = f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        folder = out / run_id
        try:
            folder.mkdir(parents=True)
            store = Store.at(folder)
            with store._opened() as handle:
                _make_ours(NODES_FOLDER, handle, folder)
            _point_latest_to(store.folder)
        except OSError as error:
            raise UserError(
                f"{out} cannot hold results: {error.strerror}",
                cure="choose another folder with --out DIR",
            ) from error
        return store

    @contextmanager
    def held(self) -> Iterator[Path]:
        """A path into this folder even if another takes its place, where the system has such."""
        with self._opened() as handle:
            path = Path(f"/proc/self/fd/{handle}")
            yield path if path.exists() else self.folder

    @contextmanager
    def _opened(self) -> Iterator[int]:
        handle = os.open(self.folder, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if _identity(os.fstat(handle)) != self.device_and_inode:
                raise OSError(errno.ESTALE, "another folder is in its place", str(self.folder))
            yield handle
        finally:
            os.close(handle)

    def begin(self, config: RunConfig, terms: Terms, facts: RunFacts) -> None:
        """Writes what has to be there already if the run is killed."""
        self._write(CONFIG_FILE, config)
        self._write(FACTS_FILE, facts)
        with self.held() as folder:
            write_events(folder / NODES_FOLDER / TERMS_FILE, [terms_event(terms)])

    @property
    def is_unassembled(self) -> bool:
        """The run was killed, or has not ended yet."""
        return not self.history.exists() and (self._parts / TERMS_FILE).exists()

    def terms(self) -> Terms:
        """The terms of the run, as written when it began."""
        return read_history(self._parts / TERMS_FILE).terms

    def assemble_history(self, terms: Terms, facts: RunFacts, until_ns: int | None = None) -> None:
        """Merges what clients, nemesis and storage wrote; seals that together with the facts."""
        parts = {*self._parts.glob("*/history.jsonl"), *self._parts.glob("*.jsonl")}
        parts -= {self._parts / TERMS_FILE}
        merged = merge_event_files(sorted(parts))
        if until_ns is not None:
            merged = takewhile(lambda event: event.time <= until_ns, merged)
        events = chain([terms_event(terms)], merged)
        with self.writing(HISTORY_FILE) as out:
            out.writelines(sealed(events, _pretty(facts)))
        self._write(FACTS_FILE, facts)

    def complete_until_ns(self, clients: int) -> int:
        """The time up to which all clients' files are complete. Later lines may be missing from one
        of them, as after a power failure: the others' alone would accuse a client or the lock."""
        found = list(self._parts.glob(f"c*/{HISTORY_FILE}"))
        return min(map(_last_ns, found), default=0) if len(found) >= clients else 0

    @property
    def _parts(self) -> Path:
        return self.folder / NODES_FOLDER

    def load_facts(self, seal: Seal | None) -> RunFacts | None:
        """None for a bare history, which is judged without them."""
        path = self.folder / FACTS_FILE
        try:
            written = path.read_bytes()
            if seal is not None and digest_of(written) != seal.facts:
                raise HistoryError("it was changed since the run", source=str(path), cure=ALONE)
            return msgspec.json.decode(written, type=RunFacts)
        except FileNotFoundError as error:
            if seal is None:
                return None
            raise HistoryError("it is missing", source=str(path), cure=ALONE) from error
        except (OSError, msgspec.DecodeError) as error:
            raise HistoryError(f"cannot be read: {error}", source=str(path), cure=ALONE) from error

    def config(self) -> RunConfig:
        """The configuration that the run was given."""
        from lockcheck.config import read_config

        return read_config(self.folder / CONFIG_FILE)

    def save_record(self, record: Record) -> None:
        self._write(RECORD_FILE, record)

    def save_verdict(self, summary: msgspec.Struct) -> None:
        self._write(VERDICT_FILE, summary)

    def save_page(self, page: str) -> None:
        with self.writing(REPORT_FILE) as out:
            out.write(page.encode())

    def _write(self, name: str, value: object) -> None:
        with self.writing(name) as out:
            out.write(_pretty(value))

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Opens a file of the folder for writing; it appears only when it is complete."""
        with self._opened() as folder:
            unfinished = f".{name}-{secrets.token_hex(4)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            try:
                with open(os.open(unfinished, flags, 0o644, dir_fd=folder), "wb") as out:  # noqa: PTH123
                    yield out
                os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with suppress(FileNotFoundError):  # it has its name by now
                    os.unlink(unfinished, dir_fd=folder)


def _last_ns(history: Path) -> int:
    last = 0
    for event in read_events(history, allow_torn_end=True):
        last = event.time
    return last


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino


def _make_ours(name: str, handle: int, folder: Path) -> None:
    """Makes a folder in one that was just made. Both have the same owner, unless another user put a
    folder of theirs in its place."""
    os.mkdir(name, dir_fd=handle)
    if os.stat(name, dir_fd=handle).st_uid != os.fstat(handle).st_uid:
        raise OSError(errno.ESTALE, "another folder is in its place", str(folder))


def _point_latest_to(folder: Path) -> None:
    link = folder.parent / "latest"
    fresh = folder.parent / f".latest-{folder.name}"
    if link.is_symlink() or not link.exists():  # else the user made it
        with suppress(OSError):  # some file systems have no links
            fresh.symlink_to(folder.name)
            fresh.replace(link)


def out_of_space(error: OSError, folder: Path) -> ClusterError:
    """The error for a failed write of a run: a full disk is named as such."""
    if is_out_of_space(error):
        return ClusterError(
            f"no space is left for the run's files in {folder}",
            cure="make room, or choose another place with --out DIR",
        )
    return ClusterError(f"{error.filename or folder}: {error.strerror}")
