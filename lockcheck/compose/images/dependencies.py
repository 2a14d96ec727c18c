"""The Python packages of the client image, as locked, installed into a folder on this host.

pip runs here and not in the image: here it is configured for the way to the package index (a proxy,
a mirror, a company's own certificate).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from lockcheck.cache import cache_root, filled_with, filling
from lockcheck.compose.runtime import Say
from lockcheck.errors import ClusterError
from lockcheck.signals import end_with

IMAGE_PYTHON = "3.13"  # Debian trixie's
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}  # the engine's names, and the wheels'
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
LAST_LINES = 6
# All of them with the digests of their wheels; `make lock` renews it.
LOCK = Path(__file__).parent / "python" / "requirements.txt"
PACKAGES = "packages"


def locked_versions() -> dict[str, str]:
    """The packages of the client image, in lower case, with their versions."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", LOCK.read_text(), re.MULTILINE))


def package_tree(architecture: str, say: Say) -> Path:
    """A folder with the packages for the image's Python; made once for each set of packages."""
    key = hashlib.sha256(f"{IMAGE_PYTHON}\n{architecture}\n".encode() + LOCK.read_bytes())
    shelf = cache_root() / "dependencies"
    tree = shelf / key.hexdigest()[:12]
    if filled_with(tree) is None:
        say(f"fetching {len(locked_versions())} Python packages for the client image")
        shutil.rmtree(shelf, ignore_errors=True)  # those of before
        _install(LOCK, architecture, tree)
    return tree / PACKAGES


def _install(lock: Path, architecture: str, tree: Path) -> None:
    """All that is in the lock, nothing else, and only if its digests are those of the lock."""
    options = _pip_options(architecture)
    with filling(tree) as folder:
        packages = folder / PACKAGES
        exactly = ("--no-deps", "--require-hashes", f"--requirement={lock}")
        _run_pip([*options, f"--target={packages}", *exactly])
        shutil.rmtree(packages / "bin", ignore_errors=True)  # its scripts name this host's Python


def _pip_options(architecture: str) -> list[str]:
    machine = MACHINES.get(architecture)
    if machine is None:
        raise ClusterError(
            f"lockcheck has no client image for the engine's architecture {architecture}",
            cure=f"use an engine on one of {', '.join(MACHINES)}",
        )
    platforms = [f"--platform={kind}_{machine}" for kind in PLATFORMS]
    python = [f"--python-version={IMAGE_PYTHON}", "--implementation=cp", "--only-binary=:all:"]
    return [*python, *platforms, "--no-compile", "--quiet", "--root-user-action=ignore"]


def _run_pip(arguments: list[str]) -> None:
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode != 0:
        raise ClusterError(
            f"the client image needs pip on this host, and {sys.executable} has none",
            cure=f"{sys.executable} -m ensurepip, or install lockcheck where pip is",
        )
    done = subprocess.run(
        [*pip, "install", *arguments],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=partial(end_with, os.getpid()),
    )
    if done.returncode != 0:
        output = "\n    ".join(done.stderr.strip().splitlines()[-LAST_LINES:])
        raise ClusterError(
            f"pip could not fetch the client image's packages:\n    {output}",
            cure="`pip download click` should work on this host first",
        )
