"""The folder of a run: where each thing that it leaves is, and what of it can be read again."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from lockcheck.checker.finding import Judgement
from lockcheck.errors import ClusterError, UserError
from lockcheck.history import History, Terms, write_events
from lockcheck.history.event import terms_event
from lockcheck.history.files import merge_event_files
from lockcheck.results.facts import RunFacts
from lockcheck.results.summary import verdict_summary

HISTORY_FILE, VERDICT_FILE, REPORT_FILE = "history.jsonl", "verdict.json", "report.html"
CONFIG_FILE, FACTS_FILE = "config.json", "facts.json"


@dataclass(frozen=True, slots=True)
class Store:
    folder: Path

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
        """A new folder below `out`, and `out/latest` pointing to it."""
        run_id = f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        folder = out / run_id
        try:
            folder.mkdir(parents=True)
            _point_latest_to(folder)
        except OSError as error:
            raise UserError(
                f"{out} cannot hold results: {error.strerror}",
                cure="choose another folder with --out DIR",
            ) from error
        return Store(folder.resolve())

    def assemble_history(self, terms: Terms) -> History:
        """One history out of what the clients, the nemesis and the storage wrote."""
        nodes = self.folder / "nodes"
        parts = sorted([*nodes.glob("*/history.jsonl"), *nodes.glob("*.jsonl")])
        events = [terms_event(terms), *merge_event_files(parts)]
        write_events(self.history, events)
        return History.of(events, source=str(self.history))

    def save_facts(self, facts: RunFacts) -> None:
        self._write(FACTS_FILE, facts)

    def load_facts(self) -> RunFacts | None:
        try:
            return msgspec.json.decode((self.folder / FACTS_FILE).read_bytes(), type=RunFacts)
        except (OSError, msgspec.DecodeError):
            return None  # a bare history, or a run that was cut off: judged all the same

    def save_verdict(self, judgement: Judgement, problem: str = "") -> None:
        self._write(VERDICT_FILE, verdict_summary(judgement, problem))

    def _write(self, name: str, value: object) -> None:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2)
        (self.folder / name).write_bytes(text + b"\n")


def _point_latest_to(folder: Path) -> None:
    link = folder.parent / "latest"
    fresh = folder.parent / f".latest-{folder.name}"
    with suppress(OSError):  # a convenience; some file systems have no links
        fresh.symlink_to(folder.name)
        fresh.replace(link)


def out_of_space(error: OSError, folder: Path) -> ClusterError:
    """The one OSError that can strike at any write of a run, told as what it is."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ClusterError(
            f"no space is left for the run's files in {folder}",
            cure="make room, or choose another place with --out DIR",
        )
    return ClusterError(f"{error.filename or folder}: {os.strerror(error.errno or 0)}")
