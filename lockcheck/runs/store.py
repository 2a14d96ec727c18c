"""The folder of a run: where each thing that it leaves is, and what of it can be read again."""

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
    """What is put in the folder's place while it is used is not written to, nor what a link in it
    points to: it may be a stranger's, and we root."""

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
        """A path into this folder, whatever takes its place meanwhile (where the system has one:
        on others, the folder's own)."""
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
        """It was killed, or has not ended yet."""
        return not self.history.exists() and (self._parts / TERMS_FILE).exists()

    def terms(self) -> Terms:
        """As they were when the run began."""
        return read_history(self._parts / TERMS_FILE).terms

    def assemble_history(self, terms: Terms, facts: RunFacts, until_ns: int | None = None) -> None:
        """One history out of what the clients, the nemesis and the storage wrote, sealed together
        with what else is to be told of the run."""
        parts = {*self._parts.glob("*/history.jsonl"), *self._parts.glob("*.jsonl")}
        parts -= {self._parts / TERMS_FILE}
        told = merge_event_files(sorted(parts))
        if until_ns is not None:
            told = takewhile(lambda event: event.time <= until_ns, told)
        events = chain([terms_event(terms)], told)
        with self.writing(HISTORY_FILE) as out:
            out.writelines(sealed(events, _pretty(facts)))
        self._write(FACTS_FILE, facts)

    def complete_until_ns(self, clients: int) -> int:
        """Up to here the lines of all clients are there. What was written last may be missing from
        a file, as after the machine went down: judged with the others' it would accuse somebody."""
        found = list(self._parts.glob(f"c*/{HISTORY_FILE}"))
        return min(map(_last_ns, found), default=0) if len(found) >= clients else 0

    @property
    def _parts(self) -> Path:
        return self.folder / NODES_FOLDER

    def load_facts(self, seal: Seal | None) -> RunFacts | None:
        """None of a bare history, which is judged all the same."""
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
        """Of the run, as it was given."""
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
        """A file of the folder, which is there as a whole or not at all."""
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
    """In a folder that was just made. Whoever owns what we make on this file system owns that one,
    too, unless somebody put theirs in its place."""
    os.mkdir(name, dir_fd=handle)
    if os.stat(name, dir_fd=handle).st_uid != os.fstat(handle).st_uid:
        raise OSError(errno.ESTALE, "another folder is in its place", str(folder))


def _point_latest_to(folder: Path) -> None:
    link = folder.parent / "latest"
    fresh = folder.parent / f".latest-{folder.name}"
    if link.is_symlink() or not link.exists():  # else it is the user's own
        with suppress(OSError):  # a convenience; some file systems have no links
            fresh.symlink_to(folder.name)
            fresh.replace(link)


def out_of_space(error: OSError, folder: Path) -> ClusterError:
    """The one OSError that can strike at any write of a run, told as what it is."""
    if is_out_of_space(error):
        return ClusterError(
            f"no space is left for the run's files in {folder}",
            cure="make room, or choose another place with --out DIR",
        )
    return ClusterError(f"{error.filename or folder}: {error.strerror}")
