"""What `lockcheck matrix` and `lockcheck merge` do: plan, and carry out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lockcheck.cli.campaign.reporting import conclude
from lockcheck.cli.gate import print_error, printable, say
from lockcheck.cli.options import read_toml
from lockcheck.cli.run_options import config_from
from lockcheck.errors import UserError
from lockcheck.matrix.baseline import read_baseline
from lockcheck.matrix.choosing import chosen
from lockcheck.matrix.concluding import concluded, exit_code_of, last_of
from lockcheck.matrix.folder import Folder, Plan, unfinished
from lockcheck.matrix.judging import deviations, standing_of, standing_of_cell
from lockcheck.matrix.model import Cell, Result, Standing, Trial
from lockcheck.matrix.own import SOURCE, own_table
from lockcheck.matrix.planning import Asked, asked_by
from lockcheck.matrix.running import Runner, usual_jobs
from lockcheck.matrix.thresholds import parse
from lockcheck.signals import INTERRUPTED
from lockcheck.trust import refuse_foreign_place
from lockcheck.words import amount

if TYPE_CHECKING:
    from lockcheck.config import RunConfig

COLOURS = {
    Standing.VIOLATION: "red",
    Standing.MISSED: "red",
    Standing.AS_EXPECTED: "green",
}
Show = Callable[[Cell, Result, str, str], None]  # its place among all, and how long they take
STARTING_MS = 4_000  # what a trial takes beside its time limit, about
_SHARD = re.compile(r"([1-9]\d*)/([1-9]\d*)")


@dataclass(frozen=True, slots=True)
class Choice:
    """The options of the command."""

    file: Path
    own: bool
    backends: tuple[str, ...]
    words: str
    seeds: int | None
    runtime: str | None
    jobs: int | None
    shard: str | None
    last_failed: bool
    fresh: bool
    only_list: bool
    unknown: str
    against: Path | None
    baseline: Path | None
    out: Path
    report_dir: Path | None


def conduct(context: click.Context, choice: Choice) -> int:
    plan = _plan(context, choice)
    jobs = choice.jobs or usual_jobs()
    if choice.only_list:
        show_plan(plan, jobs)
        return 0
    if choice.baseline:
        read_baseline(choice.baseline)  # as of the thresholds: what is wrong shows at once
    if choice.report_dir:
        refuse_foreign_place(choice.report_dir / "index.html")
    earlier = Folder.at(choice.against) if choice.against else last_of(choice.out, plan)
    begun = None if choice.fresh else unfinished(choice.out, plan)
    folder = begun or Folder.begin(choice.out, plan)
    plan = folder.plan()
    announce(plan, folder, jobs, again=begun is not None)
    cut_short = carry_out(plan, folder, jobs, _show)
    campaign = concluded(plan, [folder], earlier, choice.baseline)
    conclude(campaign, folder, choice.report_dir)
    if cut_short:
        print_error("cut short", "the same command goes on where it ended")
        return INTERRUPTED
    folder.finish(campaign.results)
    return exit_code_of(campaign, fail_unknown=choice.unknown == "fail")


def announce(plan: Plan, folder: Folder, jobs: int, *, again: bool) -> None:
    trials = plan.trials
    left = [trial for trial in trials if folder.result(trial) is None]
    runs, cells = amount(len(trials), "run"), amount(len(plan.cells), "cell")
    print_error(f"{runs} of {cells}, {jobs} at once, {_about(_time_ms(left), jobs)}: {folder.path}")
    if again:
        done = len(trials) - len(left)
        print_error(f"it goes on where it was cut short: {done:,} are done (--fresh begins anew)")
    for line in plan.left_out:
        print_error(f"left out: {line}")


def merged(paths: Sequence[Path], out: Path) -> int:
    """The shards' own folders stay as they are."""
    shards = [Folder.at(path) for path in paths]
    plans = [shard.plan() for shard in shards]
    if len({plan.digest for plan in plans}) > 1:
        raise UserError(
            "these are shards of different campaigns", cure="name those of one, with --shard each"
        )
    whole = Folder.begin(out, msgspec.structs.replace(plans[0], shard=""))
    plan = whole.plan()
    missing = 0
    for trial in plan.trials:
        known = next((each for each in shards if each.result(trial) is not None), None)
        if known is None:
            missing += 1
        else:
            shutil.copytree(known.of_trial(trial), whole.of_trial(trial), symlinks=True)
    campaign = concluded(plan, [whole], None, None)
    conclude(campaign, whole, None)
    if missing:
        print_error(f"{amount(missing, 'run')} of {len(plan.trials):,} are in none of them")
    whole.finish(campaign.results)
    return exit_code_of(campaign, fail_unknown=False)


# --- what is to run ------------------------------------------------------------------------------


def _plan(context: click.Context, choice: Choice) -> Plan:
    source, table = _table(choice)
    if choice.runtime:
        table = table | {"run": table.get("run", {}) | {"runtime": choice.runtime}}
    asked = asked_in(context, source, table, own=choice.own)
    for text in asked.thresholds:
        parse(text)  # what is wrong with it shows before hours of runs
    cells = chosen(asked.cells, choice.words)
    if choice.seeds:
        of_all = tuple(range(1, choice.seeds + 1))
        cells = tuple(msgspec.structs.replace(cell, seeds=of_all) for cell in cells)
    plan = Plan(
        source=source,
        cells=cells,
        thresholds=asked.thresholds,
        left_out=asked.left_out,
        shard=_shard(choice.shard),
    )
    if not choice.last_failed:
        return plan
    return msgspec.structs.replace(plan, cells=_failed_last(cells, choice.out, plan))


