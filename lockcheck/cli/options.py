"""The types of the command line's options, and lockcheck.toml, from which they are read, too."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

import click
from click.shell_completion import CompletionItem

from lockcheck.durations import parse_duration_ms, parse_duration_or_range
from lockcheck.errors import UserError
from lockcheck.files import bounded, opened
from lockcheck.sizes import parse_size
from lockcheck.trust import doubt_about, trusted_users

MUSEUM = "museum:"  # how a lock's name begins that is an exhibit
MATRIX = "matrix"  # the table of a campaign
CLIENTS = "client"  # the tables of the user's own locks: [client.NAME]


def read_config_file(path: Path, commands: Mapping[str, click.Command]) -> dict[str, object]:
    """[matrix] is a command's own file, which only that reads."""
    try:
        tables = read_toml(path)
    except FileNotFoundError:
        return {}
    tables.pop(MATRIX, None)
    clients = _clients(commands, tables.pop(CLIENTS, {}), path)
    read: dict[str, object] = {CLIENTS: clients} if clients else {}
    return read | {name: _by_parameter(commands, name, t, path) for name, t in tables.items()}


def read_toml(path: Path) -> dict[str, Any]:
    """Refuses what another user may have written: it acts with the rights of the current one."""
    try:
        with opened(path, follow=True) as file:
            import tomllib

            _refuse_foreign(os.fstat(file.fileno()), path)
            return tomllib.loads(bounded(file, path).decode())
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError) as error:  # all that TOML can fail by
        reason = error.strerror if isinstance(error, OSError) else error
        if isinstance(error, RecursionError):
            reason = "it is nested too deeply"
        raise UserError(
            f"{path} cannot be read: {reason}", cure="correct it, or start lockcheck elsewhere"
        ) from error


def _clients(
    commands: Mapping[str, click.Command], tables: object, path: Path
) -> dict[str, dict[str, object]]:
    """The user's own locks, each a table [client.NAME] of settings of `run`, by their names."""
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise UserError(f"{path}: [client] is no table of locks", cure="write [client.NAME]")
    for name, table in tables.items():
        if not table.keys() & {"client", "image"}:
            raise UserError(
                f"{path}: [client.{name}] names no client",
                cure='client = "./mylock", as --client; or image = "mylock:dev"',
            )
    return {
        name: _by_parameter(commands, "run", table, path, f"client.{name}")
        for name, table in tables.items()
    }


def _refuse_foreign(about: os.stat_result, path: Path) -> None:
    if doubt := doubt_about(about, trusted_users()):
        raise UserError(
            f"{path} in this folder {doubt}: it is not read",
            cure=f"if you trust it, chown {os.geteuid()} {path} and chmod go-w {path}; "
            "or start lockcheck elsewhere",
        )


def _by_parameter(
    commands: Mapping[str, click.Command],
    command_name: str,
    table: object,
    path: Path,
    called: str = "",
) -> dict[str, object]:
    """A command's settings by click's names; refuses unknown ones."""
    command = commands.get(command_name)
    if command is None or not isinstance(table, dict):
        known = ", ".join([*(f"[{name}]" for name in sorted(commands)), "[client.NAME]"])
        raise UserError(f"{path}: unknown command {command_name!r}", cure=f"tables: {known}")
    parameters = {
        option.removeprefix("--"): parameter
        for parameter in command.get_params(click.Context(command))
        for option in parameter.opts
        if option.startswith("--")
    }
    unknown = sorted(set(table) - set(parameters))
    if unknown:
        raise UserError(
            f"{path}: [{called or command_name}] has no setting {unknown[0]!r}",
            cure=f"choose from: {', '.join(sorted(parameters))}",
        )
    return {
        parameters[name].name or "": _as_typed(parameters[name], value, f"{path}: {name}")
        for name, value in table.items()
    }


