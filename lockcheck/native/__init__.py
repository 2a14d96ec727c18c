"""The parts in C, where they were built; everything works without them, more slowly.

They are loaded by ctypes from a library beside this file, which `hatch_build.py` makes from the
`.c` files here. LOCKCHECK_PURE=1 does without.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

# Changes with every function of the library whose arguments change. One that was built before, and
# was left here by an update, must not be called.
ABI = 9
PURE = "LOCKCHECK_PURE"
FOLDER = Path(__file__).parent
LIBRARY = FOLDER / ("_core.dll" if sys.platform == "win32" else "_core.so")


def core() -> ctypes.CDLL | None:
    """The library, or None where it was not built, or is not wanted."""
    return None if os.environ.get(PURE, "") not in ("", "0") else library_at(LIBRARY)


@cache
def library_at(path: Path) -> ctypes.CDLL | None:
    if not path.is_file():
        return None
    try:
        library = ctypes.CDLL(str(path))
        return library if library.lockcheck_abi() == ABI else None
    except (OSError, AttributeError):  # built for another machine, or no library of ours
        return None
