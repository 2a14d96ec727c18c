"""Clients to begin with, by language: each is one file that passes `lockcheck validate`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Beginning:
    file: str
    client: str  # as --client takes it; {path}, {stem} and {folder} are the file's
    builds: str = ""  # the command before that

    def text(self) -> str:
        return (FOLDER / self.file).read_text()

    def next_steps(self, path: Path) -> Iterator[str]:
        given = {"path": path, "stem": path.stem, "folder": path.parent}
        words = self.client.format(**given)
        yield f"{path} is a client that works, on a lock of its own: three places are marked."
        if self.builds:
            yield f"    {self.builds.format(**given)}"
        yield f"    lockcheck validate --client {shlex.quote(words)}"
        yield f"    lockcheck run --client {shlex.quote(words)}"


LANGUAGES = {
    "python": Beginning("mylock.py", "{stem}:MyLock"),
    "bash": Beginning("mylock.sh", "./{path}"),
}
