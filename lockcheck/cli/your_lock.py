"""Commands about a lock of the user's own: `validate` and `init`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockcheck.cli.gate import printable, say
from lockcheck.cli.options import LateChoice
from lockcheck.cli.run_options import RunCommand, config_from
from lockcheck.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lockcheck.yours.validate import Validation

NAMED = ("backend", "client", "image", "servers", "python", "requirements", "promises")
OF_A_LOCK = (*NAMED, "ttl_ms", "runtime")
NOT_KEPT = 1


class ValidateCommand(RunCommand):
    def takes(self, field: str) -> bool:
        return field in OF_A_LOCK


@click.command("validate", cls=ValidateCommand)
@click.pass_context
def validate_command(context: click.Context, /, **given: Any) -> int:
    """Does a client of your own lock keep the contract, and what does the lock promise?

    \b
    lockcheck validate --client ./mylock

    It is asked on a real cluster, for some fifteen seconds: is it granted twice, how long does a
    lease last, who may release it, what becomes of it when its client is gone? Ends with 1 if
    something is not as it should be.
    """
    from lockcheck.run.validation import check_settings, check_there
    from lockcheck.yours.validate import Validation

    config = config_from(context, given, None)
    if not config.client:
        raise UserError(
            f"{config.backend} is one of lockcheck's own", cure="name a client of yours: --client"
        )
    check_settings(config)
    if config.image or config.runtime == "docker":
        check_there(config)
    asked = Validation(
        config.program,
        config.servers,
        config.ttl_ms,
        config.runtime,
        config.promises,
        image=config.image,
        client_folder=config.folder_of_client,
    )
    kept = True
    for row in asked.rows():
        mark = click.style(f"{'ok' if row.ok else 'no':<4}", fg="green" if row.ok else "yellow")
        click.echo(f"{mark}{printable(row.what):<58} {click.style(printable(row.seen), dim=True)}")
        kept = kept and row.ok
    if not asked.granted:
        return NOT_KEPT
    click.echo()
    if asked.stated:
        say(f"It says of itself: {', '.join(asked.stated)}; a run goes by that.")
    say(f"It promises: {', '.join(asked.promises or ['a lease'])}. See it under a pause:")
    say(f"    {shlex.join(['lockcheck', 'run', *_words(given, asked)])}")
    return 0 if kept else NOT_KEPT


def _words(given: Mapping[str, Any], asked: Validation) -> Iterator[str]:
    """What was given, and what was found unless the lock says it of itself."""
    found = () if asked.stated else (",".join(asked.promises),) if asked.promises else ()
    for name in NAMED:
        value = given[name] or (found if name == "promises" else ())
        for each in (value,) if isinstance(value, str) else value:
            yield from (f"--{name}", each)


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
