"""What has to happen at least once in a campaign: where it never did, the campaign is blind to
what would follow, however green it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lockcheck.backends import BACKENDS
from lockcheck.backends.base import Promises
from lockcheck.checker.doubt import DoubtCode
from lockcheck.checker.finding import Culprit, Verdict
from lockcheck.config import RunConfig
from lockcheck.history import Effect
from lockcheck.matrix.fingerprints import steps_asked
from lockcheck.matrix.model import Cell, CellOutcome, Result
from lockcheck.nemesis import Step
from lockcheck.storage.base import Guard
from lockcheck.words import amount, listed, plain

KEEPS_FROM_RENEWING = (Effect.STOPS, Effect.CUTS)
WANTS_MORE = ("", ">=", ">", "==")  # comparisons with which a violation has to come


@dataclass(frozen=True, slots=True)
class _Run:
    """One that was carried out."""

    cell: Cell
    steps: tuple[Step, ...]
    result: Result

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.kind.name for step in self.steps))

    @property
    def outlasting(self) -> list[Step]:
        """The faults that keep a client from renewing its lease until that has run out."""
        config = self.cell.config
        lease_ms = config.ttl_ms * promises_of(config).lapses_after
        return [
            step
            for step in self.steps
            if step.aim.at_clients
            and step.kind.effect in KEEPS_FROM_RENEWING
            and (step.for_ms is None or step.for_ms > lease_ms)
        ]

    @property
    def at_holders(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.aim.at_holders)

    def took(self, kind: str) -> bool:
        return self.result.faults.get(kind, 0) > 0


Runs = Sequence[_Run]


def promises_of(config: RunConfig) -> Promises:
    """Without a look at the client of a user's own lock."""
    if not config.client:
        return BACKENDS[config.backend].promises
    from lockcheck.backends.program.words import promises_of as promised_in

    return promised_in(config.promises)


def blind_spots(outcomes: Iterable[CellOutcome]) -> tuple[str, ...]:
    """A sentence for each thing that never happened, although runs were made for it."""
    runs = [
        _Run(outcome.cell, steps_asked(outcome.cell), result)
        for outcome in outcomes
        for result in outcome.results
        if result.verdict is not None
    ]
    return tuple(sentence for rule in RULES for sentence in rule(runs))


# --- the rules -----------------------------------------------------------------------------------


def _a_lease_ran_out(runs: Runs) -> Iterator[str]:
    able = [run for run in runs if _has_a_lease(run.cell.config) and run.outlasting]
    if able and not any(map(_ran_out, able)):
        yield (f"no lease was seen to run out, in {_under(able)}: what happens then is not tested")


def _has_a_lease(config: RunConfig) -> bool:
    promises = promises_of(config)
    return promises.excludes and not promises.session


def _ran_out(run: _Run) -> bool:
    """Its holder was late, or another client was granted the lock that a struck one held."""
    late = any(found.blame == Culprit.HOLDER for found in run.result.found)
    return late or _refused(run) or bool(run.result.freed_ms)


def _a_late_write_was_refused(runs: Runs) -> Iterator[str]:
    able = [run for run in runs if run.cell.config.guard != Guard.NONE and run.outlasting]
    if able and not any(map(_refused, able)):
        yield (
            f"no late write was ever refused, in {_under(able, 'behind a guard ')}: the guard may "
            "not be tested at all"
        )


def _refused(run: _Run) -> bool:
    return run.result.counts.get("stale_writes_refused", 0) > 0


def _under(runs: Runs, how: str = "") -> str:
    """As in "12 runs behind a guard under pause and partition"."""
    kinds = dict.fromkeys(step.kind.name for run in runs for step in run.outlasting)
    return f"{amount(len(runs), 'run')} {how}under {listed(kinds)}"


def _each_fault_took(runs: Runs) -> Iterator[str]:
    for kind, asking in _by_kind(runs):
        if not any(run.took(kind) for run in asking):
            yield (
                f"{kind} was never seen to take, in {amount(len(asking), 'run')} that asked for "
                "it: it tested nothing"
            )


def _each_fault_was_felt(runs: Runs) -> Iterator[str]:
    for kind, asking in _by_kind(runs):
        struck = [run for run in asking if run.took(kind)]
        if struck and all(kind in run.result.unfelt for run in struck):
            yield (
                f"no client ever felt {kind}, in {amount(len(struck), 'run')} in which it took: "
                "it came at the wrong time, or at the wrong place"
            )


def _by_kind(runs: Runs) -> Iterator[tuple[str, Runs]]:
    for kind in dict.fromkeys(kind for run in runs for kind in run.kinds):
        yield kind, [run for run in runs if kind in run.kinds]


def _each_aim_struck_a_holder(runs: Runs) -> Iterator[str]:
    """Where a run aims several faults at holders, its doubt does not say which of them missed."""
    aimed: defaultdict[tuple[str, ...], list[_Run]] = defaultdict(list)
    for run in runs:
        aims = tuple(dict.fromkeys(f"{step.kind.name}:{step.aim.name}" for step in run.at_holders))
        took = all(run.took(step.kind.name) for step in run.at_holders)
        if aims and took and run.cell.config.clients > 1:
            aimed[aims].append(run)
    for aims, struck in aimed.items():
        if all(DoubtCode.NO_HOLDER_STRUCK in run.result.doubt_codes for run in struck):
            which = aims[0] if len(aims) == 1 else f"one of {listed(aims)}"
            yield (
                f"{which} never struck a holder, in {amount(len(struck), 'run')} in which it took: "
                "no lock was in danger"
            )


def _each_lock_changed_hands(runs: Runs) -> Iterator[str]:
    backends = dict.fromkeys(run.cell.config.backend for run in runs)
    for backend in backends:
        able = [r for r in runs if r.cell.config.backend == backend and r.cell.config.clients > 1]
        if able and all(run.result.counts.get("holders", 0) < 2 for run in able):
            yield (
                f"the lock of {plain(backend)} never changed hands, in "
                f"{amount(len(able), 'run')}: nothing is known of how it excludes"
            )


def _an_expected_violation_came(runs: Runs) -> Iterator[str]:
    able = [run for run in runs if _expects_a_violation(run.cell)]
    if able and all(run.result.verdict is not Verdict.VIOLATION for run in able):
        yield (
            f"no expected violation came, in {amount(len(able), 'run')} that expect one: the "
            "tester may be blind"
        )


def _expects_a_violation(cell: Cell) -> bool:
    expected = cell.expectation
    return (
        expected.verdict == Verdict.VIOLATION
        and expected.compare in WANTS_MORE
        and expected.share > 0
    )


RULES: tuple[Callable[[Runs], Iterator[str]], ...] = (
    _a_lease_ran_out,
    _a_late_write_was_refused,
    _each_fault_took,
    _each_fault_was_felt,
    _each_aim_struck_a_holder,
    _each_lock_changed_hands,
    _an_expected_violation_came,
)
