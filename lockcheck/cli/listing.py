"""Prints locks, servers, faults, checks and the rest, for `lockcheck list`."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import click

from lockcheck.backends import BACKENDS, Backend
from lockcheck.checker import CHECKS, Check
from lockcheck.checker.linearizability import MODELS
from lockcheck.formats import FORMATS
from lockcheck.formats.exports.export import EXPORTS
from lockcheck.nemesis import ALL, FAULTS, NO_FAULT, FaultKind, Plan, Step
from lockcheck.nemesis.drawing import variants
from lockcheck.nemesis.parameters import GENERAL, WHEN
from lockcheck.nemesis.triggers import Trigger
from lockcheck.nodes.node import in_words
from lockcheck.servers import SERVERS, Server
from lockcheck.workloads import WORKLOADS

WIDTH = 100
NAMES = 16
INDENT = " " * 6
NEEDS_NOTHING = "needs: nothing special"
USUAL_PLAN = Plan(
    backend="", ttl_ms=1000, time_limit_ms=15_000, clients=5, servers=3, stores=True, writes=True
)

Row = tuple[str, tuple[str, ...]]  # a name, what it is, and further lines


@dataclass(frozen=True, slots=True)
class ListSection:
    taken_by: str  # the option or command
    rows: Callable[[], Iterable[Row]]


def print_sections(names: Iterable[str]) -> None:
    for name in names or SECTIONS:
        section = SECTIONS[name]
        click.secho(f"{name} ({section.taken_by})", bold=True)
        rows = list(section.rows())
        widest = max([NAMES, *(len(called) for called, _ in rows)])
        for called, (meaning, *more) in rows:
            first = f"  {called:<{widest}} "
            _print_wrapped(first, " " * len(first), meaning)
            for text in more:
                _print_wrapped(INDENT, INDENT, text)


def _print_wrapped(first: str, rest: str, text: str) -> None:
    click.echo(
        textwrap.fill(
            text,
            WIDTH,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def _backends() -> Iterator[Row]:
    for backend in BACKENDS.values():
        fares = "; ".join(f"{each.words()}: {each.verdict}" for each in backend.expected)
        yield backend.name, (backend.summary, _is(backend), *([fares] if fares else []))


def _is(backend: Backend) -> str:
    servers = in_words(backend.servers)
    return f"{servers}; {backend.promises.words()}"


def _servers() -> Iterator[Row]:
    for server in SERVERS.values():
        yield server.name, (server.title + _versions(server),)


def _versions(server: Server) -> str:
    kinds = ", ".join(f"{server.software}={name}" for name in server.versions)
    return f"; versions: {kinds}" if kinds else ""


def _faults() -> Iterator[Row]:
    yield NO_FAULT, ("nothing goes wrong: a control run",)
    yield ALL, ("faults that apply to the lock, drawn by the seed",)
    yield from ((kind.name, tuple(_about(kind))) for kind in FAULTS.values())
    aims = {aim.name: aim.meaning for kind in FAULTS.values() for aim in kind.aims}
    yield "... aims", tuple(f"{name}: {meaning}" for name, meaning in aims.items())
    triggers = (f"{WHEN.name}={trigger}: {trigger.meaning}" for trigger in Trigger)
    yield "... when", ("the default is what hurts most: see each fault", *triggers)
    yield "... all take", tuple(f"{each.words()}: {each.meaning}" for each in GENERAL)


def _about(kind: FaultKind) -> Iterator[str]:
    yield kind.summary
    yield f"aims: {', '.join(aim.words() for aim in kind.aims)}"
    yield from (f"{each.words()}: {each.meaning}" for each in kind.parameters)
    usual: dict[Trigger, list[str]] = {}
    for aim in kind.aims:
        usual.setdefault(kind.when(Step(kind, aim), USUAL_PLAN), []).append(aim.name)
    yield "; ".join(f"{trigger.words}: {', '.join(whom)}" for trigger, whom in usual.items())
    lacking = dict.fromkeys(filter(None, map(kind.lacks, variants(kind))))
    able = "; ".join(f"not here: {each.reason} ({each.cure})" for each in lacking)
    yield f"needs: {kind.needs}; {able or 'this host has it'}" if kind.needs else NEEDS_NOTHING


def _judges(check: Check) -> str:
    return f"{check.meaning} (workload {check.workload})" if check.workload else check.meaning


SECTIONS = {
    "backends": ListSection("--backend", _backends),
    "servers": ListSection("--version", _servers),
    "workloads": ListSection(
        "--workload", lambda: [(w.name, (w.summary,)) for w in WORKLOADS.values()]
    ),
    "faults": ListSection("--nemesis", _faults),
    "checks": ListSection(
        "lockcheck explain CODE", lambda: [(str(c), (_judges(x),)) for c, x in CHECKS.items()]
    ),
    "formats": ListSection(
        "lockcheck check --format", lambda: [(n, (f.meaning,)) for n, f in FORMATS.items()]
    ),
    "models": ListSection(
        "lockcheck check --model", lambda: [(n, (m.meaning,)) for n, m in MODELS.items()]
    ),
    "exports": ListSection(
        "lockcheck export --format", lambda: [(n, (e.meaning,)) for n, e in EXPORTS.items()]
    ),
}
