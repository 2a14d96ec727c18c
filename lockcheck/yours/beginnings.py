"""Clients to begin with, by language: each is one file that passes `lockcheck validate`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lockcheck.errors import UserError

FOLDER = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Beginning:
    """All commands are for the file's folder; {file} is its name there, {stem} without its end."""

    file: str
    client: str  # as --client takes it
    builds: str = ""  # the command before that

    def text(self) -> str:
        return (FOLDER / self.file).read_text()

    def check_name(self, path: Path) -> None:
        """Raises UserError where the commands could not go by it."""
        suffix = Path(self.file).suffix
        if "{stem}" in self.builds + self.client and path.suffix != suffix:
            raise UserError(f"{path} cannot be built", cure=f"a name that ends with {suffix}")
        if suffix == ".py" and not path.stem.isidentifier():
            raise UserError(f"{path} is no module", cure="a name that Python can import: mylock.py")

    def client_of(self, path: Path) -> str:
        return self.client.format(file=path.name, stem=path.stem)

    def build_of(self, path: Path) -> str:
        return self.builds.format(file=shlex.quote(path.name), stem=shlex.quote(path.stem))

    def next_steps(self, path: Path) -> Iterator[str]:
        client = shlex.quote(self.client_of(path))
        yield f"{path} is a client that works, on a lock of its own: three places are marked."
        if path.parent != Path():
            yield f"    cd {shlex.quote(str(path.parent))}"
        if self.builds:
            yield f"    {self.build_of(path)}"
        yield f"    lockcheck validate --client {client}"
        yield f"    lockcheck run --client {client}"


LANGUAGES = {
    "python": Beginning("mylock.py", "{stem}:MyLock"),
    "bash": Beginning("mylock.sh", "./{file}"),
    "go": Beginning("mylock.go", "./{stem}", "go build -o {stem} {file}"),
    "java": Beginning("MyLock.java", "java MyLock", "javac {file}"),
    "rust": Beginning("mylock.rs", "./{stem}", "rustc --edition 2021 -O -o {stem} {file}"),
    "node": Beginning("mylock.mjs", "./{file}"),
}
