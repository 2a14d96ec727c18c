"""The exit code of a command: any unexpected error is 4, never 1, which is a violation."""

from __future__ import annotations

import io
import os
import sys
import traceback
from contextlib import suppress

import click
from click.shell_completion import shell_complete

from lockcheck.cli.commands import main
from lockcheck.cli.gate import UNHEARD, lines_of, print_error
from lockcheck.cli.outlived import outlive_readers
from lockcheck.cli.packages import note_broken_packages
from lockcheck.errors import InternalError, LockcheckError, UserError, is_out_of_space

COMPLETE_VARIABLE = "_LOCKCHECK_COMPLETE"


def exit_code() -> int:
    outlive_readers()
    try:
        return _exit_code()
    except Exception:  # noqa: BLE001 - an error while one was printed must not look like a violation
        return _is_a_bug()


def _exit_code() -> int:
    reported: LockcheckError | None = None
    try:
        code = _main()
    except click.ClickException as error:
        _show(error)
        return UserError.exit_code
    except LockcheckError as error:
        reported = error
        return _failed(error.message, error.cure, error.exit_code)
    except (MemoryError, ImportError) as error:
        return _short_of_memory(error)
    except OSError as error:
        return _cannot_write(error)
    except Exception:  # noqa: BLE001 - the last resort: the cause is printed, the code is right
        return _is_a_bug()
    finally:
        note_broken_packages(reported)
    return code if isinstance(code, int) else 0


def _main() -> object:
    """What `main.main` does, which would turn a signal into an Abort, and a closed pipe into exit
    code 1, a violation."""
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        return shell_complete(main, {}, "lockcheck", COMPLETE_VARIABLE, instruction)
    arguments = sys.argv[1:]
    try:
        with main.make_context("lockcheck", arguments, auto_envvar_prefix="LOCKCHECK") as context:
            code: object = main.invoke(context)
    except click.exceptions.Exit as left:  # of --help and --version
        code = left.exit_code
    sys.stdout.flush()
    return code


def _show(error: click.ClickException) -> None:
    shown = io.StringIO()
    error.show(shown)
    _print_lines(shown.getvalue())


def _print_lines(text: str) -> None:
    with suppress(*UNHEARD):
        click.echo("\n".join(lines_of(text)), err=True, nl=False)


def _failed(message: str, cure: str, code: int = InternalError.exit_code) -> int:
    print_error(message, cure)
    return code


def _short_of_memory(error: MemoryError | ImportError) -> int:
    """An ImportError counts, too: without enough memory, libraries cannot be loaded."""
    if isinstance(error, MemoryError):
        return _failed("out of memory", "give it more, or judge less at once")
    reason = error.__cause__ or error
    return _failed(f"cannot be loaded: {reason}", "give it more memory, or install lockcheck anew")


def _cannot_write(error: OSError) -> int:
    """Standard output failed: a reader that left needs no message, and a full disk is no bug."""
    if not isinstance(error, BrokenPipeError):
        if not is_out_of_space(error):
            return _is_a_bug()
        _failed(f"cannot be written: {error.strerror}", "make room for it")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return InternalError.exit_code


def _is_a_bug() -> int:
    _print_lines(f"{traceback.format_exc()}lockcheck: this is a bug; please report the above\n")
    return InternalError.exit_code
