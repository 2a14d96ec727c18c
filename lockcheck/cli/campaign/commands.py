"""`lockcheck matrix`: many runs with an expectation each. `trial` is one of them, `merge` puts the
shards of a campaign together, `compare` says what moved between two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lockcheck.cli.gate import say
from lockcheck.cli.options import LateChoice

OUT = click.Path(file_okay=False, path_type=Path)


@click.command("matrix")
@click.argument("file", default="lockcheck.toml", type=click.Path(path_type=Path))
@click.option("--own", is_flag=True, help="What lockcheck expects of its own locks, not a FILE.")
@click.option(
    "--backend",
    "backends",
    multiple=True,
    type=LateChoice("lock"),
    metavar="LOCK",
    help="With --own: this lock; repeatable.",
)
@click.option("-k", "words", metavar="WORDS", default="", help="Only cells whose id has these.")
@click.option("--seeds", type=click.IntRange(min=1), help="As many of each cell.")
@click.option("--runtime", type=LateChoice("runtime"), help="For all runs.")
@click.option("--jobs", type=click.IntRange(min=1), help="Runs at once. [default: what this bears]")
@click.option("--shard", metavar="I/N", help="Every N-th trial, from the I-th on; see merge.")
@click.option("--last-failed", is_flag=True, help="Only cells that were not as expected last time.")
@click.option("--fresh", is_flag=True, help="Begin anew, even if one was cut short.")
@click.option("--list", "only_list", is_flag=True, help="What would run, and for how long.")
@click.option(
    "--unknown",
    type=click.Choice(["warn", "fail"]),
    default="warn",
    show_default=True,
    help="What an unknown is: exit 3, or a failure.",
)
@click.option("--against", type=OUT, help="A campaign's folder. [default: the last of FILE]")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    help="Findings that are known: they do not fail it until their date.",
)
@click.option("--out", type=OUT, default="results", show_default=True, help="Where it is kept.")
@click.option(
    "--report-dir",
    type=OUT,
    help="Where its reports go, too: index.html, junit.xml, summary.md, results.ndjson.",
)
@click.pass_context
def matrix_command(context: click.Context, /, **given: Any) -> int:
    """Run all cells of FILE, each with its expectation, and report what is not as expected.

    \b
    [[matrix.row]]                              in lockcheck.toml
    backend = ["redis-fenced", "etcd"]          a list: a cell for each
    nemesis = ["pause", "partition:holder"]
    guard = "fence"
    expect = "ok"                               or "violation", "any",
                                                "violation in >= 80 % of 20"

    A campaign that was cut short goes on where it ended. Exit codes: 0 all as expected, 1 not,
    3 unknown, or something never happened that had to, 4 a run failed, 130 interrupted.
    """
    from lockcheck.cli.campaign.conduct import Choice, conduct

    return conduct(context, Choice(**given))


@click.command("trial", hidden=True)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--id", "name", required=True, help="Of the trial, as the plan has it.")
@click.option("--out", type=OUT, required=True, help="The campaign's folder.")
def trial_command(plan: Path, name: str, out: Path) -> int:
    """Carry out one trial of a campaign's PLAN: done twice, it does no harm."""
    from lockcheck.matrix.folder import Folder
    from lockcheck.matrix.trial import carried_out
    from lockcheck.signals import INTERRUPTED

    campaign, target = Folder.at(plan.parent), Folder.at(out)
    trial = campaign.trial(name)
    if (known := target.result(trial)) is not None:
        return known.exit_code
    [expectation] = {c.expectation for c in campaign.plan().cells if c.id == trial.cell}
    result = carried_out(trial, expectation, target.clear(trial))
    if result is None:
        target.forget(trial)
        return INTERRUPTED
    target.save(trial, result)
    return result.exit_code


@click.command("merge")
@click.argument("folders", nargs=-1, required=True, type=OUT)
@click.option("--out", type=OUT, default="results", show_default=True, help="Where it is kept.")
def merge_command(folders: tuple[Path, ...], out: Path) -> int:
    """Put the shards of one campaign together: its page, its reports and its exit code."""
    from lockcheck.cli.campaign.conduct import merged

    return merged(folders, out)


@click.command("compare")
@click.argument("before", type=OUT)
@click.argument("after", type=OUT)
def compare_command(before: Path, after: Path) -> int:
    """Compare two campaigns: verdicts that moved, rates, how long locks were gone."""
    from lockcheck.matrix.comparing import compared
    from lockcheck.matrix.folder import Folder

    for line in compared(Folder.at(before).outcomes(), Folder.at(after).outcomes()).lines():
        say(line)
    return 0
