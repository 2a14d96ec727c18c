"""The Python packages of the client image, installed into a folder on this host.

pip runs here and not in the image: here it is configured for the way to the package index (a proxy,
a mirror, a company's own certificate).
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from lockcheck.compose.images.cache import cache_folder
from lockcheck.compose.runtime import Say
from lockcheck.distribution import DISTRIBUTION
from lockcheck.errors import ClusterError
from lockcheck.servers import SERVERS

IMAGE_PYTHON = "3.13"  # Debian trixie's
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}  # the engine's names, and the wheels'
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
LAST_LINES = 6


def requirements() -> list[str]:
    """The packages that the client image needs, in this host's versions if it has them."""
    pinned: dict[str, str] = {}
    drivers = (each for extra in SERVERS for each in _of(extra))  # of every kind of server
    own = [*_unconditional(DISTRIBUTION), *drivers]
    to_visit = [text.partition(";")[0].strip() for text in own]  # without markers
    while to_visit:
        text = to_visit.pop()
        name = _name_of(text)
        if name in pinned:
            continue
        version = _version(name)
        pinned[name] = f"{name}=={version}" if version else text
        if version:  # else it is not installed on this host, whose system may not need it
            to_visit += [each for each in _unconditional(name) if _version(_name_of(each))]
    return sorted(pinned.values())


def _unconditional(distribution: str) -> list[str]:
    """Its requirements without those of extras; other markers would be about this host."""
    return [text for text in metadata.requires(distribution) or () if "extra ==" not in text]


def _of(extra: str) -> list[str]:
    brought_by = re.compile(rf"extra == ['\"]{extra}['\"]")
    return [text for text in metadata.requires(DISTRIBUTION) or () if brought_by.search(text)]


def _name_of(text: str) -> str:
    """The canonical name in a requirement, so that one package has one name."""
    found = re.match(r"[\w.-]+", text)
    return re.sub(r"[-_.]+", "-", found.group()).lower() if found else text


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def package_tree(architecture: str, say: Say) -> Path:
    """A folder with the packages for the image's Python; made once for each set of packages."""
    wanted = requirements()
    key = hashlib.sha256("\n".join([IMAGE_PYTHON, architecture, *wanted]).encode()).hexdigest()
    shelf = cache_folder() / "dependencies"
    tree = shelf / key[:12]
    if not tree.exists():
        say(f"fetching {len(wanted)} Python packages for the client image")
        shelf.mkdir(exist_ok=True)
        for old in shelf.iterdir():
            shutil.rmtree(old)
        _install(wanted, architecture, tree)
    return tree


def _install(wanted: list[str], architecture: str, tree: Path) -> None:
    """Installs under another name first, so that a `tree` that exists is complete."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as name:
        complete = Path(name) / "packages"
        _run_pip([*_pip_options(architecture), f"--target={complete}", *wanted])
        shutil.rmtree(complete / "bin", ignore_errors=True)  # its scripts name this host's Python
        complete.rename(tree)


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
        [*pip, "install", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        output = "\n    ".join(done.stderr.strip().splitlines()[-LAST_LINES:])
        raise ClusterError(
            f"pip could not fetch the client image's packages:\n    {output}",
            cure="`pip download click` should work on this host first",
        )
