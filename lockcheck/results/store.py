"""The folder of a run: where each thing that it leaves is, and what of it can be read again."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from lockcheck.checker.finding import Finding, Judgement
from lockcheck.errors import ClusterError, UserError
from lockcheck.history import History, Terms, write_events
from lockcheck.history.event import NS_PER_MS, terms_event
from lockcheck.history.files import merge_event_files

HISTORY_FILE, VERDICT_FILE, REPORT_FILE = "history.jsonl", "verdict.json", "report.html"
CONFIG_FILE, FACTS_FILE = "config.json", "facts.json"


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a report says of a run beside its history; kept, so that it can be written again."""

    run_id: str
    started_at: str
    plan: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    rerun_command: str
    check_command: str
    problem: str = ""

    def applied_to(self, judgement: Judgement) -> Judgement:
        """A run that did not come to its end may have missed what would have come."""
        if not self.problem:
            return judgement
        return judgement.doubting(
            f"the run did not come to its end: {self.problem.splitlines()[0]}"
        )


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


class FindingSummary(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    effect: str
    key: str
    nodes: tuple[str, ...]
    at_ms: float
    length_ms: float
    blame: str
    by_ms: float
    fault: str | None
    note: str


class VerdictSummary(msgspec.Struct, frozen=True, kw_only=True):
    """verdict.json, and what `--json` prints."""

    verdict: str
    findings: tuple[FindingSummary, ...]
    doubts: tuple[str, ...]
    counts: object
    problem: str = ""


def verdict_summary(judgement: Judgement, problem: str = "") -> VerdictSummary:
    return VerdictSummary(
        verdict=judgement.verdict,
        findings=tuple(_summaries(judgement.findings)),
        doubts=judgement.doubts,
        counts=msgspec.to_builtins(judgement.counts),
        problem=problem,
    )


def _summaries(findings: Iterable[Finding]) -> Iterable[FindingSummary]:
    for finding in findings:
        blame = finding.blame
        yield FindingSummary(
            code=finding.code,
            effect=finding.effect,
            key=finding.key,
            nodes=tuple(hold.node for hold in finding.holds),
            at_ms=round(finding.time_ns / NS_PER_MS, 3),
            length_ms=round(finding.length_ns / NS_PER_MS, 3),
            blame=blame.who,
            by_ms=round(blame.by_ns / NS_PER_MS, 3),
            fault=f"{blame.fault.name} of {blame.fault.node}" if blame.fault else None,
            note=finding.note,
        )


def now_in_words() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
