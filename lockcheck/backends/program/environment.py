"""An environment of its own for a client in Python: what its library requires, and nothing else.

pip makes it once; it is kept in the cache by the hash of its words, those of the requirements and
of the Python.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from lockcheck.cache import cache_root, filled_with, filling, only_one_at_a_time
from lockcheck.errors import UserError
from lockcheck.signals import end_with

PROGRESS = ("Collecting ", "Building wheel", "Installing collected")  # how pip's lines begin
NO_VENV = "it needs venv: on Debian, apt-get install python3-venv; --python names another Python"
NO_PIP = "check the names and versions in --requirements, and that pip reaches its package index"


def environment(requirements: Sequence[str], python: str = "") -> Path:
    """Its folder, whether it is there yet or not."""
    content = _content(requirements, _base(python))
    return cache_root() / "environments" / hashlib.sha256(content.encode()).hexdigest()[:16]


def interpreter(requirements: Sequence[str], python: str = "") -> Path:
    return environment(requirements, python) / "bin" / "python"


def bring_environment(requirements: Sequence[str], python: str, say: Callable[[str], None]) -> None:
    """Makes it if it is not there. Raises a UserError with the cure."""
    base, folder = _base(python), environment(requirements, python)
    content = _content(requirements, base)
    with only_one_at_a_time(f"environment-{folder.name}"):
        if filled_with(folder) == content:
            return
        say(f"installing {', '.join(requirements)} with pip, once, into {folder}")
        with filling(folder, content) as work:
            _run([base, "-m", "venv", str(work)], say, f"{base} makes no environment", NO_VENV)
            pip = [str(work / "bin" / "python"), "-m", "pip", "install", "--no-input", "--"]
            failed = f"pip did not install {', '.join(requirements)}"
            _run([*pip, *requirements], say, failed, NO_PIP)


def _base(python: str) -> str:
    """The Python that it is made with: its path has the version."""
    found = shutil.which(python or sys.executable)
    if found is None:
        raise UserError(
            f"--python {python!r} is no program", cure="name a Python, as in python3.12"
        )
    return os.path.realpath(found)


def _content(requirements: Sequence[str], base: str) -> str:
    return json.dumps([base, *requirements])


def _run(command: list[str], say: Callable[[str], None], failed: str, cure: str) -> None:
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=partial(end_with, os.getpid()),  # noqa: PLW1509 - it takes no lock
    ) as running:
        lines = []
        for line in running.stdout or ():
            lines.append(line.strip())
            if line.startswith(PROGRESS):
                say(line.strip())
    if running.returncode != 0:
        errors = [line for line in lines if line.startswith("ERROR:")] or [*filter(None, lines)]
        why = errors[-1].removeprefix("ERROR:").strip() if errors else "it says nothing"
        raise UserError(f"{failed}: {why}", cure=cure)
