"""`lockcheck serve`: all runs and campaigns below a folder, in a browser."""

from __future__ import annotations

from pathlib import Path

import click

from lockcheck.cli.gate import print_error, say
from lockcheck.errors import UserError


@click.command("serve")
@click.argument("folder", default="results", type=click.Path(path_type=Path), metavar="[DIR]")
@click.option("--port", type=click.IntRange(1, 65535), help="[default: 8470, or the next free one]")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on. With another one, others can read the results, too.",
)
def serve_command(folder: Path, port: int | None, host: str) -> int:
    """Show all runs and campaigns below DIR (default: results) in a browser: filter, search, sort,
    compare two. Runs under way appear as they go on.

    It reads, and only this machine can ask it. Ctrl-C ends it, with exit code 0.
    """
    from lockcheck.serve.server import LOOPBACK, listening

    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}", cure="name one that runs were written to")
    with listening(folder, host, port) as server:
        if host not in (LOOPBACK, "localhost", "::1"):
            print_error(f"not only this machine: who can reach {server.address} reads all results")
        say(f"{server.address} shows {folder}; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:  # the way it is meant to end: nothing was cut short
            return 0
    return 0
