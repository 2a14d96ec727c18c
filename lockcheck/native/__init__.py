"""The parts in C, if they were built; everything works without them, more slowly.

`hatch_build.py` builds the library from the `.c` files here. LOCKCHECK_PURE=1 turns it off.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

# Grows whenever a function of the library is renamed or its arguments change: a library that was
# built for an older version must not be called.
ABI = 11
PURE = "LOCKCHECK_PURE"
FOLDER = Path(__file__).parent
LIBRARY = FOLDER / ("_core.dll" if sys.platform == "win32" else "_core.so")


def core() -> ctypes.CDLL | None:
    """The library; None if it was not built or is turned off."""
    return None if os.environ.get(PURE, "") not in ("", "0") else library_at(LIBRARY)


@cache
def library_at(path: Path) -> ctypes.CDLL | None:
    """The library in this file; None if it cannot be used."""
    if not path.is_file():
        return None
    try:
        library = ctypes.CDLL(str(path))
        return library if library.lockcheck_abi() == ABI else None
    except (OSError, AttributeError):  # built for another machine, or another library
        return None
