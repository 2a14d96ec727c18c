"""What a run came to, as data that programs read back: `record.json` in its folder.

Its fields are in docs/verdicts.md. `schema` is raised when one goes or changes its meaning.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime
from pathlib import Path

import msgspec

from lockcheck.checker.doubt import DoubtCode
from lockcheck.checker.finding import Counts, Culprit, Judgement, Verdict
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.files import read_document
from lockcheck.runs.facts import RunFacts
from lockcheck.runs.store import RECORD_FILE

SCHEMA = 1


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How many findings there are of one kind."""

    code: str
    effect: Verdict  # on the verdict of the run: `ok` where a guard kept it from doing harm
    blame: Culprit
    number: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = SCHEMA
    run_id: str
    verdict: Verdict  # unknown, too, of a run that was not judged yet
    findings: tuple[Tally, ...] = ()
    doubts: dict[DoubtCode, int] = {}
    counts: Counts | None = None  # None: not judged yet
    config: RunConfig | None  # None: a history that lockcheck did not record
    versions: dict[str, str]  # of lockcheck, Python, the kernel, servers and their drivers
    started: datetime | None
    took_ms: float | None  # None: it was killed, or still runs
    exit_code: int | None  # of `lockcheck run`; None: it was killed, or still runs
    problem: str = ""  # why it did not come to its end

    @property
    def codes(self) -> dict[str, int]:
        """How many findings there are of each code."""
        found: Counter[str] = Counter()
        for tally in self.findings:
            found[tally.code] += tally.number
        return found


def record_of(facts: RunFacts, config: RunConfig | None, judgement: Judgement | None) -> Record:
    """Without a judgement: of a run that has just begun."""
    verdict = judgement.verdict if judgement else Verdict.UNKNOWN
    return Record(
        run_id=facts.run_id.encode("utf-8", "replace").decode(),  # a folder can have any name
        verdict=verdict,
        findings=_tallies(judgement) if judgement else (),
        doubts=Counter(doubt.code for doubt in judgement.doubts) if judgement else {},
        counts=judgement.counts if judgement else None,
        config=config,
        versions=dict(facts.versions),
        started=facts.started,
        took_ms=facts.took_ms,
        exit_code=facts.exit_code(verdict),
        problem=facts.problem,
    )


def _tallies(judgement: Judgement) -> tuple[Tally, ...]:
    found = Counter((f.code, f.effect, f.blame.who) for f in judgement.findings)
    return tuple(
        Tally(code=code, effect=effect, blame=blame, number=number)
        for (code, effect, blame), number in sorted(found.items())
    )


def read_record(folder: str | os.PathLike[str]) -> Record:
    """Of a run's folder, whether the run is complete, was killed or was judged again."""
    path = Path(folder) / RECORD_FILE
    try:
        return msgspec.json.decode(read_document(path), type=Record)
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", cure=f"lockcheck check {folder} writes it"
        ) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(
            f"{path} is no record of a run: {error}",
            cure=f"lockcheck check {folder} writes it anew",
        ) from error
