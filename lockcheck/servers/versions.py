"""The versions of servers: which one a run wants, and whether a program has it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Mapping

from lockcheck.errors import ClusterError, UserError
from lockcheck.servers import SERVERS
from lockcheck.servers.base import Command, Here, Server

TIMEOUT_S = 10


def server_of(kind: str) -> Server:
    """What a node of that kind runs: "etcd" as it is found, or "etcd=3.4"."""
    name, _, version = kind.partition("=")
    server = SERVERS[name]
    return server.versions[version] if version else server


def check_kind(kind: str) -> None:
    name, _, version = kind.partition("=")
    if name not in SERVERS or ((version or "=" in kind) and version not in SERVERS[name].versions):
        known = [
            server.kind for each in SERVERS.values() for server in (each, *each.versions.values())
        ]
        raise UserError(f"unknown server {kind!r}", cure=f"choose from: {', '.join(known)}")


def versions_asked(texts: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """By kind of server, what `--version KIND=VERSION` says; `known` are the kinds of the run."""
    asked: dict[str, str] = {}
    kinds = {name: SERVERS[name].software for name in known}
    offered = {software: SERVERS[software].versions for software in kinds.values()}
    choices = [server.kind for versions in offered.values() for server in versions.values()]
    for text in texts:
        name, _, version = text.partition("=")
        if version not in offered.get(name, ()):
            raise UserError(
                f"--version {text} is not available for this lock's servers",
                cure=f"choose from: {', '.join(choices)}"
                if choices
                else f"leave it out: {' and '.join(offered)} is had in one version only",
            )
        if asked.setdefault(name, version) != version:
            raise UserError(
                f"--version asks for both {name}={asked[name]} and {text}", cure="choose one"
            )
    return {name: asked[software] for name, software in kinds.items() if software in asked}


def program_of(server: Server) -> Command | None:
    """The program on this host, if it is the version that was chosen."""
    program = server.find()
    if program is None or not server.says:
        return program
    return program if re.search(server.says, said_version(server, program)) else None


def said_version(server: Server, program: Command) -> str:
    """The version that a program on this host reports."""
    environment = server.environment(Here("", (), "", program))
    try:
        done = subprocess.run(
            server.version(program),
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
    """The other version that is there instead; empty if there is none at all."""
    program = server.find()
    return f"{program[0]} says {said_version(server, program)}" if program else ""


def check_versions(kinds: Iterable[str], said: Mapping[str, str]) -> None:
    """Of the servers of a cluster, before any client connects."""
    for kind in kinds:
        server = server_of(kind)
        if server.says and not re.search(server.says, said[kind]):
            raise ClusterError(
                f"{kind} was asked for, but the server that was started says {said[kind]}",
                cure="an image that was built on LOCKCHECK_BASE_IMAGE holds what that offers: "
                f"unset it, and remove the image lockcheck/{server.image}",
            )
