"""`lockcheck hunt` looks for a violation by runs that are drawn; `shrink` makes a run smaller that
broke."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from lockcheck.cli.gate import printable, say
from lockcheck.cli.run_options import out_of_runs
from lockcheck.errors import UserError

if TYPE_CHECKING:
    from lockcheck.config import RunConfig
    from lockcheck.hunting.attempts import Attempts, Wanted

_TRIES = re.compile(r"([1-9]\d?)/([1-9]\d?)")
BROKE, NOT_AGAIN = 1, 3


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
    from lockcheck.check.stored import violation_of
    from lockcheck.cli.run_options import stored_config
    from lockcheck.hunting.attempts import Attempts, Wanted

    k, n = _tries(tries)
    out = out_of_runs()
    config = stored_config(run, out)
    code, blame = violation_of(run, out)
    attempts = Attempts.begin(out, "shrink", config)
    say(f"wanted         {code}, blamed on the {blame}, in {k} of {n} tries")
    return _shrink(config, attempts, Wanted(code, blame), k, n)


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
            if wanted.is_in(result):
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
