"""Locks of other people's: their clients are programs, in any language."""

from __future__ import annotations

from typing import Any

import msgspec

# In containers, which have nothing of this host: where the user's folder is mounted, and the Python
# client is.
FOLDER_THERE = "/lockcheck/client"
TOOLS_THERE = "/lockcheck/tools"


class ClientProgram(msgspec.Struct, frozen=True, kw_only=True):
    """What is run, and how. It crosses to the clients with their orders."""

    command: tuple[str, ...]
    folder: str  # in which it runs
    options: dict[str, Any] = {}  # for `init`
    key_prefix: str = ""  # of all keys that it is asked for
    door: str = ""  # where it is asked for that runs in a container beside: `beside.py`
