"""Clients in other languages than Python: each is built once, by its language's own tool, into the
cache, and kept there by the hash of what it is built from.

Their libraries are Debian's packages, or crates in the versions of a Cargo.toml.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from lockcheck.cache import cache_root, filled_with, filling, only_one_at_a_time, scratch
from lockcheck.errors import UserError
from lockcheck.signals import end_with

CLIENTS = Path(__file__).parent / "clients"
JARS = Path("/usr/share/java")


class MissingError(UserError):
    """What a client needs is not on this host."""


@dataclass(frozen=True, slots=True)
class Language:
    """`builds` works in a folder with the client's files, and makes `made` there. {folder} is where
    that is kept."""

    tools: Mapping[str, str]  # programs, and the packages that bring them
    runs: tuple[str, ...]
    shared: str = ""  # what its clients share, in CLIENTS
    sources: tuple[str, ...] = ()  # where libraries are
    builds: tuple[str, ...] = ()
    made: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    also: tuple[str, ...] = ()  # files of the client's folder that belong to it
    note: str = ""  # of its cures


LANGUAGES = {
    ".go": Language(
        tools={"go": "golang-go"},
        runs=("{folder}/client",),
        shared="protocol.go",
        sources=("/usr/share/gocode/src",),
        builds=("go", "build", "-o", "client", "."),
        made="client",
        variables=(("GO111MODULE", "off"), ("GOPATH", "/usr/share/gocode")),
    ),
    ".java": Language(
        tools={"javac": "default-jdk-headless", "java": "default-jdk-headless"},
        runs=("java", "-cp", "/usr/share/java/*:{folder}/classes", "Client"),
        builds=("javac", "-cp", "/usr/share/java/*", "-d", "classes", "Client.java"),
        made="classes",
    ),
    ".php": Language(
        tools={"php": "php-cli"},
        runs=("php", "{folder}/files/client.php"),
        shared="protocol.php",
        sources=("/usr/share/php",),
        made="files",
    ),
    ".rs": Language(
        tools={"cargo": "cargo"},
        runs=("{folder}/client",),
        shared="protocol.rs",
        sources=("{cargo}/registry/src/*",),
        builds=("cargo", "build", "--quiet", "--release", "--target-dir", "target"),
        made="target/release/client",
        also=("Cargo.toml",),
        note="; these crates take Rust 1.88 or newer, which rustup brings where Debian's is older",
    ),
}


@dataclass(frozen=True, slots=True)
class Program:
    """A client: its source, in CLIENTS, and the packages of its libraries, with their versions
    where these matter."""

    source: str
    debs: Mapping[str, str]

    @property
    def language(self) -> Language:
        return LANGUAGES[Path(self.source).suffix]

    def command(self) -> tuple[str, ...]:
        """Whether it is built yet or not."""
        folder = str(self._folder())
        return tuple(word.format(folder=folder) for word in self.language.runs)

    def bring(self, say: Callable[[str], None]) -> None:
        """Builds it if it is not there. Raises a UserError with the cure."""
        self.check()
        folder, content = self._folder(), self._content()
        with only_one_at_a_time(f"client-{folder.name}"):
            if filled_with(folder) == content:
                return
            say(f"building {self.source}, once, into {folder}")
            with scratch() as work, filling(folder, content) as kept:
                built = work / "files"
                built.mkdir()
                for name, text in self._files():
                    (built / name).write_text(text)
                if self.language.builds:
                    self._build(built)
                made = kept / Path(self.language.made).name
                (built if made.name == "files" else built / self.language.made).rename(made)

    def check(self) -> None:
        """Raises MissingError if its language or its libraries are not here."""
        tools = {tool: deb for tool, deb in self.language.tools.items() if not shutil.which(tool)}
        debs = {name: version_here(name) for name in self.debs}
        absent = [name for name, here in debs.items() if not here]
        wanted = " ".join(dict.fromkeys([*tools.values(), *absent]))
        if wanted:
            raise MissingError(
                f"{self.source} needs {', '.join([*tools, *absent])}, not on this host",
                cure=f"apt-get install {wanted}{self.language.note}",
            )
        for name, version in self.debs.items():
            if version and debs[name] != version:
                raise MissingError(
                    f"{name} is {debs[name]} here, and {self.source} is about {version}",
                    cure="Debian 12 has that version",
                )

    def place(self, file: str, line: str) -> str:
        """Of a line that is there once: the file, and the line's number. Of a library that comes
        compiled, JAR!CLASS has the method `line`. "" if it is not there."""
        jar, _, name = file.partition("!")
        if name:
            inside = zipfile.Path(JARS / jar, f"{name}.class")
            there = inside.exists() and line.encode() in inside.read_bytes()
            return f"{name.rpartition('/')[2]}, {jar}" if there else ""
        return place_in(chain.from_iterable(map(_found, self.language.sources)), file, line)

    def _folder(self) -> Path:
        return cache_root() / "clients" / hashlib.sha256(self._content().encode()).hexdigest()[:16]

    def _content(self) -> str:
        language = self.language
        return json.dumps([language.builds, language.runs, {**self.debs}, dict(self._files())])

    def _files(self) -> Iterator[tuple[str, str]]:
        """What it is built from, by their names there."""
        source = CLIENTS / self.source
        own = "Client.java" if source.suffix == ".java" else f"client{source.suffix}"
        yield own, source.read_text()
        if shared := self.language.shared:
            yield shared, (CLIENTS / shared).read_text()
        for name in self.language.also:
            yield name, (source.parent / name).read_text()

    def _build(self, folder: Path) -> None:
        done = subprocess.run(
            self.language.builds,
            cwd=folder,
            env={**os.environ, **dict(self.language.variables)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            preexec_fn=partial(end_with, os.getpid()),
        )
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            why = next((line for line in lines if "error" in line), lines[-1] if lines else "")
            raise UserError(
                f"{self.language.builds[0]} did not build {self.source}: {why.strip()}",
                cure=f"{self.language.builds[0]} says why{self.language.note}",
            )


def version_here(package: str) -> str:
    """The upstream version of a Debian package; "" if it is not installed."""
    if not shutil.which("dpkg-query"):
        return ""
    asked = ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}", package]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    status, _, version = answer.strip().partition(" ")
    upstream = re.sub(r"^\d+:|-[^-]*$", "", version).partition("+")[0]
    return upstream if status == "installed" else ""


def place_in(folders: Iterable[Path], file: str, line: str) -> str:
    """In the first of them where the file has this line once; "" if there is none."""
    for path in (folder / file for folder in folders):
        before, found, after = (path.read_text() if path.exists() else "").partition(line)
        if found and line not in after:
            number = before.count("\n") + 1
            return f"{file}:{number}"
    return ""


def _found(pattern: str) -> Iterator[Path]:
    cargo = os.environ.get("CARGO_HOME") or str(Path.home() / ".cargo")
    return Path("/").glob(pattern.format(cargo=cargo).lstrip("/"))
