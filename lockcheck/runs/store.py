"""The folder of a run: the names of its files, how they are written, and which are read back."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lockcheck.errors import ClusterError, HistoryError, UserError, is_out_of_space
from lockcheck.files import read_document, writing
from lockcheck.history import History, Terms
from lockcheck.history.event import terms_event
from lockcheck.history.files import merge_event_files, read_events, write_events
from lockcheck.history.seal import Seal, digest_of, sealed
from lockcheck.nodes import NODES_FOLDER
from lockcheck.runs.facts import RunFacts
from lockcheck.trust import refuse_foreign_place

if TYPE_CHECKING:
    from lockcheck.config import RunConfig
    from lockcheck.runs.record import Record

HISTORY_FILE, VERDICT_FILE, REPORT_FILE = "history.jsonl", "verdict.json", "report.html"
CONFIG_FILE, FACTS_FILE, RECORD_FILE = "config.json", "facts.json", "record.json"
TERMS_FILE = "terms.jsonl"
ALONE = "check the file history.jsonl alone, if that is enough"


@dataclass(frozen=True, slots=True)
class Store:
    folder: Path

    @staticmethod
    def at(folder: Path) -> Store:
        return Store(folder.resolve())

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
    def create(out: Path) -> Store:
        """A new folder below `out`, and `out/latest` pointing to it. Root makes none where another
        user could take it away, and put something else in its place."""
        run_id = f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        refuse_foreign_place(out / run_id)
        folder = out.resolve() / run_id
        try:
            (folder / NODES_FOLDER).mkdir(parents=True)
            _point_latest_to(folder)
        except OSError as error:
            raise UserError(
                f"{out} cannot hold results: {error.strerror}",
                cure="choose another folder with --out DIR",
            ) from error
        return Store(folder)

    def begin(self, config: RunConfig, terms: Terms, facts: RunFacts) -> None:
        """Writes what has to be there already if the run is killed."""
        self._write(CONFIG_FILE, config)
        self._write(FACTS_FILE, facts)
        write_events(self._parts / TERMS_FILE, [terms_event(terms)])

    @property
    def is_unassembled(self) -> bool:
        """The run was killed, or has not ended yet."""
        return not self.history.exists() and (self._parts / TERMS_FILE).exists()

    def terms(self) -> Terms:
        """The terms of the run, as written when it began."""
        return History.of(read_events(self._parts / TERMS_FILE)).terms

    def assemble_history(self, terms: Terms, facts: RunFacts, until_ns: int | None = None) -> None:
        """Merges what clients, nemesis and storage wrote; seals that together with the facts."""
        parts = {*self._parts.glob("*/history.jsonl"), *self._parts.glob("*.jsonl")}
        parts -= {self._parts / TERMS_FILE}
        merged = merge_event_files(sorted(parts))
        if until_ns is not None:
            merged = takewhile(lambda event: event.time <= until_ns, merged)
        events = chain([terms_event(terms)], merged)
        with writing(self.history) as out:
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
            written = read_document(path)
            if seal is not None and digest_of(written) != seal.facts:
                raise HistoryError("it was changed since the run", source=str(path), cure=ALONE)
            return msgspec.json.decode(written, type=RunFacts)
        except FileNotFoundError as error:
            if seal is None:
                return None
            raise HistoryError("it is missing", source=str(path), cure=ALONE) from error
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise HistoryError(f"cannot be read: {reason}", source=str(path), cure=ALONE) from error

    def config(self) -> RunConfig:
        """The configuration that the run was given."""
        from lockcheck.config import read_config

        return read_config(self.folder / CONFIG_FILE)

    def save_record(self, record: Record) -> None:
        self._write(RECORD_FILE, record)

    def save_verdict(self, summary: msgspec.Struct) -> None:
        self._write(VERDICT_FILE, summary)

    def save_page(self, page: str) -> None:
        with writing(self.report) as out:
            out.write(page.encode())

    def _write(self, name: str, value: object) -> None:
        with writing(self.folder / name) as out:
            out.write(_pretty(value))


def _last_ns(history: Path) -> int:
    last = 0
    for event in read_events(history, allow_torn_end=True):
        last = event.time
    return last


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


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
