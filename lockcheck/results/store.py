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

from lockcheck.checker.finding import Definition, Finding, Judgement
from lockcheck.errors import ClusterError, UserError
from lockcheck.history import History, Hold, Operation, Terms, write_events
from lockcheck.history.event import NS_PER_MS, terms_event
from lockcheck.history.files import merge_event_files

HISTORY_FILE, VERDICT_FILE, REPORT_FILE = "history.jsonl", "verdict.json", "report.html"
MOST_EVIDENCE = 50  # holds and operations of one finding; the history has them all
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


class HoldSummary(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    process: int | str
    key: str
    start_ms: float
    end_ms: float
    token: int | None


class OperationSummary(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    process: int | str
    f: str
    key: str
    start_ms: float
    end_ms: float | None  # None: nobody knows when, or whether, it took effect
    outcome: str


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
    steps: tuple[str, ...]
    otherwise: str
    holds: tuple[HoldSummary, ...]
    operations: tuple[OperationSummary, ...]  # the first of them, where they are many


class DefinitionSummary(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    model: str
    engine: str
    linearizable: str
    overlaps: int | None
    sentence: str


class VerdictSummary(msgspec.Struct, frozen=True, kw_only=True):
    """verdict.json, and what `--json` prints."""

    verdict: str
    findings: tuple[FindingSummary, ...]
    doubts: tuple[str, ...]
    counts: object
    definitions: tuple[DefinitionSummary, ...]
    problem: str = ""
    cut: str = ""  # why there is more to find than is told


def verdict_summary(judgement: Judgement, problem: str = "") -> VerdictSummary:
    return VerdictSummary(
        verdict=judgement.verdict,
        findings=tuple(_summaries(judgement.findings)),
        doubts=_writable(judgement.doubts),
        counts=msgspec.to_builtins(judgement.counts),
        definitions=tuple(map(_definition, judgement.definitions)),
        problem=problem,
        cut=judgement.cut,
    )


def _summaries(findings: Iterable[Finding]) -> Iterable[FindingSummary]:
    for finding in findings:
        blame = finding.blame
        yield FindingSummary(
            code=finding.code,
            effect=finding.effect,
            key=_text(finding.key),
            nodes=_writable(_nodes(finding)),
            at_ms=_ms(finding.time_ns),
            length_ms=_ms(finding.length_ns),
            blame=blame.who,
            by_ms=_ms(blame.by_ns),
            fault=_text(f"{blame.fault.name} of {blame.fault.node}") if blame.fault else None,
            note=_text(finding.note),
            steps=_writable(finding.steps),
            otherwise=_text(finding.otherwise),
            holds=tuple(map(_hold, finding.holds[:MOST_EVIDENCE])),
            operations=tuple(map(_operation, finding.operations[:MOST_EVIDENCE])),
        )


def _nodes(finding: Finding) -> tuple[str, ...]:
    """The holders, in the order of their holds; of what is about no hold, who is in evidence."""
    holders = tuple(hold.node for hold in finding.holds)
    return holders or tuple(dict.fromkeys(o.node for o in finding.operations))[:MOST_EVIDENCE]


def _hold(hold: Hold) -> HoldSummary:
    return HoldSummary(
        node=_text(hold.node),
        process=_process(hold),
        key=_text(hold.key),
        start_ms=_ms(hold.start_ns),
        end_ms=_ms(hold.end_ns),
        token=hold.token,
    )


def _operation(operation: Operation) -> OperationSummary:
    end_ns, answer = operation.end_ns, operation.answer
    return OperationSummary(
        node=_text(operation.node),
        process=_process(operation),
        f=_text(operation.f),
        key=_text(operation.key),
        start_ms=_ms(operation.start_ns),
        end_ms=None if end_ns is None else _ms(end_ns),
        outcome="none" if answer is None else answer.type.value,
    )


def _definition(definition: Definition) -> DefinitionSummary:
    return DefinitionSummary(
        key=_text(definition.key),
        model=_text(definition.model),
        engine=_text(definition.engine),
        linearizable=definition.linearizable.value,
        overlaps=definition.overlaps,
        sentence=_text(definition.sentence),
    )


def _process(of: Hold | Operation) -> int | str:
    return of.process if isinstance(of.process, int) else _text(of.process)


def _text(text: str) -> str:
    """Half a character can hide in what somebody else's file said; JSON cannot hold it."""
    return text.encode("utf-8", "replace").decode()


def _writable(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_text, texts))


def _ms(ns: int) -> float:
    return round(ns / NS_PER_MS, 3)


def now_in_words() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
