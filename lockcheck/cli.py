"""The command line: parse, call, print, exit. What takes time to import is imported when used."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from lockcheck import __version__
from lockcheck.errors import InternalError, LockcheckError, UserError
from lockcheck.options import Duration, LateChoice, read_config_file
from lockcheck.patience import patient_for
from lockcheck.signals import Terminated, unwinding_when_terminated

if TYPE_CHECKING:
    from lockcheck.config import RunConfig
    from lockcheck.run import Outcome

CONFIG_FILE = "lockcheck.toml"
INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="lockcheck")
@click.pass_context
def main(context: click.Context) -> None:
    """Is your lock safe? lockcheck brings up a real cluster, lets clients fight for the lock,
    breaks things on purpose, and judges what happened.

    \b
    lockcheck run --backend redlock --nemesis pause     see it break
    lockcheck run --backend redis-fenced --guard fence  see a fence hold
    lockcheck check FILE                                judge a history, yours or anybody's
    lockcheck doctor                                    what this host can do

    Options are also read from LOCKCHECK_RUN_... variables and from lockcheck.toml
    (a table per command: [run] ttl = "2s").

    Exit codes: 0 ok, 1 violation, 2 usage, 3 unknown, 4 the cluster or lockcheck failed,
    130 interrupted.
    """
    context.default_map = read_config_file(Path(CONFIG_FILE), main.commands)


@main.command("run")
@click.option("--backend", type=LateChoice("backend"), required=True, help="The lock under test.")
@click.option(
    "--workload",
    type=LateChoice("workload"),
    default="register",
    show_default=True,
    help="What clients do under the lock.",
)
@click.option(
    "--nemesis",
    multiple=True,
    default=("pause",),
    show_default=True,
    metavar="FAULT[:TARGET]",
    help="What goes wrong, and for whom; repeatable. `none` for a control run; see lockcheck list.",
)
@click.option(
    "--runtime",
    type=LateChoice("runtime"),
    default="auto",
    show_default=True,
    help="Where nodes come from: network namespaces, or Docker Compose.",
)
@click.option("--clients", default=5, show_default=True, help="How many fight for the lock.")
@click.option("--keys", default=1, show_default=True, help="How many locks they fight for.")
@click.option("--ttl", type=Duration(), default="1s", show_default=True, help="The lease.")
@click.option(
    "--time-limit", type=Duration(), default="15s", show_default=True, help="How long to run."
)
@click.option(
    "--think",
    type=Duration(),
    default="10ms",
    show_default=True,
    help="How long a client works under the lock, half more or less.",
)
@click.option(
    "--seed", type=click.IntRange(0), help="Fixes schedule and choices. [default: random]"
)
@click.option(
    "--guard",
    type=LateChoice("guard"),
    default="none",
    show_default=True,
    help="What the storage checks: nothing, a fencing token, or that nobody wrote in between.",
)
@click.option(
    "--check-validity/--no-check-validity",
    default=False,
    help="Clients look at what is left of their lease before each read and write.",
)
@click.option(
    "--stop-on-violation/--no-stop-on-violation",
    default=True,
    show_default=True,
    help="End early once two clients hold the lock at once.",
)
@click.option(
    "--out",
    default="results",
    show_default=True,
    type=click.Path(file_okay=False),
    help="Where the run's folder is made.",
)
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON on standard output.")
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the servers when the time is over, until Ctrl-C; then comes the verdict.",
)
def run_command(  # noqa: PLR0917 - click calls it by the names of its options
    backend: str,
    workload: str,
    nemesis: tuple[str, ...],
    runtime: str,
    clients: int,
    keys: int,
    ttl: int,
    time_limit: int,
    think: int,
    seed: int | None,
    guard: str,
    check_validity: bool,
    stop_on_violation: bool,
    out: str,
    as_json: bool,
    keep: bool,
) -> int:
    """Run a lock under faults, and judge it."""
    import secrets

    from lockcheck.config import RunConfig
    from lockcheck.storage import Guard

    config = RunConfig(
        backend=backend,
        workload=workload,
        nemesis=nemesis,
        runtime=runtime,
        clients=clients,
        keys=keys,
        ttl_ms=ttl,
        time_limit_ms=time_limit,
        think_ms=think,
        seed=secrets.randbelow(1_000_000) if seed is None else seed,
        guard=Guard(guard),
        check_validity=check_validity,
        stop_on_violation=stop_on_violation,
        out=out,
        keep=keep,
    )
    return _run_and_tell(config, as_json=as_json)


def _run_and_tell(config: RunConfig, *, as_json: bool) -> int:
    from lockcheck.run import execute
    from lockcheck.terminal import Terminal, print_error

    with Terminal() as terminal:
        outcome = execute(config, terminal)
    if as_json:
        _print_json(outcome)
    else:
        _print_outcome(outcome)
    if outcome.error is not None:
        _tell(partial(print_error, outcome.error.message, outcome.error.cure))
    return outcome.exit_code


def _print_outcome(outcome: Outcome) -> None:
    from lockcheck.terminal import print_verdict

    report = Path(os.path.relpath(outcome.store.report))
    print_verdict(outcome.history, outcome.judgement, report, outcome.facts)


def _print_json(outcome: Outcome) -> None:
    import msgspec

    from lockcheck.results.store import verdict_summary

    summary = msgspec.to_builtins(verdict_summary(outcome.judgement, outcome.facts.problem))
    summary |= {
        "run": str(outcome.store.folder),
        "report": str(outcome.store.report),
        "rerun": outcome.config.command(),
        "seed": outcome.config.seed,
        "interrupted": outcome.interrupted,
        "exit_code": outcome.exit_code,
    }
    click.echo(msgspec.json.encode(summary).decode())


@main.command("check")
@click.argument("history")
@click.option(
    "--format",
    "format_",
    type=LateChoice("format"),
    help="Of somebody else's history; without it, what the file looks like.",
)
@click.option(
    "--model",
    type=LateChoice("model"),
    help="What the object is; without it, what its operations look like.",
)
@click.option("--permits", type=click.IntRange(1), help="How many may hold a semaphore at once.")
@click.option("--ttl", type=Duration(), help="The lease of the lock, where the history has none.")
@click.option(
    "--patience",
    type=Duration(),
    default="60s",
    show_default=True,
    help="How long a search for an order of the operations may take before it is `unknown`.",
)
@click.option("--report", type=click.Path(dir_okay=False), help="Write an HTML report there.")
@click.option("--json", "as_json", is_flag=True, help="The verdict as JSON on standard output.")
def check_command(
    history: str,
    *,
    format_: str | None,
    model: str | None,
    permits: int | None,
    ttl: int | None,
    patience: int,
    report: str | None,
    as_json: bool,
) -> int:
    """Judge a history: a stored run's again, or somebody else's. Needs no cluster.

    HISTORY is a run's folder, its name, `latest`, a file, or - for standard input. A run's verdict
    and report are written anew in its folder. Files may end in .gz or .zst, and be in lockcheck's
    JSON Lines, Jepsen's history.edn, history.txt or JSON, the log of a Jepsen test, CSV
    (client,key,op,start_ns,end_ns,outcome,token), or OpenTelemetry's spans.
    """
    from lockcheck.formats import Asked
    from lockcheck.recheck import recheck
    from lockcheck.terminal import print_error, print_verdict, reading_progress

    asked = Asked(format=format_ or "", model=model or "", permits=permits, ttl_ms=ttl)
    with unwinding_when_terminated(), reading_progress() as on_bytes:
        checked = recheck(
            history,
            Path(report) if report else None,
            asked=asked,
            patience=patient_for(patience),
            out=_out_of_runs(),
            on_bytes=on_bytes,
        )
    if as_json:
        import msgspec

        from lockcheck.results.store import verdict_summary

        click.echo(
            msgspec.json.encode(verdict_summary(checked.judgement, checked.facts.problem)).decode()
        )
    else:
        print_verdict(checked.history, checked.judgement, checked.report, checked.facts)
    for note in checked.notes:
        _tell(partial(click.echo, f"lockcheck: {note}", err=True))
    if checked.unwritten:
        _tell(partial(print_error, f"judged, but not written down: {checked.unwritten}", ""))
    return checked.exit_code


def _out_of_runs() -> Path:
    """Where runs are kept, as `run` would have it: `check latest` looks there."""
    asked = click.get_current_context().find_root().default_map or {}
    return Path(os.environ.get("LOCKCHECK_RUN_OUT") or asked.get("run", {}).get("out", "results"))


@main.command("export")
@click.argument("history")
@click.option("--format", "format_", type=LateChoice("export"), required=True, help="Into what.")
@click.option(
    "--from", "from_", type=LateChoice("format"), help="Out of what, if it can't be seen."
)
@click.option("--out", type=click.Path(dir_okay=False), help="Into this file; without, on stdout.")
def export_command(history: str, format_: str, from_: str | None, out: str | None) -> int:
    """Write a history in another format, for other tools.

    HISTORY is what `lockcheck check` takes.
    """
    from lockcheck.export import export
    from lockcheck.formats import Asked

    to = Path(out) if out else None
    with unwinding_when_terminated():
        notes = export(history, format_, Asked(format=from_ or ""), to, _out_of_runs())
    for note in notes:
        _tell(partial(click.echo, f"lockcheck: {note}", err=True))
    return 0


@main.command("list")
def list_command() -> int:
    """Show the locks, faults, checks, formats and models."""
    from lockcheck.backends import BACKENDS
    from lockcheck.checker import CHECKS
    from lockcheck.checker.linearizability import MODELS
    from lockcheck.formats import FORMATS
    from lockcheck.formats.export import EXPORTS
    from lockcheck.nemesis import FAULTS
    from lockcheck.workloads import WORKLOADS

    sections = {
        "backends (--backend)": [
            (b.name, f"{b.summary}; {b.promises.words()}") for b in BACKENDS.values()
        ],
        "workloads (--workload)": [(w.name, w.summary) for w in WORKLOADS.values()],
        "faults (--nemesis)": [
            ("none", "nothing goes wrong: a control run"),
            *((k.name, f"{k.summary}; targets: {', '.join(k.targets)}") for k in FAULTS.values()),
        ],
        "checks (lockcheck explain CODE)": [(code, c.meaning) for code, c in CHECKS.items()],
        "formats (lockcheck check --format)": [(name, f.meaning) for name, f in FORMATS.items()],
        "models (lockcheck check --model)": [(name, m.meaning) for name, m in MODELS.items()],
        "exports (lockcheck export --format)": [(name, e.meaning) for name, e in EXPORTS.items()],
    }
    for title, rows in sections.items():
        click.secho(title, bold=True)
        for name, text in rows:
            click.echo(f"  {name:<16} {text}")
    return 0


@main.command("explain")
@click.argument("code")
def explain_command(code: str) -> int:
    """Explain what a check finds."""
    from lockcheck.checker import CHECKS

    if code not in CHECKS:
        raise UserError(f"there is no check {code!r}", cure=f"choose from: {', '.join(CHECKS)}")
    click.secho(code, bold=True)
    click.echo(CHECKS[code].explanation)
    return 0


@main.command("doctor")
def doctor_command() -> int:
    """Say what this host can do."""
    from lockcheck.doctor import examine

    able = True
    for finding in examine():
        mark = click.style("ok  ", fg="green") if finding.ok else click.style("no  ", fg="yellow")
        click.echo(f"{mark}{finding.what:<22} {finding.found}")
        if finding.cure:
            click.echo(f"    {'':<22} cure: {finding.cure}")
        able = able and (finding.ok or not finding.needed)
    return 0 if able else InternalError.exit_code


@main.command("clean")
def clean_command() -> int:
    """Remove what killed runs left in Docker."""
    from lockcheck.compose.docker.runtime import clean_docker

    removed = clean_docker(click.echo)
    click.echo(f"{removed} leftover{'' if removed == 1 else 's'} removed")
    return 0


@main.group("images")
def images_group() -> None:
    """The images of the docker runtime."""


@images_group.command("build")
def images_build_command() -> int:
    """Build them, with Compose if it is missing. `run` does so by itself where they are not
    there."""
    from lockcheck.compose.images.build import build_images

    build_images(click.echo)
    return 0


def _main() -> object:
    """A closed pipe is an error of its own: click would leave with 1, which is a violation."""
    try:
        code: object = main(standalone_mode=False, auto_envvar_prefix="LOCKCHECK")
        sys.stdout.flush()
    except SystemExit as left:
        raise BrokenPipeError from left
    return code


def entry() -> NoReturn:
    """Exit codes are a promise: whatever goes wrong in here is 4, never 1."""
    try:
        code = _exit_code()
    except Terminated as left:
        code = left.exit_code
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError, AttributeError):  # closed or full: it must not change the code
        os._exit(code)
    sys.exit(code)


def _exit_code() -> int:
    try:
        code = _main()
    except click.ClickException as error:
        _tell(error.show)
        return UserError.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except LockcheckError as error:
        from lockcheck.terminal import print_error

        _tell(partial(print_error, error.message, error.cure))
        return error.exit_code
    except OSError as error:
        return _cannot_write(error)
    except Exception:  # noqa: BLE001 - the last resort: the cause is printed, the code is right
        return _is_a_bug()
    return code if isinstance(code, int) else 0


def _cannot_write(error: OSError) -> int:
    """A reader that went away needs no words, and a full disk is nobody's bug."""
    if not isinstance(error, BrokenPipeError):
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            return _is_a_bug()
        from lockcheck.terminal import print_error

        _tell(partial(print_error, f"cannot be written: {error.strerror}", "make room for it"))
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return InternalError.exit_code


def _is_a_bug() -> int:
    _tell(traceback.print_exc)
    _tell(partial(click.echo, "lockcheck: this is a bug; please report the above", err=True))
    return InternalError.exit_code


def _tell(say: Callable[[], object]) -> None:
    """Where nobody can be told, the exit code still says it."""
    with suppress(OSError, ValueError, AttributeError):
        say()
