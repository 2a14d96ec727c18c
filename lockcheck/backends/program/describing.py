"""What a client program says of itself, asked on this host and before a run."""

from __future__ import annotations

from lockcheck.backends.program import ClientProgram
from lockcheck.backends.program.life import (
    EndedError,
    NotAnsweredError,
    NotUnderstoodError,
    Program,
)
from lockcheck.backends.program.messages import DescribeOk
from lockcheck.errors import UserError

PATIENCE_S = 10.0


def description_of(program: ClientProgram) -> DescribeOk:
    """An empty one if it does not know the request. Raises UserError if it cannot be started."""
    nothing = DescribeOk(in_reply_to=0)
    try:
        begun = Program(
            program.command,
            program.folder,
            node="description",
            hear=lambda _message: None,
            ended=lambda _why, _lived_ns: None,
        )
    except OSError as error:
        raise UserError(
            f"{program.command[0]} cannot be started: {error.strerror}",
            cure="name an executable program with --client, or MODULE:NAME for Python",
        ) from error
    try:
        message = begun.ask("describe", PATIENCE_S)
    except NotUnderstoodError as error:
        raise senseless(str(error)) from error
    except (EndedError, NotAnsweredError) as error:
        if begun.has_ended:
            raise UserError(
                f"the client program ended at once: {begun.why_ended}",
                cure="its output is above; `lockcheck validate` tries it step by step",
            ) from error
        return nothing
    else:
        return message if isinstance(message, DescribeOk) else nothing
    finally:
        begun.close()


def senseless(why: str) -> UserError:
    return UserError(
        f"what the client program says of itself has no sense: {why}",
        cure='for example servers "redis*3" and promises ["waits"]; see docs/protocol.md',
    )
