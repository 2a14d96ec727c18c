"""The entry point. It imports very little, so that an early Ctrl-C is handled, too."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from lockcheck.cli.supervising import DECIDED, ENDED_BY_ITSELF, say_barely, supervise
from lockcheck.signals import INTERRUPTED, INTERRUPTING, Interrupted

WRITTEN_BY_ANYBODY = 0o002  # what no file of ours is, nor of the processes that we start


def entry() -> NoReturn:
    try:
        supervise()
        os.umask(os.umask(0) | WRITTEN_BY_ANYBODY)
        # Columns gain nothing from threads, and BLAS aborts the process where it can start none.
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        from lockcheck.cli.exits import exit_code

        code = exit_code()
    except Interrupted as left:
        code = left.exit_code
    except KeyboardInterrupt:  # before there was a child
        code = INTERRUPTED
    # Not even the command line is there; short of memory, Python may lose the error itself.
    except (ImportError, MemoryError, SystemError) as error:
        code = ENDED_BY_ITSELF
        say_barely(f"cannot be loaded: {str(error) or 'no memory'}", "give it more memory")
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTING)  # the exit code is decided
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError, AttributeError):  # closed or full: it must not change the code
        os._exit(DECIDED + code)
    sys.exit(DECIDED + code)
