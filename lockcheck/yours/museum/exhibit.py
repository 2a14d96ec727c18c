"""An exhibit: a published library, the condition under which its lock fails, and a control run
in which it does not. Both are configurations of runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from lockcheck.backends.program.environment import environment
from lockcheck.checker.finding import Code, Culprit
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.nemesis import NO_FAULT

CLIENTS = Path(__file__).parent / "clients"
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

    @property
    def name(self) -> str:
        return self.library.partition(" ")[0]

    def settings_of(self, *, control: bool) -> dict[str, Any]:
        """All that a run of it, or of its control, does not have by default."""
        control_has = self.control if control else {}
        values = {"backend": self.name, **USUAL, **self.settings, **control_has}
        file, _, called = values["client"].partition(":")
        return values | {"client": f"{shlex.quote(str(CLIENTS / file))}:{called}"}

    def config(self, *, control: bool, seed: int, out: str) -> RunConfig:
        values = self.settings_of(control=control) | {"seed": seed, "out": out}
        return msgspec.convert(values, RunConfig)

    def place(self) -> str:
        """Of the line that is the cause, as it was installed: the file, and the line's number."""
        found = [
            *environment(self.settings["requirements"]).glob(f"lib/*/site-packages/{self.file}")
        ]
        text = found[0].read_text() if found else ""
        before, line, after = text.partition(self.line)
        if not line or self.line in after:
            raise UserError(f"{self.library}: {self.file} does not have this once: {self.line}")
        number = before.count("\n") + 1
        return f"{self.file}:{number}"
