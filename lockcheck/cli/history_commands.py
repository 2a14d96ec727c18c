"""Commands about stored histories: `check` and `export`."""

from __future__ import annotations

from pathlib import Path

import click

from lockcheck.check.collecting import not_collecting
from lockcheck.cli.gate import as_json as json_of
from lockcheck.cli.gate import print_error
from lockcheck.cli.options import DURATION, SIZE, ClockError, LateChoice
from lockcheck.cli.run_options import out_of_runs
from lockcheck.cli.supervising import bound_memory

MOST_PERMITS = 999_999  # from UNLIMITED_PERMITS on, a lock excludes no client
MEMORY = click.option(
    "--memory",
    type=SIZE,
    default="4GB",
    show_default=True,
    help="How much memory it may take. A search that takes more than a quarter is `unknown`.",
)


@click.command("check")
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
@click.option(
    "--minimize",
    is_flag=True,
    help="Find the few operations that suffice for the violation, and write them beside the "
    "report, as FILE.min.jsonl.",
)
@click.option(
    "--minimized",
    type=click.Path(dir_okay=False),
    help="Minimize, and write the operations to this file.",
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
    minimize: bool,
    minimized: str | None,
    as_json: bool,
) -> int:
    """Judge a history: of a stored run, or from another tool. Needs no cluster.

    HISTORY is a run's folder, its name, `latest`, a file, or - for standard input. The verdict,
    record and report of a run are replaced. Files may end in .gz or .zst, and be in lockcheck's
    JSON Lines, Jepsen's history.edn, history.txt or JSON, the log of a Jepsen test, CSV
    (client,key,op,start_ns,end_ns,outcome,token), or OpenTelemetry's spans.
    """
    from lockcheck.check.minimizing import Minimize
    from lockcheck.check.patience import patient_for
    from lockcheck.check.recheck import recheck
    from lockcheck.cli.terminal import minimizing_progress, print_verdict, reading_progress
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
    to = Path(minimized) if minimized else None
    smallest = Minimize(to, minimizing_progress()) if minimize or to else None
    with not_collecting():
        with reading_progress() as on_bytes:
            checked = recheck(
                history,
                Path(report) if report else None,
                asked=asked,
                patience=patient_for(patience, memory),
                out=out_of_runs(),
                on_bytes=on_bytes,
                minimize=smallest,
            )
        if as_json:
            import msgspec

            from lockcheck.results.summary import verdict_summary

            given = verdict_summary(checked.narrative, checked.facts.problem)
            summary = msgspec.to_builtins(given)
            found = checked.narrative.smallest
            stored = {"minimized": found.path} if found and found.path else {}
            click.echo(json_of(summary | {"sealed": checked.sealed} | stored))
        else:
            seal = "sealed" if checked.sealed else "not sealed"
            print_verdict(checked.narrative, checked.report, checked.facts, seal)
    for note in checked.notes:
        print_error(note)
    if checked.unwritten:
        print_error(f"judged, but the result could not be written: {checked.unwritten}")
    return checked.exit_code


@click.command("export")
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
    for note in export(history, format_, ReadOptions(format=from_ or ""), to, out_of_runs()):
        print_error(note)
    return 0
