"""The options of `lockcheck run`, made from the fields of a run's configuration."""

from __future__ import annotations

import os
import secrets
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lockcheck.cli.options import CLIENTS, DURATION, DURATIONS, MUSEUM, LateChoice, LockName

if TYPE_CHECKING:
    from lockcheck.backends.program.messages import DescribeOk
    from lockcheck.config import RunConfig, Setting


class RunCommand(click.Command):
    """Makes its options when they are needed: their registries take time to import."""

    def takes(self, _field: str) -> bool:
        """Whether that field of the configuration is an option of it."""
        return True

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        self.add_options()
        return super().get_params(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuses a second lock: of two the first would be dropped in silence."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        if sum(parameter.name == "backend" for parameter in given) > 1:
            from lockcheck.errors import UserError

            raise UserError(
                "a run has one --backend", cure="lockcheck matrix runs several: see its --help"
            )
        return super().parse_args(ctx, args)

    def add_options(self) -> None:
        """Once."""
        from lockcheck.config import settings

        known = {parameter.name for parameter in self.params}
        missing = {
            name: setting
            for name, setting in settings().items()
            if self.takes(name) and _parameter(name) not in known
        }
        if missing:
            options = (_option(name, setting) for name, setting in missing.items())
            self.params = [*options, *self.params]


def _parameter(field: str) -> str:
    """click's name for a field, from which it derives the variable LOCKCHECK_RUN_..."""
    from lockcheck.config import option_of

    return option_of(field).removeprefix("--").replace("-", "_")


def _option(field: str, setting: Setting) -> click.Option:
    import msgspec

    from lockcheck.config import IN_MS, RunConfig, option_of
    from lockcheck.durations import duration_words

    name = option_of(field)
    [known] = [each for each in msgspec.structs.fields(RunConfig) if each.name == field]
    default: Any = None if known.default in (msgspec.NODEFAULT, "") else known.default
    details: dict[str, Any] = {"help": setting.help, "default": default}
    if isinstance(default, bool):
        names = name if not setting.repeated else f"{name}/{name.replace('--', '--no-', 1)}"
        return click.Option([names], is_flag=True, show_default=default, **details)
    if setting.choices is not None:
        choice = LockName if field == "backend" else LateChoice
        details |= {
            "type": choice(field.replace("_", " "), setting.choices),
            "default": default and str(default),
        }
    elif field.endswith(IN_MS):
        of_time = DURATIONS if setting.range else DURATION
        details |= {"type": of_time, "default": duration_words(default)}
    elif setting.folder:
        details["type"] = click.Path(file_okay=False)
    elif setting.low is not None:
        details["type"] = int  # its range is checked with the configuration, wherever it came from
    if isinstance(default, tuple):
        details["multiple"] = True
    if setting.metavar:
        details["metavar"] = setting.metavar
    return click.Option([name], show_default=default is not None, **details)


def out_of_runs() -> Path:
    """The folder of all runs, as `lockcheck run` is configured: `check latest` looks there."""
    asked = click.get_current_context().find_root().default_map or {}
    return Path(os.environ.get("LOCKCHECK_RUN_OUT") or asked.get("run", {}).get("out", "results"))


def stored_config(run: str, out: Path) -> RunConfig:
    from lockcheck.check.recheck import run_folder
    from lockcheck.errors import UserError

    store = run_folder(run, out)
    if store is None:
        raise UserError(
            f"{run} is not the folder of a run", cure="name the folder of a run, or `latest`"
        )
    return store.config()


def config_from(
    context: click.Context, given: dict[str, Any], stored: RunConfig | None
) -> RunConfig:
    """From options, variables, then lockcheck.toml; or `stored`, which only options override."""
    import msgspec

    from lockcheck.config import RunConfig, settings
    from lockcheck.errors import UserError

    described = _of_a_described_lock(context, given["backend"])
    given = given | described
    values = {name: given[asked] for name in settings() if (asked := _parameter(name)) in given}
    for name in ("workload", "client", "image", "servers", "python"):
        values[name] = values.get(name) or ""
    if stored is not None:
        typed = {name: value for name, value in values.items() if _is_typed(context, name)}
        again = msgspec.to_builtins(stored)
        if stored.workload == stored.lock.workload:
            again["workload"] = ""  # with another lock: the usual one of that
        return msgspec.convert(again | typed, RunConfig)
    if values["client"] or values["image"]:
        has_its_ttl = "ttl" in described or is_set(context, "ttl_ms")
        values |= _of_a_client(values, its_ttl=not has_its_ttl)
    if values["backend"] is None:
        raise UserError(
            "Missing option '--backend'", cure="see lockcheck list; or --client, for your own lock"
        )
    if values.get("seed") is None:
        values["seed"] = secrets.randbelow(1_000_000)
    values["spelled_out"] = _configured(context)
    return msgspec.convert(values, RunConfig)


def _of_a_described_lock(context: click.Context, name: str | None) -> dict[str, Any]:
    """What [client.NAME] in lockcheck.toml says, or an exhibit, and no option overrides."""
    described = (context.find_root().default_map or {}).get(CLIENTS, {}).get(name, {})
    called = {}
    if not described and name and name.startswith(MUSEUM):
        from lockcheck.cli.gate import note
        from lockcheck.yours.museum.exhibits import EXHIBITS

        exhibit = EXHIBITS[name.removeprefix(MUSEUM)]
        exhibit.bring(note)
        settings = exhibit.settings_of(control=False)
        described = {_parameter(field): value for field, value in settings.items()}
        called = {"backend": described.pop("backend")}
    parameters = {parameter.name: parameter for parameter in context.command.params}
    return called | {
        each: parameters[each].type_cast_value(context, value)
        for each, value in described.items()
        if each in parameters and not _is_typed(context, each, or_set=True)
    }


def _of_a_client(values: dict[str, Any], *, its_ttl: bool) -> dict[str, Any]:
    """What is not given, and its program says of itself."""
    from lockcheck.backends.program import ClientProgram
    from lockcheck.backends.program.describing import description_of
    from lockcheck.backends.program.environment import bring_environment
    from lockcheck.backends.program.words import command_of, name_of
    from lockcheck.cli.gate import note

    folder, python, requirements = str(Path.cwd()), values["python"], values["requirements"]
    client = values["client"]
    if values["image"]:
        client, message = of_an_image(values["image"], client, python)
    else:
        command = command_of(client, python, requirements)
        if requirements:
            bring_environment(requirements, python, note)
        message = description_of(ClientProgram(command=command, folder=folder))
    its_own = {"ttl_ms": message.ttl_ms} if its_ttl and message.ttl_ms else {}
    return its_own | {
        "client": client,
        "client_folder": folder,
        "client_version": message.version,
        "backend": values["backend"] or message.name or name_of(client),
        "servers": values["servers"] or message.servers,
        "promises": values["promises"] or message.promises,
    }


def of_an_image(image: str, client: str, python: str) -> tuple[str, DescribeOk]:
    """The client in it, by default its own command, and what that says of itself. One in Python is
    not asked: its helper is not in the image."""
    from lockcheck.backends.program.messages import DescribeOk
    from lockcheck.backends.program.words import command_there, is_python
    from lockcheck.compose.docker.user_image import command_of_image, description_in

    client = client or shlex.join(command_of_image(image))
    if is_python(client):
        return client, DescribeOk(in_reply_to=0)
    return client, description_in(image, command_there(client, python=python))


def _is_typed(context: click.Context, name: str, *, or_set: bool = False) -> bool:
    """On the command line; or in a variable."""
    return _came_by(context, name, "COMMANDLINE", *(("ENVIRONMENT",) if or_set else ()))


def is_set(context: click.Context, name: str) -> bool:
    """Anywhere: it is not the default."""
    return _came_by(context, name, "COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP")


def _came_by(context: click.Context, name: str, *ways: str) -> bool:
    source = context.get_parameter_source(_parameter(name))
    return source is not None and source.name in ways


def _configured(context: click.Context) -> tuple[str, ...]:
    """The fields that lockcheck.toml or a variable sets, even where an option overrides them."""
    from lockcheck.config import settings

    in_file, prefix = context.default_map or {}, context.auto_envvar_prefix
    return tuple(
        name
        for name in settings()
        if (asked := _parameter(name)) in in_file or f"{prefix}_{asked.upper()}" in os.environ
    )