def _as_typed(parameter: click.Parameter, value: object, where: str) -> object:
    """As text, as on the command line, so that it is parsed and refused in the same way."""
    is_flag = isinstance(parameter, click.Option) and parameter.is_flag
    if is_flag and isinstance(value, bool):
        return value
    values = value if isinstance(value, list) and parameter.multiple else [value]
    plain = all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in values)
    if is_flag or not plain or not values:
        raise UserError(
            f"{where} = {value!r} is not valid",
            cure="true or false" if is_flag else "write it as on the command line",
        )
    texts = [str(v) for v in values]
    return texts if parameter.multiple else texts[0]


# The registries whose names an option takes, which are imported only when they are needed.
CHOICES = {
    "format": ("lockcheck.formats", "FORMATS"),
    "export": ("lockcheck.formats.exports.export", "EXPORTS"),
    "model": ("lockcheck.checker.linearizability", "MODELS"),
    "condition": ("lockcheck.yours.battery", "CONDITIONS"),
    "exhibit": ("lockcheck.yours.museum.exhibits", "EXHIBITS"),
    "language": ("lockcheck.yours.beginnings", "LANGUAGES"),
    "section": ("lockcheck.cli.listing", "SECTIONS"),
    "lock": ("lockcheck.backends", "BACKENDS"),
    "runtime": ("lockcheck.config", "RUNTIMES"),
}


class LateChoice(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A choice of these, or of those in CHOICES."""

    def __init__(self, name: str, choices: Collection[str] | None = None) -> None:
        self.name = name
        self._choices = choices

    def _among(self) -> Collection[str]:
        if self._choices is not None:
            return self._choices
        module, name = CHOICES[self.name]
        among: Collection[str] = getattr(import_module(module), name)
        return among

    def _known(self) -> list[str]:
        return list(self._among())

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Without what packages add: help has to be quick, and `lockcheck list` has them all."""
        return f"[{'|'.join(getattr(self._among(), 'own', self._among()))}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not self._has(value):
            known = ", ".join(self._known())
            self.fail(f"unknown {self.name} {value!r}; choose from: {known}", param, ctx)
        return value

    def _has(self, value: str) -> bool:
        return value in self._among()

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self._known() if name.startswith(incomplete)]


class LockName(LateChoice):
    """A known lock, one that lockcheck.toml describes, or an exhibit of the museum. What --client
    names is called as one likes, so other names are checked with the configuration."""

    def _described(self) -> Mapping[str, object]:
        context = click.get_current_context(silent=True)
        return (context.find_root().default_map or {}).get(CLIENTS, {}) if context else {}

    def _known(self) -> list[str]:
        return [*self._described(), *super()._known()]

    def _has(self, value: str) -> bool:
        return value in self._described() or super()._has(value)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        known, name = self._known(), value.removeprefix(MUSEUM)
        exhibits = [] if value in known or name == value else LateChoice("exhibit")._known()
        if exhibits and name not in exhibits:
            close = get_close_matches(name, exhibits) or exhibits
            raise UserError(f"unknown exhibit {name!r}", cure=f"choose from: {', '.join(close)}")
        return value


T = TypeVar("T")


class Parsed(click.ParamType, Generic[T]):  # type: ignore[type-arg,unused-ignore]
    """A number that is written with a unit."""

    def __init__(self, name: str, parse: Callable[[str], T]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: str | T, param: click.Parameter | None, ctx: click.Context | None
    ) -> T:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except UserError as error:
            self.fail(f"{error.message}: {error.cure}", param, ctx)


class ClockError(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A duration, of all hosts (with an empty name) or of one."""

    name = "[host=]duration"

    def convert(
        self,
        value: str | tuple[str, int],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        host, _, text = value.rpartition("=")
        return host, 0 if text in NO_TIME else DURATION.convert(text, param, ctx)


NO_TIME = ("0", "0s", "0ms")
DURATION = Parsed("duration", parse_duration_ms)
DURATIONS = Parsed("duration or range", parse_duration_or_range)
SIZE = Parsed("size", parse_size)
