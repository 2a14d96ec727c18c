"""The command line: parse, call, print, exit. What takes time to import is imported when used."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lockcheck import __version__
from lockcheck.check.collecting import not_collecting
from lockcheck.cli.gate import as_json as json_of
from lockcheck.cli.gate import print_error, printable, say
from lockcheck.cli.museum import museum_command
from lockcheck.cli.options import DURATION, SIZE, ClockError, LateChoice, read_config_file
from lockcheck.cli.run_options import RunCommand, config_from, stored_config
from lockcheck.cli.supervising import bound_memory
from lockcheck.cli.your_lock import init_command, validate_command
from lockcheck.errors import InternalError, UserError

if TYPE_CHECKING:
    from lockcheck.check.recheck import Checked
    from lockcheck.config import RunConfig
    from lockcheck.results.summary import VerdictSummary
    from lockcheck.run.execute import RunOutcome

CONFIG_FILE = "lockcheck.toml"
MOST_PERMITS = 999_999  # from UNLIMITED_PERMITS on, a lock excludes no client
MEMORY = click.option(
    "--memory",
    type=SIZE,
    default="4GB",
    show_default=True,
    help="How much memory it may take. A search that takes more than a quarter is `unknown`.",
)


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
    stored = stored_config(again, _out_of_runs()) if again is not None else None
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

    summary = msgspec.to_builtins(_summary(outcome))
    summary |= {
        "run": str(outcome.store.folder),
        "report": str(outcome.store.report),
        "rerun": outcome.config.command(),
        "seed": outcome.config.seed,
        "interrupted": outcome.interrupted,
        "exit_code": outcome.exit_code,
    }
    click.echo(json_of(summary))


def _summary(judged: RunOutcome | Checked) -> VerdictSummary:
    from lockcheck.results.summary import verdict_summary

    return verdict_summary(judged.narrative, judged.facts.problem)


@main.command("check")
@click.argument("history")
@click.option(
    "--format",
    "format_",
    type=LateChoice("format"),
    help="The format of the file. [default: detected]",
)
@click.option(
    "--model",
    type=LateChoice("model"),
    help="What the object is. [default: detected by its operations]",
)
@click.option(
    "--permits", type=click.IntRange(1, MOST_PERMITS), help="How many may hold a semaphore at once."
)
@click.option(
    "--ttl", type=DURATION, help="The lease of the lock, if the history does not name it."
)
@click.option(
    "--unsaid-releases",
    is_flag=True,
    help="An `ok` of a release does not say that the lock was still held.",
)
@click.option(
    "--clock-error",
    type=ClockError(),
    multiple=True,
    help="How far apart the clocks of two hosts may be; HOST=DURATION for one that differs.",
)
@click.option(
    "--patience",
    type=DURATION,
    default="60s",
    show_default=True,
    help="The time limit of a search for an order of the operations; then it is `unknown`.",
)
@MEMORY
@click.option(
    "--report", type=click.Path(dir_okay=False), help="Write an HTML report to this file."
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def check_command(
    history: str,
    *,
    format_: str | None,
    model: str | None,
    permits: int | None,
    ttl: int | None,
    unsaid_releases: bool,
    clock_error: tuple[tuple[str, int], ...],
    patience: int,
    memory: int,
    report: str | None,
    as_json: bool,
) -> int:
    """Judge a history: of a stored run, or from another tool. Needs no cluster.

    HISTORY is a run's folder, its name, `latest`, a file, or - for standard input. The verdict,
    record and report of a run are replaced. Files may end in .gz or .zst, and be in lockcheck's
    JSON Lines, Jepsen's history.edn, history.txt or JSON, the log of a Jepsen test, CSV
    (client,key,op,start_ns,end_ns,outcome,token), or OpenTelemetry's spans.
    """
    from lockcheck.check.patience import patient_for
    from lockcheck.check.recheck import recheck
    from lockcheck.cli.terminal import print_verdict, reading_progress
    from lockcheck.formats import ReadOptions

    bound_memory(memory)
    errors: dict[str, float] = dict(clock_error)
    asked = ReadOptions(
        format=format_ or "",
        model=model or "",
        permits=permits,
        ttl_ms=ttl,
        tells_release=not unsaid_releases,
        clock_error_ms=errors.pop("", None),
        clock_errors_ms=errors,
    )
    with not_collecting():
        with reading_progress() as on_bytes:
            checked = recheck(
                history,
                Path(report) if report else None,
                asked=asked,
                patience=patient_for(patience, memory),
                out=_out_of_runs(),
                on_bytes=on_bytes,
            )
        if as_json:
            import msgspec

            summary = msgspec.to_builtins(_summary(checked))
            click.echo(json_of(summary | {"sealed": checked.sealed}))
        else:
            seal = "sealed" if checked.sealed else "not sealed"
            print_verdict(checked.narrative, checked.report, checked.facts, seal)
    for note in checked.notes:
        print_error(note)
    if checked.unwritten:
        print_error(f"judged, but the result could not be written: {checked.unwritten}")
    return checked.exit_code


def _out_of_runs() -> Path:
    """The folder of all runs, as `lockcheck run` is configured: `check latest` looks there."""
    asked = click.get_current_context().find_root().default_map or {}
    return Path(os.environ.get("LOCKCHECK_RUN_OUT") or asked.get("run", {}).get("out", "results"))


@main.command("export")
@click.argument("history")
@click.option(
    "--format", "format_", type=LateChoice("export"), required=True, help="The format to write."
)
@click.option(
    "--from", "from_", type=LateChoice("format"), help="The format to read. [default: detected]"
)
@click.option(
    "--out", type=click.Path(dir_okay=False), help="The file to write. [default: standard output]"
)
@MEMORY
def export_command(
    history: str, *, format_: str, from_: str | None, out: str | None, memory: int
) -> int:
    """Write a history in another format, for other tools.

    HISTORY is what `lockcheck check` takes.
    """
    from lockcheck.check.export import export
    from lockcheck.formats import ReadOptions

    bound_memory(memory)
    to = Path(out) if out else None
    for note in export(history, format_, ReadOptions(format=from_ or ""), to, _out_of_runs()):
        print_error(note)
    return 0


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


main.add_command(validate_command)
main.add_command(init_command)
main.add_command(museum_command)


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
