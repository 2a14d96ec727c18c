"""Whether the settings of a run make sense together: checked when its plan is made."""

from __future__ import annotations

import msgspec

from lockcheck.backends import BACKENDS, Backend
from lockcheck.config import IN_MS, RunConfig, Setting, option_of, settings
from lockcheck.durations import duration_words, longest_ms
from lockcheck.errors import UserError
from lockcheck.servers.base import Clock
from lockcheck.storage import STORAGES
from lockcheck.storage.base import Guard
from lockcheck.workloads import WORKLOADS, Workload


def check_settings(config: RunConfig) -> None:
    """Each by itself. Raises a UserError with the cure."""
    if config.requirements and not config.client:
        raise UserError(
            "--requirements is for a client of your own lock", cure="add --client MODULE:NAME"
        )
    if config.image and not config.client:
        raise UserError(
            "--image is for a client of your own lock", cure="add client=, the program in it"
        )
    if config.image and config.runtime == "local":
        raise UserError("--image is for docker, and --runtime is local", cure="leave --runtime out")
    if config.servers and not config.client:
        raise UserError(
            f"--servers is for a client of your own lock, and {config.backend} knows its own",
            cure="add --client, or leave it out; --version names versions",
        )
    for name, setting in settings().items():
        if name != "backend" or not config.client:
            _check_setting(name, setting, getattr(config, name))
    try:
        msgspec.convert(msgspec.to_builtins(config), RunConfig)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).partition(" - at `$.")
        name = where.rstrip("`").partition("[")[0]
        raise UserError(f"{name}={getattr(config, name)!r} is not possible", cure=reason) from error


def check(config: RunConfig, lock: Backend, workload: Workload) -> None:
    """Whether they go together. Raises a UserError with the cure."""
    _check_workload(config, lock, workload)
    if longest_ms(config.think_ms) > config.time_limit_ms:
        raise UserError(
            f"--think {duration_words(config.think_ms)} is longer than the whole run",
            cure=f"below --time-limit {duration_words(config.time_limit_ms)}",
        )
    if not config.out.isprintable():
        raise UserError("--out has characters that cannot be encoded", cure="choose another")
    lock.check_ttl(config.ttl_ms)
    _check_what_it_keeps(config, lock, workload)
    _check_guard(config, lock, workload)
    _check_validity(config, lock, workload)


def check_there(config: RunConfig) -> None:
    """Whether a client of the user's own can be run in containers."""
    of_the_host = (
        *([] if config.image else [("--python", config.python)]),
        ("--requirements", config.requirements),
    )
    for option, given in of_the_host:
        if given:
            raise UserError(
                f"{option} is for this host's Python, and containers have one of their own",
                cure="use --runtime local, or an image that has it: --image",
            )


def _check_setting(name: str, setting: Setting, value: object) -> None:
    if setting.choices is not None and str(value) not in setting.choices:
        known = ", ".join(setting.choices)
        raise UserError(f"unknown {name.replace('_', ' ')} {value!r}", cure=f"choose from: {known}")
    if not isinstance(value, int) or isinstance(value, bool):
        return
    low, high = setting.low, setting.high
    if (low is None or value >= low) and (high is None or value <= high):
        return
    words = duration_words if name.endswith(IN_MS) else str
    limits = [f"at least {words(low)}"] if low is not None else []
    limits += [f"at most {words(high)}"] if high is not None else []
    raise UserError(f"{option_of(name)} {words(value)} is out of range", cure=" and ".join(limits))


def _check_workload(config: RunConfig, backend: Backend, workload: Workload) -> None:
    if workload.needs is not None and not workload.suits(backend.promises):
        able = [name for name, lock in BACKENDS.items() if workload.suits(lock.promises)]
        those = f"; {workload.name} goes with: {', '.join(able)}" if able else ""
        raise UserError(
            f"workload {workload.name} needs {workload.needs.words}, and {backend.name} is "
            f"not one ({backend.promises.words()})",
            cure=f"--workload {backend.workload} is what {backend.name} is for{those}",
        )
    permits = backend.promises.permits
    if permits > 1 and config.clients <= permits:
        raise UserError(
            f"{config.clients} clients can never use up the {permits} permits of "
            f"{backend.name}, so there is nothing to test",
            cure=f"--clients {permits + 1} or more",
        )


def _check_what_it_keeps(config: RunConfig, backend: Backend, workload: Workload) -> None:
    if backend.promises.stores and workload.name == "jobs":
        raise UserError(
            f"the client of {config.backend} keeps registers, and {workload.name} is about jobs",
            cure="--workload register",
        )


def _check_guard(config: RunConfig, backend: Backend, workload: Workload) -> None:
    if config.guard is Guard.NONE:
        return
    if not workload.stores:
        raise UserError(
            f"--guard {config.guard} needs a storage, and workload {config.workload} has none",
            cure=_workloads_that_store(backend),
        )
    if backend.promises.stores:
        raise UserError(
            f"the client of {config.backend} keeps the data itself: no storage of lockcheck's "
            "own is there to guard it",
            cure="leave --guard out; what its own storage refuses, it answers with error 22",
        )
    if not STORAGES[backend.storage].apart:
        raise UserError(
            f"{config.backend} reads and writes in its own transactions: there is no storage "
            "beside it to guard anything",
            cure="leave --guard out",
        )
    if config.guard is Guard.FENCE and not backend.promises.fencing:
        able = [name for name, lock in BACKENDS.items() if lock.promises.fencing]
        raise UserError(
            f"{config.backend} gives no fencing tokens, so the storage has none to check",
            cure=f"--guard cas works with every lock; tokens come with: {', '.join(able)}",
        )


def _check_validity(config: RunConfig, backend: Backend, workload: Workload) -> None:
    if not config.check_validity:
        if config.lease_clock is not Clock.MONOTONIC:
            raise UserError(
                f"--lease-clock {config.lease_clock} has no effect without --check-validity",
                cure="add --check-validity, so that clients check what is left of their lease",
            )
        return
    if not workload.stores:
        raise UserError(
            f"--check-validity needs reads and writes, and workload {config.workload} has none",
            cure=_workloads_that_store(backend),
        )
    if not backend.promises.tells_validity:
        raise UserError(
            f"{config.backend} does not tell its clients how long their hold is valid, so "
            "there is nothing to check",
            cure="leave --check-validity out: it tells them when they have lost it",
        )


def _workloads_that_store(backend: Backend) -> str:
    able = [w.name for w in WORKLOADS.values() if w.stores and w.suits(backend.promises)]
    if not able:
        return f"omit it: {backend.name} admits several holders, so no workload writes under it"
    return f"use --workload {' or '.join(able)}"
