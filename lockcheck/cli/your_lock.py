"""Commands about a lock of the user's own: `validate` and `init`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from lockcheck.cli.gate import printable, say
from lockcheck.cli.options import DURATION, LateChoice
from lockcheck.errors import UserError

NOT_KEPT = 1


@click.command("validate")
@click.option("--client", required=True, metavar="COMMAND", help="The program, or MODULE:NAME.")
@click.option(
    "--servers",
    metavar="KIND[=VERSION][*N]",
    default="",
    help="The servers that it needs. [default: redis]",
)
@click.option("--python", metavar="PROGRAM", default="", help="The Python for a client in Python.")
@click.option("--ttl", type=DURATION, default="1s", show_default=True, help="The lease.")
@click.option(
    "--runtime",
    type=LateChoice("runtime", ("auto", "local", "docker")),
    default="auto",
    show_default=True,
    help="Where nodes come from.",
)
def validate_command(client: str, *, servers: str, python: str, ttl: int, runtime: str) -> int:
    """Does a client of your own lock keep the contract, and what does the lock promise?

    It is asked on a real cluster, for some fifteen seconds: is it granted twice, how long does a
    lease last, who may release it, what becomes of it when its client is gone? Ends with 1 if
    something is not as it should be.
    """
    from lockcheck.backends.program import ClientProgram
    from lockcheck.backends.program.describing import description_of
    from lockcheck.backends.program.words import USUAL_SERVERS, command_of
    from lockcheck.yours.validate import Validation

    command, folder = command_of(client, python), str(Path.cwd())
    own = description_of(ClientProgram(command=command, folder=folder))
    asked = Validation(command, folder, servers or own.servers, ttl, runtime, own.promises)
    kept = True
    for row in asked.rows():
        mark = click.style(f"{'ok' if row.ok else 'no':<4}", fg="green" if row.ok else "yellow")
        click.echo(f"{mark}{printable(row.what):<58} {click.style(printable(row.seen), dim=True)}")
        kept = kept and row.ok
    if not asked.granted:
        return NOT_KEPT
    words = ["lockcheck", "run", "--client", client]
    words += ["--servers", servers] if servers and servers != USUAL_SERVERS else []
    words += ["--promises", ",".join(asked.promises)] if asked.promises and not own.promises else []
    words += ["--python", python] if python else []
    click.echo()
    if own.promises:
        say(f"It says of itself: {', '.join(own.promises)}; a run goes by that.")
    say(f"It promises: {', '.join(asked.promises or ['a lease'])}. See it under a pause:")
    say(f"    {shlex.join(words)}")
    return 0 if kept else NOT_KEPT


@click.command("init")
@click.argument("language", type=LateChoice("language"), metavar="LANGUAGE")
@click.option("--out", type=click.Path(dir_okay=False), help="The file. [default: by the language]")
def init_command(language: str, out: str | None) -> int:
    """Write a client to begin with: one file that works, with three places to fill in.

    LANGUAGE is python, bash, go, java, rust or node.
    """
    from lockcheck.yours.beginnings import LANGUAGES

    beginning = LANGUAGES[language]
    path = Path(out or beginning.file)
    beginning.check_name(path)
    try:
        with path.open("x") as file:
            file.write(beginning.text())
    except FileExistsError as error:
        raise UserError(f"{path} is there already", cure="name another file with --out") from error
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from error
    if beginning.text().startswith("#!"):
        path.chmod(0o755)
    for line in beginning.next_steps(path):
        say(line)
    return 0
