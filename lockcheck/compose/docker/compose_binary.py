"""Docker Compose v2: the program of this host, or lockcheck's own copy."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lockcheck.cache import cache_root, filled_with, filling
from lockcheck.compose.docker.engine import IMAGE_LABEL, engine_trouble
from lockcheck.compose.docker.unpacking import unpack
from lockcheck.compose.images.dependencies import MACHINES
from lockcheck.errors import ClusterError

if TYPE_CHECKING:
    import docker

ENVIRONMENT = "LOCKCHECK_COMPOSE"
OLDEST_MAJOR = 2
ANSWER_TIMEOUT_S = 20
PROGRAM = "docker-compose"
IN_IMAGE = f"/{PROGRAM}"  # in the image `compose`


class FoundCompose(NamedTuple):
    command: tuple[str, ...]
    version: str


def find_compose() -> FoundCompose | None:
    """The first Compose v2 on this host."""
    return next((each for each in _candidates() if _is_v2(each.version)), None)


def why_no_compose() -> str:
    """Empty if there is a Compose v2; otherwise what there is instead, with the cure."""
    found = list(_candidates())
    if any(_is_v2(each.version) for each in found):
        return ""
    cure = f"`lockcheck images build` fetches it, or name the program in {ENVIRONMENT}"
    if not found:
        return f"Docker Compose v2 is not on this host: {cure}"
    old = ", ".join(f"{' '.join(each.command)} is {each.version}" for each in found)
    return f"Docker Compose v2 is needed, and {old}: {cure}"


def _candidates() -> Iterator[FoundCompose]:
    """In order of preference; docker-compose on PATH is last, since an old one takes 0.3 s."""
    if named := os.environ.get(ENVIRONMENT):
        yield from _versioned(named)
        return
    if docker_command := shutil.which("docker"):
        yield from _versioned(docker_command, "compose")
    if filled_with(_cached()) is not None:
        yield from _versioned(str(_cached() / PROGRAM))
    if standalone := shutil.which(PROGRAM):
        yield from _versioned(standalone)


def _versioned(*command: str) -> Iterator[FoundCompose]:
    path = Path(command[0])
    if path.is_file():
        about = path.stat()
        if version := _version_of(command, about.st_mtime_ns, about.st_size):
            yield FoundCompose(command, version)


@functools.cache
def _version_of(command: tuple[str, ...], *_identity: int) -> str:
    """The version that the command prints; empty if it fails or prints none. Run once a program."""
    try:
        done = subprocess.run(
            [*command, "version", "--short"],
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = re.search(r"\d+\.\d+[\w.+~-]*", done.stdout)
    return version.group() if version and done.returncode == 0 else ""


def _is_v2(version: str) -> bool:
    return int(version.partition(".")[0]) >= OLDEST_MAJOR


def _cached() -> Path:
    return cache_root() / "compose"


def cache_binary(client: docker.DockerClient, image: str) -> None:
    """Copies the program out of the image into the cache."""
    _check_it_would_run_here(client)
    with engine_trouble("copying Docker Compose out of its image"):
        container = client.containers.create(image, "none", labels={IMAGE_LABEL: "compose"})
        try:
            chunks, _about = container.get_archive(IN_IMAGE)
            _unpack(chunks, _cached())
        finally:
            container.remove(force=True)


def _check_it_would_run_here(client: docker.DockerClient) -> None:
    with engine_trouble("asking the engine its architecture"):
        machine = MACHINES.get(str(client.version()["Arch"]))
    if sys.platform != "linux" or machine != platform.machine():
        raise ClusterError(
            "Docker Compose v2 is not on this host, and the engine's would not run on it",
            cure="install Docker's Compose plug-in",
        )


def _unpack(chunks: Iterable[bytes], target: Path) -> None:
    with filling(target) as folder, tempfile.TemporaryFile() as packed:
        packed.writelines(chunks)
        packed.seek(0)
        unpack(packed, folder)
        (folder / PROGRAM).chmod(0o755)
