"""What a language needs of this host: skipped where it is not there, unless all has to run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.running import why_not

ALL = "LOCKCHECK_TEST_CLIENTS"  # `make test-clients` sets it


def need(things: Iterable[str], cure: str) -> None:
    """Programs on the path, and files; the cure says what brings them."""
    for thing in things:
        there = Path(thing).exists() if "/" in thing else shutil.which(thing) is not None
        if not there:
            lacking(f"{thing} is not on this host: {cure}")


def need_servers(kind: str) -> None:
    if why := why_not("local", kind):
        lacking(f"no local runtime: {why}")


def lacking(why: str) -> None:
    if os.environ.get(ALL):
        pytest.fail(why)
    pytest.skip(why)
