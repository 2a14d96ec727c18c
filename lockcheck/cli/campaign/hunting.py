"""`lockcheck hunt` looks for a violation by runs that are drawn; `shrink` makes a run smaller that
broke."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockcheck.cli.gate import printable, say
from lockcheck.cli.options import DURATION
from lockcheck.cli.run_options import RunCommand, config_from, is_set, out_of_runs
from lockcheck.errors import UserError

if TYPE_CHECKING:
    from lockcheck.config import RunConfig
    from lockcheck.hunting.attempts import Attempts, Wanted
    from lockcheck.matrix.model import Result

DRAWN = ("clients", "ttl_ms", "think_ms", "nemesis")
NOT_OF_A_HUNT = ("keep",)
MOST_ERRORS = 5  # in a row
COLOURS = {"ok": "green", "violation": "red"}
_TRIES = re.compile(r"([1-9]\d?)/([1-9]\d?)")
NOTHING, BROKE, NOT_AGAIN, FAILED = 0, 1, 3, 4


@click.command("shrink")
@click.argument("run")
@click.option(
    "--tries",
    default="2/3",
    show_default=True,
    metavar="K/N",
    help="A run counts as broken if it breaks in K of N tries.",
)
def shrink_command(run: str, tries: str) -> int:
    """Find the smallest run that breaks as RUN did: the shortest, with the fewest faults, locks
    and clients. Each attempt is a real run.

    RUN is a run's folder, its name, or `latest`. Ctrl-C ends the search and keeps the smallest so
    far. Exit codes: 1 it breaks, 3 it did not break again, 130 interrupted.
    """
    from msgspec import structs

    from lockcheck.check.stored import violation_of
    from lockcheck.cli.run_options import stored_config
    from lockcheck.hunting.attempts import Attempts, Wanted

    k, n = _tries(tries)
    out = out_of_runs()
    config = structs.replace(stored_config(run, out), out=str(out))
    code, blame = violation_of(run, out)
    attempts = Attempts.begin(out, "shrink", config)
    say(f"wanted         {code}, blamed on the {blame}, in {k} of {n} tries")
    return _shrink(config, attempts, Wanted(code, blame), k, n)


class HuntCommand(RunCommand):
    def takes(self, field: str) -> bool:
        return field not in NOT_OF_A_HUNT


@click.command("hunt", cls=HuntCommand)
@click.option(
    "--time", "length", type=DURATION, default="8h", show_default=True, help="How long to hunt."
)
@click.option(
    "--any", "any_violation", is_flag=True, help="Also a holder that outlived its lease counts."
)
@click.option("--no-shrink", is_flag=True, help="Do not make the run smaller that broke.")
@click.pass_context
def hunt_command(
    context: click.Context, /, length: int, any_violation: bool, no_shrink: bool, **given: Any
) -> int:
    """Run a lock under faults drawn at random until it breaks, then make that run smaller.

    \b
    lockcheck hunt --backend etcd --guard fence --time 8h

    Faults, clients, lease and work are drawn by --seed; what is given is kept. It ends with a
    violation that is not the fault of a holder that outlived its lease. Exit codes: 0 there was
    none, 1 there is one, 4 the runs fail, 130 interrupted.
    """
    from lockcheck.hunting.attempts import Attempts, Wanted
    from lockcheck.hunting.drawing import Drawing
    from lockcheck.signals import INTERRUPTED
    from lockcheck.words import amount

    config = config_from(context, given, None)
    fixed = [name for name in DRAWN if is_set(context, name)]
    attempts = Attempts.begin(Path(config.out), "hunt", config)
    wanted, plans = Wanted(not_the_holders=not any_violation), Drawing(config, fixed).plans()
    say(f"hunting        by --seed {config.seed}, in {attempts.folder.path}")
    try:
        found = _hunt(plans, attempts, wanted, time.monotonic() + length / 1000)
    except KeyboardInterrupt:
        say(f"interrupted after {amount(attempts.number, 'run')}")
        return INTERRUPTED
    if found is None:
        say(f"nothing in {amount(attempts.number, 'run')}")
        return NOTHING
    broke, result = found
    if result.verdict is None:
        say(f"{MOST_ERRORS} runs in a row failed: {result.problem}")
        return FAILED
    kind = wanted.among(result)[0]
    click.echo()
    say(f"found          {kind.code}, blamed on the {kind.blame}: {result.headline}")
    say(f"page           {attempts.page(result)}")
    say(f"run again      {broke.command()}")
    if no_shrink:
        return BROKE
    click.echo()
    _shrink(broke, attempts, Wanted(kind.code, kind.blame), 2, 3)
    return BROKE


def _hunt(
    plans: Iterator[RunConfig], attempts: Attempts, wanted: Wanted, until: float
) -> tuple[RunConfig, Result] | None:
    """The run in which it was found, or the last one of too many that failed."""
    from lockcheck.hunting.attempts import in_short

    errors = 0
    for plan in plans:
        if time.monotonic() >= until:
            return None
        result = attempts.carried_out(plan)
        verdict = str(result.verdict or "error")
        mark = click.style(f"{verdict:<10}", fg=COLOURS.get(verdict, "yellow"))
        click.echo(f"{mark}{result.seconds:6.1f} s  {printable(in_short(plan))}")
        errors = errors + 1 if result.verdict is None else 0
        if wanted.among(result) or errors == MOST_ERRORS:
            return plan, result
        attempts.forget(result, plan)
    return None


def _tries(text: str) -> tuple[int, int]:
    matched = _TRIES.fullmatch(text)
    if matched is None or int(matched[1]) > int(matched[2]):
        raise UserError(f"--tries {text} is none", cure="as in --tries 2/3: two of three")
    return int(matched[1]), int(matched[2])


def _shrink(config: RunConfig, attempts: Attempts, wanted: Wanted, k: int, n: int) -> int:
    from lockcheck.hunting.attempts import in_short
    from lockcheck.hunting.shrinking import Shrinking
    from lockcheck.signals import INTERRUPTED

    pages: dict[RunConfig, str] = {}

    def breaks(smaller: RunConfig) -> bool:
        broke = failed = 0
        while broke < k and failed <= n - k:
            result = attempts.carried_out(smaller)
            if wanted.among(result):
                broke += 1
                pages[smaller] = str(attempts.page(result))
            else:
                failed += 1
                attempts.forget(result, smaller)
        mark = click.style("breaks", fg="red") if broke == k else "holds "
        click.echo(f"{mark}  {broke} of {broke + failed}  {printable(in_short(smaller))}")
        return broke == k

    shrinking, exit_code = Shrinking(config, breaks), BROKE
    try:
        if not breaks(config):
            say("It did not break again: there is nothing to make smaller.")
            return NOT_AGAIN
        shrinking.shrink()
    except KeyboardInterrupt:
        say("interrupted: this is the smallest so far")
        exit_code = INTERRUPTED
    smallest = shrinking.smallest
    click.echo()
    say(f"smallest       {in_short(smallest)}")
    say(f"page           {pages.get(smallest, '')}")
    say(f"run again      {smallest.command()}")
    return exit_code
