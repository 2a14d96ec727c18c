"""The command line: parse, call, print, exit. What takes time to import is imported when used."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockcheck import __version__
from lockcheck.cli.battery import battery_command
from lockcheck.cli.campaign.commands import (
    compare_command,
    matrix_command,
    merge_command,
    trial_command,
)
from lockcheck.cli.campaign.hunting import hunt_command, shrink_command
from lockcheck.cli.campaign.serve import serve_command
from lockcheck.cli.campaign.sweep import sweep_command
from lockcheck.cli.gate import as_json as json_of
from lockcheck.cli.gate import print_error, printable, say
from lockcheck.cli.history_commands import check_command, export_command
from lockcheck.cli.museum import museum_command
from lockcheck.cli.options import LateChoice, read_config_file
from lockcheck.cli.run_options import RunCommand, config_from, out_of_runs, stored_config
from lockcheck.cli.your_lock import init_command, validate_command
from lockcheck.errors import InternalError, UserError

if TYPE_CHECKING:
    from lockcheck.config import RunConfig
    from lockcheck.run.execute import RunOutcome

CONFIG_FILE = "lockcheck.toml"


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="lockcheck")
@click.pass_context
def main(context: click.Context) -> None:
    """Is your lock safe? lockcheck brings up a real cluster, lets clients fight for the lock,
    injects faults, and judges what happened.

    \b
    lockcheck run --backend redlock --nemesis pause     see it break
    lockcheck run --backend redis-fenced --guard fence  see a fence hold
    lockcheck run --client ./mylock                     test a lock of your own; first: init
    lockcheck check FILE                                judge a history, also of other tools
    lockcheck doctor                                    what this host can run

    Options are also read from LOCKCHECK_RUN_... variables and from lockcheck.toml
    (a table per command: [run] ttl = "2s").

    Exit codes: 0 ok, 1 violation, 2 usage, 3 unknown, 4 the cluster or lockcheck failed,
    130 interrupted.
    """
    context.default_map = read_config_file(Path(CONFIG_FILE), main.commands)
    if context.invoked_subcommand in context.default_map:
        where = f"settings of [{context.invoked_subcommand}] in {Path(CONFIG_FILE).absolute()}"
        print_error(f"used: {where}")


@main.command("run", cls=RunCommand)
@click.option(
    "--again",
    metavar="RUN",
    help="Repeat a stored run: its folder, its name, or `latest`; other options override it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
@click.pass_context
def run_command(
    context: click.Context, /, again: str | None, as_json: bool, **given: object
) -> int:
    """Run a lock under faults, and judge what happened."""
    stored = stored_config(again, out_of_runs()) if again is not None else None
    return run_and_print(config_from(context, given, stored), as_json=as_json)


def run_and_print(config: RunConfig, *, as_json: bool) -> int:
    from lockcheck.cli.progress import Terminal
    from lockcheck.cli.terminal import print_verdict
    from lockcheck.run.execute import execute

    with closing(Terminal()) as terminal:
        outcome = execute(config, terminal.show)
    if as_json:
        _print_json(outcome)
    else:
        print_verdict(outcome.narrative, outcome.store.report, outcome.facts)
    if outcome.error is not None:
        print_error(outcome.error.message, outcome.error.cure)
    return outcome.exit_code


def _print_json(outcome: RunOutcome) -> None:
    import msgspec

    from lockcheck.results.summary import verdict_summary

    given = verdict_summary(outcome.narrative, outcome.facts.problem)
    summary = msgspec.to_builtins(given) | {
        "run": str(outcome.store.folder),
        "report": str(outcome.store.report),
        "rerun": outcome.config.command(),
        "seed": outcome.config.seed,
        "interrupted": outcome.interrupted,
        "exit_code": outcome.exit_code,
    }
    click.echo(json_of(summary))


@main.command("list")
@click.argument("sections", nargs=-1, type=LateChoice("section"), metavar="[SECTION]...")
def list_command(sections: tuple[str, ...]) -> int:
    """List what there is, or the sections that are named, as in `lockcheck list backends`.

    Sections: backends, servers, workloads, faults, checks, formats, models, exports. Of each lock
    it shows the servers, what it promises, and what is expected of it: under which fault,
    behind which guard, which verdict.
    """
    from lockcheck.cli.listing import print_sections

    print_sections(sections)
    return 0


@main.command("explain")
@click.argument("code")
def explain_command(code: str) -> int:
    """Explain what a check finds."""
    from lockcheck.checker import CHECKS

    if code not in CHECKS:
        raise UserError(f"unknown check {code!r}", cure=f"choose from: {', '.join(CHECKS)}")
    click.secho(code, bold=True)
    click.echo(CHECKS[code].explanation)
    return 0


@main.command("doctor")
def doctor_command() -> int:
    """Check what this host can run, and say how to add the rest."""
    from lockcheck.cli.doctor import examine_host

    able = True
    for finding in examine_host():
        mark = click.style(f"{finding.mark:<4}", fg="green" if finding.ok else "yellow")
        click.echo(f"{mark}{finding.what:<22} {printable(finding.found)}")
        if finding.cure:
            say(f"    {'':<22} cure: {finding.cure}")
        able = able and (finding.ok or not finding.needed)
    return 0 if able else InternalError.exit_code


@main.command("clean")
def clean_command() -> int:
    """Remove what killed runs left in Docker and in the cache."""
    from lockcheck.cache import remove_leftovers
    from lockcheck.compose.docker.cleanup import clean_docker
    from lockcheck.words import amount

    removed = remove_leftovers() + clean_docker(say, say)
    click.echo(f"{amount(removed, 'leftover')} removed")
    return 0


main.add_command(check_command)
main.add_command(export_command)
main.add_command(validate_command)
main.add_command(battery_command)
main.add_command(init_command)
main.add_command(museum_command)
main.add_command(matrix_command)
main.add_command(trial_command)
main.add_command(merge_command)
main.add_command(compare_command)
main.add_command(sweep_command)
main.add_command(shrink_command)
main.add_command(hunt_command)
main.add_command(serve_command)


@main.group("images")
def images_group() -> None:
    """The images of the docker runtime."""


@images_group.command("build")
@click.argument("kinds", metavar="[SERVER[=VERSION]]...", nargs=-1)
def images_build_command(kinds: tuple[str, ...]) -> int:
    """Build them, and Compose if it is missing. `run` does so by itself if they are missing.
    Without names: those of all servers, in their usual versions."""
    from lockcheck.compose.images.build import build_images
    from lockcheck.servers import SERVERS
    from lockcheck.servers.kind import Kind

    build_images([Kind.parse(kind) for kind in kinds or SERVERS], say)
    return 0
