"""`lockcheck battery`: a lock under ten conditions, one table."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import click

from lockcheck.cli.gate import as_json as json_of
from lockcheck.cli.gate import print_error, printable, say
from lockcheck.cli.options import LateChoice
from lockcheck.cli.run_options import RunCommand, config_from
from lockcheck.words import amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lockcheck.run.notes import Note
    from lockcheck.runs.record import Record
    from lockcheck.yours.battery import Trial

OF_A_CONDITION = ("nemesis", "time_limit_ms", "think_ms", "stop_on_violation", "keep")
COLOURS = {"ok": "green", "violation": "red"}
BLAMED = {
    "service": "the lock",
    "holder": "its holder",
    "client": "its client",
    "machine": "this machine",
    "storage": "the storage",
    "clocks": "clocks",
    "unknown": "not known",
}


class BatteryCommand(RunCommand):
    def takes(self, field: str) -> bool:
        return field not in OF_A_CONDITION


@click.command("battery", cls=BatteryCommand)
@click.argument("names", nargs=-1, type=LateChoice("condition"), metavar="[CONDITION]...")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@click.pass_context
def battery_command(
    context: click.Context, /, names: tuple[str, ...], as_json: bool, **given: object
) -> int:
    """Run a lock under ten conditions, or under those named, and print what becomes of it in which.

    \b
    lockcheck battery --client ./mylock
    lockcheck battery --backend redis-fenced --guard fence

    Without a fault: crowd, long-work. Of its holder: pause, late-release, cut-off, lossy,
    dead-holder. Of a server: restart, lone-server, clock. It takes some three minutes with a lease
    of a second. Ends with 1 if there is a violation, with 3 if one is unknown and the rest are ok.
    """
    from lockcheck.signals import INTERRUPTED
    from lockcheck.yours.battery import CONDITIONS, trials, tried

    todo, done = trials(config_from(context, given, None), names or CONDITIONS), []
    seconds = sum(trial.config.time_limit_ms for trial in todo if not trial.refused) / 1000
    print_error(f"{len(todo)} conditions, {seconds:.0f} s and what the clusters need to start")
    with closing(_Progress()) as progress:
        for trial in tried(todo, progress.show):
            done.append(trial)
            if not as_json:
                click.echo(_row(trial))
    interrupted = any(trial.outcome and trial.outcome.interrupted for trial in done)
    if as_json:
        click.echo(json_of([_as_data(trial) for trial in done]))
    else:
        _print_what_it_comes_to(done)
    return INTERRUPTED if interrupted else _exit_code(done)


class _Progress:
    """The live line of each run, and what is prepared for it."""

    def __init__(self) -> None:
        from lockcheck.cli.progress import Terminal

        self._terminal = Terminal()
        self.close = self._terminal.close

    def show(self, step: Note) -> None:
        from lockcheck.run.notes import Judged, LiveState, Preparing

        if isinstance(step, LiveState | Preparing | Judged):
            self._terminal.show(step)


def _row(trial: Trial) -> str:
    mark, condition = trial.mark, trial.condition
    styled = click.style(f"{mark:<10}", fg=COLOURS.get(mark, "yellow"))
    return f"{styled}{condition.name:<13} {printable(condition.meaning):<48} {_found(trial)}"


def _found(trial: Trial) -> str:
    """What was found, whom it is blamed on; or why nothing can be concluded."""
    if trial.outcome is None:
        return printable(trial.refused)
    if trial.outcome.error:
        return printable(trial.outcome.error.message)
    if trial.mark == "unknown":
        return printable(", ".join(trial.outcome.record.doubts))
    return printable("; ".join(_numbers(trial, trial.outcome.record)))


def _numbers(trial: Trial, record: Record) -> Iterator[str]:
    if tallies := trial.tallies():
        found: Counter[str] = Counter()
        for tally in tallies:
            found[tally.code] += tally.number
        yield ", ".join(f"{code} ({number})" for code, number in found.most_common())
        yield f"to blame: {', '.join(BLAMED[culprit] for culprit in trial.culprits())}"
    if record.counts and (refused := record.counts.stale_writes_refused):
        yield f"the storage refused {amount(refused, 'late write')}"
    if record.counts and not tallies:
        yield amount(record.counts.acquisitions, "acquisition")


def _print_what_it_comes_to(done: Sequence[Trial]) -> None:
    click.echo()
    for line in _summary(done):
        say(line)
    for trial in done:
        if trial.outcome and trial.mark != "ok":
            headline = trial.outcome.narrative.headline
            click.echo()
            click.secho(f"{trial.condition.name}: {printable(headline)}", bold=True)
            say(f"    {trial.outcome.store.report}")


def _summary(done: Sequence[Trial]) -> Iterator[str]:
    marks = [trial.mark for trial in done if trial.outcome]
    yield ", ".join(f"{marks.count(mark)} {mark}" for mark in dict.fromkeys(sorted(marks)))
    culprits = {culprit for trial in done for culprit in trial.culprits()}
    if culprits == {"holder"}:
        yield (
            "No lock can help a holder that works on after its lease: a storage that checks a "
            "token can (--guard fence, if the lock promises a token)."
        )


def _as_data(trial: Trial) -> dict[str, object]:
    ran = trial.outcome
    return {
        "condition": trial.condition.name,
        "nemesis": trial.condition.nemesis,
        "verdict": trial.mark,
        "counts": ran.record.counts if ran else None,
        "findings": trial.tallies(),
        "problem": trial.refused or (ran.record.problem if ran else ""),
        "report": str(ran.store.report) if ran else "",
        "rerun": trial.config.command(),
    }


def _exit_code(done: Sequence[Trial]) -> int:
    """Of what could not be run at all, the first; else of the worst verdict."""
    from lockcheck.checker.finding import Verdict

    ran = [trial.outcome for trial in done if trial.outcome]
    if failed := [outcome.exit_code for outcome in ran if outcome.error]:
        return failed[0]
    return Verdict.merge(outcome.judgement.verdict for outcome in ran).exit_code
