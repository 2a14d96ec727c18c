"""`lockcheck sweep`: which lease suits a lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lockcheck.cli.gate import as_json as json_of
from lockcheck.cli.gate import print_error, printable, say
from lockcheck.cli.options import DURATIONS
from lockcheck.cli.run_options import RunCommand, config_from, is_set
from lockcheck.errors import ClusterError

if TYPE_CHECKING:
    from lockcheck.durations import Duration
    from lockcheck.matrix.folder import Folder, Plan
    from lockcheck.matrix.model import Cell, Result
    from lockcheck.sweep.surface import Surface

OF_A_CELL = ("nemesis", "ttl_ms", "seed", "keep")


class SweepCommand(RunCommand):
    def takes(self, field: str) -> bool:
        return field not in OF_A_CELL


@click.command("sweep", cls=SweepCommand)
@click.option("--ttl", type=DURATIONS, default="0.5s..8s", show_default=True, help="The leases.")
@click.option(
    "--pause",
    type=DURATIONS,
    default="0.1s..5s",
    show_default=True,
    help="How long a holder stands still, about to write.",
)
@click.option(
    "--steps", default="6x5", show_default=True, help="So many leases, and so many pauses."
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at once. [default: what this bears]")
@click.option("--fresh", is_flag=True, help="Begin anew, even if one was cut short.")
@click.option("--list", "only_list", is_flag=True, help="What would run, and for how long.")
@click.pass_context
def sweep_command(
    context: click.Context,
    /,
    *,
    ttl: Duration,
    pause: Duration,
    steps: str,
    seeds: int,
    jobs: int | None,
    fresh: bool,
    only_list: bool,
    **given: Any,
) -> int:
    """Find out which lease (TTL) suits a lock: how many runs break with which lease, if holders
    stand still for how long; and how long the lock is gone after a crash.

    \b
    lockcheck sweep --backend redis --think 50ms..300ms
    lockcheck sweep --backend redis --ttl 2s --pause 3s --seeds 20

    Each run is as long as its faults need, or as --time-limit says. A sweep that was cut short goes
    on where it ended. Ends with 0 once all have run, with 4 if some could not.
    """
    from lockcheck.cli.campaign.conduct import show_plan
    from lockcheck.matrix.running import usual_jobs
    from lockcheck.run.validation import check_settings
    from lockcheck.sweep.grid import grid_of, plan_of

    asked = config_from(context, given, None)
    check_settings(asked)
    grid = grid_of(ttl, pause, steps, asked.lock.promises.ttl_step_ms)
    plan = plan_of(grid, asked, seeds, fixed_time=is_set(context, "time_limit_ms"))
    at_once = jobs or usual_jobs()
    if only_list:
        show_plan(plan, at_once)
        return 0
    return _sweep(plan, at_once, asked.out, fresh=fresh)


def _sweep(plan: Plan, jobs: int, out: str, *, fresh: bool) -> int:
    from pathlib import Path

    from lockcheck.cli.campaign.conduct import announce, carry_out
    from lockcheck.matrix.folder import Folder, unfinished
    from lockcheck.signals import INTERRUPTED
    from lockcheck.sweep.surface import Surface

    place = Path(out)
    begun = None if fresh else unfinished(place, plan)
    folder = begun or Folder.begin(place, plan)
    announce(plan, folder, jobs, again=begun is not None)
    cut_short = carry_out(plan, folder, jobs, _show)
    outcomes = folder.outcomes()
    _conclude(Surface.of(outcomes), folder)
    if cut_short:
        print_error("cut short", "the same command goes on where it ended")
        return INTERRUPTED
    results = [result for outcome in outcomes for result in outcome.results]
    folder.finish(results)
    return ClusterError.exit_code if any(result.verdict is None for result in results) else 0


def _show(cell: Cell, result: Result, place: str, left: str) -> None:
    from lockcheck.checker.finding import Verdict
    from lockcheck.sweep.grid import pause_ms

    words, colour = {
        Verdict.VIOLATION: ("broke", "red"),
        Verdict.OK: ("held", "green"),
        Verdict.UNKNOWN: ("unknown", "yellow"),
        None: ("failed", "yellow"),
    }[result.verdict]
    if pause_ms(cell.config) is None and result.verdict:  # whether it breaks is not asked
        words, colour = "crashed", ""
    mark = click.style(f"{words:<8}", fg=colour or None)
    click.echo(f"{place:>9} {mark}{result.seconds:6.1f} s  {printable(result.trial)}  {left}")
    if why := result.problem or ("; ".join(result.doubts) if words == "unknown" else ""):
        say(f"{'':>18}{why}")


def _conclude(surface: Surface, folder: Folder) -> None:
    from lockcheck.sweep.page import page
    from lockcheck.sweep.table import table

    folder.write("sweep.html", page(surface, folder.plan()).encode())
    folder.write("sweep.json", json_of(surface.as_data()).encode() + b"\n")
    click.echo()
    for line in (*table(surface), "", surface.answer):
        say(line)
    say(f"page           {folder.path / 'sweep.html'}")
