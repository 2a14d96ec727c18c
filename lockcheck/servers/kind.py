"""A kind of server as a value: what a node runs, and in which version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lockcheck.errors import UserError
from lockcheck.servers import SERVERS, Server


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """A kind of server by its name, as it is usually found or in a version: `etcd`, `etcd=3.4`."""

    name: str
    version: str = ""

    @classmethod
    def parse(cls, text: str) -> Kind:
        """Raises a UserError if there is no such kind, or not in that version."""
        name, equals, version = text.partition("=")
        if name in SERVERS and (not equals or version in SERVERS[name].versions):
            return cls(name, version)
        known = (cls(name, v) for name, server in SERVERS.items() for v in ("", *server.versions))
        raise UserError(
            f"unknown server {text!r}", cure=f"choose from: {', '.join(map(str, known))}"
        )

    def __str__(self) -> str:
        return f"{self.name}={self.version}" if self.version else self.name

    @property
    def server(self) -> Server:
        """Raises KeyError if there is no such kind."""
        server = SERVERS[self.name]
        return server.versions[self.version] if self.version else server

    @property
    def software(self) -> str:
        """The program that it runs, which kinds can share: a Sentinel is a Redis."""
        return self.server.software


def in_versions(kinds: Iterable[Kind], texts: Iterable[str]) -> dict[Kind, Kind]:
    """Each kind in the version that such a SOFTWARE=VERSION asks for, or else in its own; UserError
    if none has it."""
    kinds = tuple(kinds)
    offered = {kind.software: tuple(SERVERS[kind.software].versions) for kind in kinds}
    asked: dict[str, str] = {}
    for text in texts:
        software, _, version = text.partition("=")
        if version not in offered.get(software, ()):
            raise UserError(
                f"--version {text} is not available for this lock's servers", cure=_cure(offered)
            )
        if asked.setdefault(software, version) != version:
            raise UserError(
                f"--version asks for both {software}={asked[software]} and {text}",
                cure="choose one",
            )
    return {kind: Kind(kind.name, asked.get(kind.software, kind.version)) for kind in kinds}


def _cure(offered: dict[str, tuple[str, ...]]) -> str:
    choices = [str(Kind(software, each)) for software, all_ in offered.items() for each in all_]
    if choices:
        return f"choose from: {', '.join(choices)}"
    comes = "comes" if len(offered) == 1 else "come"
    return f"omit --version: {' and '.join(offered)} {comes} in one version"
