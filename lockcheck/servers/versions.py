"""Checks that a server's program has the version that was asked for."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping

from lockcheck.errors import ClusterError
from lockcheck.servers.base import Command, Here, Server
from lockcheck.servers.kind import Kind

TIMEOUT_S = 10


def program_of(server: Server) -> Command | None:
    """The program on this host, if there is one in the server's version."""
    program = server.find()
    if program is None or not server.says:
        return program
    return program if re.search(server.says, reported_version(server, program)) else None


def reported_version(server: Server, program: Command) -> str:
    """The version that a program on this host reports."""
    environment = server.environment(Here("", (), "", program))
    try:
        done = subprocess.run(
            server.version_command(program),
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            env={**os.environ, **environment},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"version unknown: {error}"
    found = re.search(server.version_pattern, done.stdout)
    return found.group() if found else f"version unknown: {done.stderr.strip()}"


def why_not_chosen(server: Server) -> str:
    """Which version there is instead, in words; empty if there is no program at all."""
    program = server.find()
    return f"{program[0]} says {reported_version(server, program)}" if program else ""


def check_versions(kinds: Iterable[Kind], reported: Mapping[str, str]) -> None:
    """Raises ClusterError unless each server reports its version; `reported` is by `str(kind)`."""
    for kind in kinds:
        server, version = kind.server, reported[str(kind)]
        if server.says and not re.search(server.says, version):
            raise ClusterError(
                f"{kind} was asked for, but the server that was started says {version}",
                cure="an image that was built on LOCKCHECK_BASE_IMAGE holds what that offers: "
                f"unset it, and remove the image lockcheck/{server.image}",
            )
