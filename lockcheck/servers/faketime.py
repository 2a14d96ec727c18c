"""libfaketime before a server's program, and nowhere else: where it is, and how it is set."""

from __future__ import annotations

import os
from pathlib import Path

from lockcheck.servers.base import Command, unpacked

LIBRARY = "libfaketimeMT.so.1"
VARIABLE = "LOCKCHECK_FAKETIME"
PACKAGE = "libfaketime"
FILE = "faketime"  # in the server's data folder
FILE_VARIABLE = "FAKETIME_TIMESTAMP_FILE"
# Where Debian puts it, whatever the processor: the loader knows what $LIB is.
IN_IMAGE = f"/usr/$LIB/faketime/{LIBRARY}"
CURE = f"apt-get install {PACKAGE}, or name {LIBRARY} in {VARIABLE}"


def find_library() -> Path | None:
    """On this host."""
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve()
    roots = (Path("/"), unpacked(PACKAGE))
    found = (path for root in roots for path in root.glob(f"usr/lib/*/faketime/{LIBRARY}"))
    return next(found, None)


def under_faketime(command: Command, library: str, data: str) -> Command:
    """Without a cache of its own, or a change would take ten seconds, and without shared memory,
    which would stay behind."""
    variables = {
        "LD_PRELOAD": library,
        FILE_VARIABLE: f"{data}/{FILE}",
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DISABLE_SHM": "1",
    }
    return ("env", *(f"{name}={value}" for name, value in variables.items()), *command)


def file_text(by_ns: int) -> str:
    """What it reads in its file."""
    return f"{by_ns / 10**9:+.6f}\n"
