"""`lockcheck museum`: real lock libraries, and what runs find in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockcheck.cli.gate import note, print_error, printable, say
from lockcheck.cli.options import LateChoice
from lockcheck.errors import UserError

if TYPE_CHECKING:
    from lockcheck.yours.museum.exhibit import Exhibit
    from lockcheck.yours.museum.visit import Visit

NOT_SHOWN = 1


@click.command("museum")
@click.argument("names", nargs=-1, type=LateChoice("exhibit"), metavar="[NAME]...")
@click.option("--control", is_flag=True, help="The control run of it, in which nothing is found.")
@click.option("--all", "all_", is_flag=True, help="All exhibits, each with its control.")
@click.option("--seed", type=int, default=1, show_default=True, help="The seed, or the first one.")
@click.option("--seeds", type=click.IntRange(1), help="So many runs of each, and of its control.")
@click.option("--no-skip", is_flag=True, help="With --all: what cannot be built here, fails.")
@click.option("--page", type=click.Path(dir_okay=False), help="Write what they found to this file.")
@click.option("--out", default="results", show_default=True, help="Where to keep the runs.")
def museum_command(
    names: tuple[str, ...],
    *,
    control: bool,
    all_: bool,
    seed: int,
    seeds: int | None,
    no_skip: bool,
    page: str | None,
    out: str,
) -> int:
    """Published lock libraries, each under a condition in which its lock fails.

    Without NAME they are listed. With one its library is installed, in an environment of its own,
    and run. With --all, or with --seeds, controls are run, too: it ends with 1 if a run does not
    show what it is there for. --all leaves out exhibits in languages that are not on this host.
    """
    from lockcheck.yours.museum.exhibits import EXHIBITS

    checks = all_ or seeds is not None
    if (
        (all_ and names)
        or (control and (checks or not names))
        or (page and not checks)
        or (no_skip and not all_)
    ):
        raise UserError(
            "--all goes without NAME, --no-skip with it, --page with --all or --seeds, and "
            "--control with one NAME",
            cure="lockcheck museum NAME --control, or lockcheck museum --all --page FILE",
        )
    if checks:
        chosen = names or (tuple(EXHIBITS) if no_skip else _possible(EXHIBITS))
        return _check(chosen, range(seed, seed + (seeds or 1)), page, out)
    if len(names) > 1:
        raise UserError(
            "lockcheck museum shows one exhibit at a time", cure="--seeds 1 checks several"
        )
    return _run(names[0], control=control, seed=seed, out=out) if names else _list()


def _list() -> int:
    from lockcheck.yours.museum.exhibits import EXHIBITS

    for name, exhibit in EXHIBITS.items():
        click.echo(f"  {name:<22} {exhibit.library:<36} {exhibit.shows}")
    return 0


def _run(name: str, *, control: bool, seed: int, out: str) -> int:
    from lockcheck.cli.commands import run_and_print
    from lockcheck.yours.museum.exhibits import EXHIBITS

    exhibit = EXHIBITS[name]
    exhibit.bring(say=note)
    code = run_and_print(exhibit.config(control=control, seed=seed, out=out), as_json=False)
    say(f"control: {exhibit.controls}" if control else f"{exhibit.place()}: {exhibit.why}")
    return code


def _possible(exhibits: Mapping[str, Exhibit]) -> tuple[str, ...]:
    """Those whose clients can be built here; of the others a line tells what would bring them."""
    from lockcheck.yours.museum.programs import MissingError

    possible = []
    for name, exhibit in exhibits.items():
        try:
            exhibit.check()
        except MissingError as error:
            click.echo(f"{name} is left out: {error.message}: {error.cure}")
        else:
            possible.append(name)
    return tuple(possible)


def _check(names: Sequence[str], seeds: range, page: str | None, out: str) -> int:
    from lockcheck.yours.museum.exhibits import EXHIBITS
    from lockcheck.yours.museum.page import write

    failed = number = 0
    for name in names:
        number += 2 * len(seeds)
        try:
            EXHIBITS[name].bring(say=note)
        except UserError as error:
            click.echo(f"no           {name}: not run")
            print_error(error.message, error.cure)
            failed += 2 * len(seeds)
            continue
        visits = [
            _visit(name, control=control, seed=seed, out=out)
            for seed in seeds
            for control in (False, True)
        ]
        failed += sum(bool(visit.wrong()) for visit in visits)
        if page is not None:
            write(Path(page), name, visits)
    click.echo(f"{failed} of {number} runs are not as they should be")
    return NOT_SHOWN if failed or not number else 0


def _visit(name: str, *, control: bool, seed: int, out: str) -> Visit:
    """Reports it in a line, and what is wrong in more."""
    from lockcheck.run.execute import execute
    from lockcheck.run.notes import Note, Preparing
    from lockcheck.signals import INTERRUPTED
    from lockcheck.yours.museum.exhibits import EXHIBITS
    from lockcheck.yours.museum.visit import found_by, visit_of

    def watch(step: Note) -> None:
        if isinstance(step, Preparing):
            note(step.text)

    exhibit = EXHIBITS[name]
    outcome = execute(exhibit.config(control=control, seed=seed, out=out), watch)
    if outcome.interrupted:
        raise click.exceptions.Exit(INTERRUPTED)
    visit = visit_of(exhibit, outcome, control=control)
    wrong, took_s = visit.wrong(), (visit.record.took_ms or 0) / 1000
    role = f"{name}, control" if control else name
    line = f"{'no' if wrong else 'ok':<3} {took_s:5.1f} s  seed {seed}  {role}: {found_by([visit])}"
    click.echo(printable(line))
    for each in wrong:
        print_error(each)
    return visit
