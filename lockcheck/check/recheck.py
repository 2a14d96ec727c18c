"""Judges a stored history again: without a cluster or Docker, from the file alone."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from lockcheck.check.loading import Loaded, loaded
from lockcheck.check.minimizing import Minimize, smallest_of, why_none
from lockcheck.checker import Patience, judge, judge_scan
from lockcheck.checker.finding import Judgement
from lockcheck.checker.logs.guess import models_of
from lockcheck.checker.modelling import SEMAPHORES, misfit
from lockcheck.durations import duration_words
from lockcheck.errors import UserError
from lockcheck.formats import ReadOptions
from lockcheck.formats.opening import STANDARD_INPUT, name_of
from lockcheck.history import F, History
from lockcheck.history.scan import Scan
from lockcheck.history.table import OP_OF
from lockcheck.results.publish import publish, write_page
from lockcheck.results.story.narrative import Narrative
from lockcheck.runs.facts import RunFacts
from lockcheck.runs.store import HISTORY_FILE, Store

NOT_WHOLE = "Its history was missing; this is what the clients' own files still contained."


@dataclass(frozen=True, slots=True)
class Checked:
    narrative: Narrative
    report: Path | None
    facts: RunFacts
    unwritten: str  # why the run's folder could not be updated; empty if it was
    notes: tuple[str, ...]  # what the reader ignored, and why
    sealed: bool  # its seal proves that it is unchanged since the run

    @property
    def judgement(self) -> Judgement:
        return self.narrative.judgement

    @property
    def exit_code(self) -> int:
        return self.judgement.verdict.exit_code


def recheck(
    given: str,
    report: Path | None,
    *,
    asked: ReadOptions,
    patience: Patience,
    out: Path,
    on_bytes: Callable[[int], object] | None = None,
    minimize: Minimize | None = None,
) -> Checked:
    """Judges a history. For a run, rewrites its verdict and report; a mere file is only read."""
    store = run_folder(given, out)
    source = str(store.history) if store else given
    _refuse_senseless(asked, report, source)
    to = minimize.path_beside(source, report) if minimize else None
    with loaded(source, asked, on_bytes) as found:
        if asked.model:
            _refuse_misfit(found.history)
        judgement = judged(_with_reentrant_model(found.history), patience)
        facts = (store.load_facts(found.seal) if store else None) or _facts_of_a_stranger(
            given, found
        )
        if options := [*_as_options(asked)]:
            again = f"{facts.check_command} {shlex.join(options)}"
            facts = msgspec.structs.replace(facts, check_command=again)
        page = store is not None or report is not None
        smallest = smallest_of(judgement, minimize, to, unasked=page)
        narrative = Narrative(facts.applied_to(judgement), smallest)
        unwritten = _published(store, narrative, facts) if store else ""
        if report is not None:
            write_page(report, narrative, facts)
    written = store.report if store and not unwritten else None
    notes = (*found.notes, *_notes(narrative.history))
    if minimize and smallest is None:
        notes = (*notes, why_none(judgement))
    sealed = found.seal is not None
    return Checked(narrative, report or written, facts, unwritten, notes, sealed)


def _refuse_senseless(asked: ReadOptions, report: Path | None, source: str) -> None:
    if asked.model in SEMAPHORES and asked.permits is None:
        raise UserError(
            f"--model {asked.model} needs --permits N", cure="give the number of permits"
        )
    if asked.permits is not None and asked.model not in ("", *SEMAPHORES):
        raise UserError(
            f"the model {asked.model} has no permits", cure="use --permits with --model semaphore"
        )
    there = report is not None and report.exists() and Path(source).exists()
    if report is not None and there and report.samefile(source):
        raise UserError("--report names the history file itself", cure="choose another --report")


def _with_reentrant_model(history: History | Scan) -> History | Scan:
    """Adds a reentrant model that the operations suggest: it decides what its holds are."""
    terms = history.terms
    models = [] if terms.backend or terms.model else models_of(history.table)
    reentrant = next((name for name in models if name.startswith("reentrant")), "")
    if not reentrant:
        return history
    terms = msgspec.structs.replace(terms, model=reentrant)
    if isinstance(history, Scan):
        return replace(history, terms=terms)
    return History.of(history.events, terms=terms)


def _refuse_misfit(history: History | Scan) -> None:
    """Refuses a model that does not know the operations: finding nothing would look like ok."""
    wrong = misfit(history.table, history.terms)
    if wrong:
        raise UserError(wrong, cure="choose another --model, or omit it: it is detected")


def _notes(history: History) -> Iterator[str]:
    unknown = Counter(o.f for o in history.operations if o.f not in OP_OF and o.f != F.LOOK)
    if unknown:
        names = ", ".join(sorted(unknown))
        yield f"{unknown.total():,} operations are unknown to every check: {names}"


def judged(history: History | Scan, patience: Patience) -> Judgement:
    if isinstance(history, Scan):
        return judge_scan(history, patience)
    return judge(history, patience)


def _published(store: Store, narrative: Narrative, facts: RunFacts) -> str:
    try:
        publish(store, narrative, facts)
    except (OSError, UserError) as error:  # another user's run: it is judged all the same
        return str(error)
    return ""


def run_folder(given: str, out: Path) -> Store | None:
    """The run's store, of a folder or of a name below `out`; None if it is a file or a pipe."""
    path = Path(given)
    if given == STANDARD_INPUT or (path.exists() and not path.is_dir()):
        return None
    for folder in (path, out / given):
        if folder.is_dir():
            store = Store.at(folder)
            if store.is_unassembled:
                _assemble(store)
            if not store.history.is_file():
                raise UserError(
                    f"{folder} holds no {HISTORY_FILE}",
                    cure="name the folder of a run, or a history file",
                )
            return store
    raise UserError(
        f"{given} is neither a run nor a history file",
        cure="name a run's folder, `latest`, a history file, or - for standard input",
    )


def _assemble(store: Store) -> None:
    facts = store.load_facts(None)
    if facts is None:
        raise UserError(f"{store.folder} holds a run that never started", cure="run it again")
    try:
        terms = store.terms()
        facts = msgspec.structs.replace(facts, problem=facts.problem or NOT_WHOLE)
        store.assemble_history(terms, facts, store.complete_until_ns(terms.clients))
    except OSError as error:
        raise UserError(f"{store.folder} cannot be written: {error.strerror}") from error


def _facts_of_a_stranger(given: str, found: Loaded) -> RunFacts:
    return RunFacts(
        run_id=Path(given).name if given != STANDARD_INPUT else name_of(given),
        started_at="",
        plan=(("history", name_of(given)), ("format", found.format)),
        versions=(),
        rerun_command="",
        check_command=shlex.join(["lockcheck", "check", _in_full(given)]),
    )


def _as_options(asked: ReadOptions) -> Iterator[str]:
    """As `lockcheck check` takes them."""
    yield from ("--format", asked.format) if asked.format else ()
    yield from ("--model", asked.model) if asked.model else ()
    yield from ("--permits", str(asked.permits)) if asked.permits is not None else ()
    yield from ("--ttl", duration_words(asked.ttl_ms)) if asked.ttl_ms is not None else ()
    yield from () if asked.tells_release else ("--unsaid-releases",)
    errors = {"": asked.clock_error_ms, **asked.clock_errors_ms}
    for host, error_ms in errors.items():
        if error_ms is not None:
            yield from ("--clock-error", f"{host}={error_ms:g}ms" if host else f"{error_ms:g}ms")


def _in_full(given: str) -> str:
    """So that the command works in any folder."""
    return given if given == STANDARD_INPUT else str(Path(given).absolute())
