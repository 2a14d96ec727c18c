"""An exhibit: a published library, the condition under which its lock fails, and a control run
in which it does not. Both are configurations of runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from lockcheck.backends.program.environment import environment
from lockcheck.checker.finding import Code, Culprit
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.nemesis import NO_FAULT
from lockcheck.yours.museum.programs import CLIENTS, LANGUAGES, Program, place_in

USUAL = {"runtime": "local", "nemesis": (NO_FAULT,), "time_limit_ms": 6_000}


class Whose(StrEnum):
    BUG = "a bug of the library"
    LIMIT = "a limit of leases"
    OPTION = "what its options ask for"
    WARNED = "what its documentation warns of"
    GAP = "a gap: its holder does not learn of the loss"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """`settings` and `control` are fields of `RunConfig`; a control has the same settings, but for
    those that it names."""

    library: str  # with its version
    shows: str
    settings: Mapping[str, Any]
    control: Mapping[str, Any]
    controls: str  # what is different in the control run, in words
    findings: tuple[Code, ...]
    whose: Whose
    file: str  # of the library
    line: str  # in that file, once
    why: str
    blame: Culprit = Culprit.SERVICE  # of those findings, beside holders that outlive their lease
    word: str = ""  # its maintainers', where they say something about it
    debs: Mapping[str, str] = field(default_factory=dict)  # as a Program has them

    @property
    def name(self) -> str:
        return self.library.partition(" ")[0]

    def settings_of(self, *, control: bool) -> dict[str, Any]:
        """All that a run of it, or of its control, does not have by default."""
        values = {"backend": self.name, **USUAL, **self._values(control=control)}
        source, called = self._client(control=control)
        program = self.program(control=control)
        if program:
            return values | {"client": shlex.join([*program.command(), called])}
        return values | {"client": f"{shlex.quote(str(CLIENTS / source))}:{called}"}

    def config(self, *, control: bool, seed: int, out: str) -> RunConfig:
        values = self.settings_of(control=control) | {"seed": seed, "out": out}
        return msgspec.convert(values, RunConfig)

    def program(self, *, control: bool) -> Program | None:
        """None: its client is in Python."""
        source, _ = self._client(control=control)
        return Program(source, self.debs) if Path(source).suffix in LANGUAGES else None

    def check(self) -> None:
        """Raises MissingError if a client of it cannot be built here."""
        for program in self._programs():
            program.check()

    def bring(self, say: Callable[[str], None]) -> None:
        """Builds its clients that are programs, where they are not there yet; a run installs what
        one in Python requires. Raises a UserError with the cure."""
        for program in self._programs():
            program.bring(say)

    def _programs(self) -> Iterator[Program]:
        return filter(None, (self.program(control=control) for control in (False, True)))

    def place(self) -> str:
        """Of the line that is the cause, as it was installed: the file, and the line's number."""
        if program := self.program(control=False):
            found = program.place(self.file, self.line)
        else:
            packages = environment(self.settings["requirements"]).glob("lib/*/site-packages")
            found = place_in(packages, self.file, self.line)
        if not found:
            raise UserError(f"{self.library}: {self.file} does not have this once: {self.line}")
        return found

    def _values(self, *, control: bool) -> Mapping[str, Any]:
        return {**self.settings, **(self.control if control else {})}

    def _client(self, *, control: bool) -> tuple[str, str]:
        """Its source, and what in it is called."""
        source, _, called = self._values(control=control)["client"].partition(":")
        return source, called