def _table(choice: Choice) -> tuple[str, dict[str, Any]]:
    if choice.own:
        return SOURCE, own_table(choice.backends)
    if choice.backends:
        raise UserError("--backend goes with --own", cure="-k chooses among the cells of a FILE")
    try:
        table = read_toml(choice.file)
    except FileNotFoundError as error:
        raise UserError(
            f"there is no {choice.file}", cure="see lockcheck matrix --help for how one looks"
        ) from error
    if not isinstance(table.get("matrix"), dict):
        raise UserError(
            f"{choice.file} has no [matrix]", cure='[[matrix.row]], with backend = "redis" below it'
        )
    return str(choice.file), table["matrix"]


def asked_in(context: click.Context, source: str, table: dict[str, Any], *, own: bool) -> Asked:
    from lockcheck.cli.commands import run_command
    from lockcheck.compose.choose import choose_runtime
    from lockcheck.config import option_of, settings
    from lockcheck.run.resolve import planned

    def configured(words: Sequence[str]) -> RunConfig:
        try:
            with run_command.make_context("run", list(words), parent=context.find_root()) as of_run:
                return config_from(of_run, of_run.params, None)
        except click.UsageError as error:
            raise UserError(error.format_message(), cure="see lockcheck run --help") from error

    def possible(config: RunConfig) -> None:
        """Of our own locks, those whose servers can be had here."""
        plan = planned(config)
        if own:
            choose_runtime("docker" if config.image else config.runtime, plan.kinds)

    known = [option_of(name).removeprefix("--") for name in settings()]
    return asked_by(source, table, known, configured, possible, demanding=own)


def _failed_last(cells: Sequence[Cell], out: Path, plan: Plan) -> tuple[Cell, ...]:
    last = last_of(out, plan)
    if last is None:
        raise UserError(
            f"{out} has no campaign of {plan.source} that has ended", cure="run all of it first"
        )
    failed = {
        outcome.cell.id
        for outcome in last.outcomes()
        if standing_of_cell(outcome) is not Standing.AS_EXPECTED
    }
    again = tuple(cell for cell in cells if cell.id in failed)
    if not again:
        raise UserError(f"all of these were as expected in {last.path}", cure="run all of it")
    return again


def _shard(text: str | None) -> str:
    if text is None:
        return ""
    matched = _SHARD.fullmatch(text)
    if matched is None or int(matched[1]) > int(matched[2]):
        raise UserError(f"--shard {text} is none", cure="as in --shard 2/4: the second of four")
    return text


def show_plan(plan: Plan, jobs: int) -> None:
    for cell in plan.cells:
        seeds = amount(len(cell.seeds), "run")
        say(f"{cell.id:<60} {cell.expectation.words:<24} {seeds}")
    for line in plan.left_out:
        say(f"left out: {line}")
    trials = plan.trials
    click.echo(f"{amount(len(trials), 'run')}, {_about(_time_ms(trials), jobs)}")


def _time_ms(trials: Iterable[Trial]) -> int:
    return sum(trial.config.time_limit_ms + STARTING_MS for trial in trials)


def _about(ms: float, jobs: int) -> str:
    """Runs that break end sooner."""
    seconds = ms / jobs / 1000
    minutes, hours = round(seconds / 60), seconds / 3600
    if hours > 1.5:
        return f"{hours:.1f} hours at most"
    return f"{minutes} min at most" if minutes > 1 else f"{seconds:.0f} s at most"


# --- carrying it out -----------------------------------------------------------------------------


def carry_out(plan: Plan, folder: Folder, jobs: int, show: Show) -> bool:
    """Whether it was cut short."""
    cells, trials = {cell.id: cell for cell in plan.cells}, plan.trials
    new = [trial for trial in trials if folder.result(trial) is None]
    planned = {trial.id: _time_ms([trial]) for trial in new}
    left_ms, done = sum(planned.values()), len(trials) - len(new)
    try:
        with closing(Runner(folder, jobs).results(new)) as results:
            for result in results:
                left_ms, done = left_ms - planned[result.trial], done + 1
                left = f"({_about(left_ms, jobs)})" if left_ms else ""
                show(cells[result.cell], result, f"{done}/{len(trials)}", left)
    except KeyboardInterrupt:
        return True
    return False


def _show(cell: Cell, result: Result, place: str, left: str) -> None:
    standing = standing_of(cell, result)
    mark = click.style(f"{standing.value:<12}", fg=COLOURS.get(standing, "yellow"))
    click.echo(f"{place:>9} {mark}{result.seconds:6.1f} s  {printable(result.trial)}  {left}")
    if standing is not Standing.AS_EXPECTED:
        why = "; ".join(deviations(cell, result))
        say(f"{'':>22}{result.problem or why or result.headline}")
