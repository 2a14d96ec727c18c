"""libfaketime, preloaded for a server's program only: finds the library and writes its settings."""

from __future__ import annotations

import os
from pathlib import Path

from lockcheck.servers.base import Command, fetched

LIBRARY = "libfaketimeMT.so.1"
VARIABLE = "LOCKCHECK_FAKETIME"
PACKAGE = "libfaketime"
FILE = "faketime"  # in the server's data folder
FILE_VARIABLE = "FAKETIME_TIMESTAMP_FILE"
# Its path in Debian; the loader replaces $LIB by the processor's folder.
IN_IMAGE = f"/usr/$LIB/faketime/{LIBRARY}"
CURE = f"apt-get install {PACKAGE}, or name {LIBRARY} in {VARIABLE}"


def find_library() -> Path | None:
    """The library on this host, if there is one."""
    if named := os.environ.get(VARIABLE):
        return Path(named).resolve()
    pattern = f"usr/lib/*/faketime/{LIBRARY}"
    if installed := next(Path("/").glob(pattern), None):
        return installed
    unpacked = fetched(PACKAGE)
    return next(unpacked.glob(pattern), None) if unpacked else None


def under_faketime(command: Command, library: str, data: str) -> Command:
    """The command with libfaketime preloaded: without its cache, which delays changes by up to ten
    seconds, and without shared memory, which would be left behind."""
    variables = {
        "LD_PRELOAD": library,
        FILE_VARIABLE: f"{data}/{FILE}",
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DISABLE_SHM": "1",
    }
    return ("env", *(f"{name}={value}" for name, value in variables.items()), *command)


def file_text(by_ns: int) -> str:
    """The content of the offset file that moves the clock by `by_ns`."""
    return f"{by_ns / 10**9:+.6f}\n"
