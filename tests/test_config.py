"""A run's configuration: durations, and the command that runs it again."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.backends import BACKENDS
from lockcheck.backends.base import Promises
from lockcheck.cli import commands as cli
from lockcheck.config import RUNTIMES, RunConfig, read_config, settings
from lockcheck.durations import (
    Duration,
    DurationRange,
    duration_words,
    parse_duration_ms,
    parse_duration_or_range,
)
from lockcheck.errors import UserError
from lockcheck.nemesis import nemesis_choices
from lockcheck.run.resolve import planned
from lockcheck.servers.base import Clock
from lockcheck.storage.base import Guard
from lockcheck.workloads import WORKLOADS


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("1s", 1000), ("1.5s", 1500), ("2", 2000), ("2m", 120_000), ("1h", 3_600_000)],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "0", "0s", "-1s", "1 fortnight", "1e3s", "s", "0.0001ms"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UserError):
        parse_duration_ms(text)


@given(st.integers(1, 10**8))
def test_durations_are_written_as_they_are_read(ms: int) -> None:
    assert parse_duration_ms(duration_words(ms)) == ms


@pytest.mark.parametrize(
    ("text", "read", "canonical"),
    [
        ("50ms..300ms", DurationRange(50, 300), "50ms..300ms"),
        ("0.5..8", DurationRange(500, 8000), "500ms..8s"),
        (" 1s .. 2m ", DurationRange(1000, 120_000), "1s..120s"),
        ("1s..1000ms", 1000, "1s"),
        ("10ms", 10, "10ms"),
    ],
)
def test_ranges_of_durations(text: str, read: Duration, canonical: str) -> None:
    assert parse_duration_or_range(text) == read
    assert duration_words(read) == canonical
    assert parse_duration_or_range(canonical) == read


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("3s..1s", "'3s..1s' begins with the longer duration"),
        ("0s..1s", "'0s' is too short"),
        ("..1s", "'' is not a duration"),
        ("1s..", "'' is not a duration"),
        ("1s...3s", "'.3s' is not a duration"),
        ("1s..2s..3s", "'2s..3s' is not a duration"),
    ],
)
def test_what_is_no_range_of_durations(text: str, why: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_duration_or_range(text)
    assert refused.value.message == why


@given(st.integers(1, 10**5), st.integers(0, 10**5), st.randoms())
def test_what_is_drawn_is_in_the_range(low: int, more: int, choices: Random) -> None:
    assert low <= DurationRange(low, low + more).drawn(choices) <= low + more


def test_a_stored_range_that_is_none_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="no shorter"):
        msgspec.json.decode(b'{"low_ms": 3, "high_ms": 1}', type=DurationRange)


def test_work_is_give_or_take_a_half_or_as_the_range_says() -> None:
    usual = RunConfig(backend="redis", seed=1, think_ms=10)
    assert usual.work_ms == (5, 15)
    drawn = RunConfig(backend="redis", seed=1, think_ms=DurationRange(50, 300))
    assert drawn.work_ms == (50, 300)
    assert "--think 50ms..300ms" in drawn.command()


ranges = st.builds(
    lambda low, more: DurationRange(low, low + more), st.integers(1, 10**5), st.integers(1, 10**5)
)
configs = st.builds(
    RunConfig,
    backend=st.sampled_from(list(BACKENDS)),
    workload=st.sampled_from(list(WORKLOADS)),
    nemesis=st.lists(st.sampled_from(nemesis_choices()), min_size=1, max_size=3).map(tuple),
    runtime=st.sampled_from(RUNTIMES),
    clients=st.integers(1, 100),
    keys=st.integers(1, 1000),
    ttl_ms=st.integers(50, 10**6),
    time_limit_ms=st.integers(1000, 10**6),
    think_ms=st.integers(1, 10**5) | ranges,
    guard=st.sampled_from(Guard),
    lease_clock=st.sampled_from(Clock),
    check_validity=st.booleans(),
    stop_on_violation=st.booleans(),
    seed=st.integers(0, 10**9),
    out=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(
        lambda name: not name.startswith(("-", "/"))  # no file that is there
    ),
)


@given(configs)
def test_the_command_runs_the_same_again(config: RunConfig) -> None:
    taken: list[RunConfig] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "run_and_print", lambda config, as_json: taken.append(config))
        _, *arguments = shlex.split(config.command())
        cli.main(arguments, standalone_mode=False)
    assert taken == [config]


@given(config=configs)
def test_what_is_stored_is_read_back(config: RunConfig, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(msgspec.json.encode(config))
    assert read_config(tmp_path / "config.json") == config


def test_programs_and_folders_are_texts_or_paths(tmp_path: Path) -> None:
    given: dict[str, Any] = {"client": tmp_path / "my lock.sh", "out": tmp_path / "out"}
    config = RunConfig(backend="mine", seed=1, **given)
    program = config.program()
    assert program is not None
    assert program.command == (str(given["client"]),)
    assert config.out == str(given["out"])


def test_the_command_names_only_what_differs() -> None:
    config = RunConfig(backend="redis", seed=7, clients=3)
    assert config.command() == "lockcheck run --backend redis --clients 3 --seed 7"


def run_with(arguments: list[str], patch: pytest.MonkeyPatch) -> RunConfig:
    taken: list[RunConfig] = []
    patch.setattr(cli, "run_and_print", lambda config, as_json: taken.append(config))
    cli.main(["run", *arguments], standalone_mode=False, auto_envvar_prefix="LOCKCHECK")
    return taken[0]


def test_what_is_configured_here_is_spelled_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the command would do something else in the very folder in which it was printed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lockcheck.toml").write_text("[run]\nclients = 9\n")
    monkeypatch.setenv("LOCKCHECK_RUN_KEYS", "2")
    config = run_with(["--backend", "redis", "--clients", "5", "--seed", "1"], monkeypatch)
    assert config.command() == "lockcheck run --backend redis --clients 5 --keys 2 --seed 1"
    assert run_with(shlex.split(config.command())[2:], monkeypatch) == config


def test_a_stored_run_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results" / "r1"
    folder.mkdir(parents=True)
    (folder / "history.jsonl").touch()
    stored = RunConfig(backend="redlock", seed=7, keys=3, nemesis=("none",))
    (folder / "config.json").write_bytes(msgspec.json.encode(stored))
    assert run_with(["--again", "r1"], monkeypatch) == stored
    changed = run_with(["--again", "r1", "--clients", "9"], monkeypatch)
    assert changed == msgspec.structs.replace(stored, clients=9)


RW = replace(
    BACKENDS["redis"],
    name="some-rw",
    workload="readers",
    promises=Promises(session=False, fencing=False, shared=True),
)
PERMITS = replace(
    RW,
    name="some-permits",
    workload="permits",
    promises=Promises(session=False, fencing=False, permits=3),
)


@pytest.fixture
def _more_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    for lock in (RW, PERMITS):
        monkeypatch.setitem(BACKENDS, lock.name, lock)


@pytest.mark.usefixtures("_more_locks")
def test_a_lock_is_used_for_what_it_is_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = run_with(["--backend", "some-rw", "--seed", "1"], monkeypatch)
    assert config.workload == "readers"
    assert config.command() == "lockcheck run --backend some-rw --seed 1"
    (tmp_path / "config.json").write_bytes(msgspec.json.encode(config))
    assert b'"readers"' in (tmp_path / "config.json").read_bytes()
    asked = run_with(["--backend", "some-rw", "--workload", "register"], monkeypatch)
    assert (asked.workload, "--workload register" in asked.command()) == ("register", True)


@pytest.mark.usefixtures("_more_locks")
def test_run_again_with_another_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used for what that is for, unless something else was asked for."""
    monkeypatch.chdir(tmp_path)
    for run, workload in (("usual", "register"), ("asked", "mutex")):
        folder = tmp_path / "results" / run
        folder.mkdir(parents=True)
        (folder / "history.jsonl").touch()
        config = RunConfig(backend="redis", workload=workload, seed=1)
        (folder / "config.json").write_bytes(msgspec.json.encode(config))
    other = ["--backend", "some-rw"]
    assert run_with(["--again", "usual", *other], monkeypatch).workload == "readers"
    assert run_with(["--again", "asked", *other], monkeypatch).workload == "mutex"


@pytest.mark.usefixtures("_more_locks")
@pytest.mark.parametrize(
    ("backend", "asked", "words"),
    [
        ("redis", {"workload": "readers"}, ["readers can share", "some-rw", "register"]),
        ("redis", {"workload": "nested"}, ["enter again"]),
        ("redis", {"workload": "permits"}, ["several permits", "some-permits"]),
        ("some-permits", {"workload": "register"}, ["one client holds", "3 permits", "redis"]),
        ("some-permits", {"clients": 3}, ["3 permits", "--clients 4"]),
        ("some-permits", {"guard": Guard.CAS}, ["no workload writes under it"]),
        ("some-rw", {"workload": "mutex", "guard": Guard.CAS}, ["register or readers"]),
    ],
)
def test_what_a_lock_cannot_be_used_for(
    backend: str, asked: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(UserError) as refused:
        planned(RunConfig(backend=backend, seed=1, nemesis=("none",), **asked))
    said = f"{refused.value} {refused.value.cure}"
    assert [word for word in words if word not in said] == []


def test_every_setting_is_an_option_and_every_field_a_setting() -> None:
    assert set(settings()) == {
        name
        for name in RunConfig.__struct_fields__
        if name not in ("spelled_out", "client_folder", "client_version")
    }


@pytest.mark.parametrize(
    ("given", "cure"),
    [
        ({"nemesis": "none"}, "Expected `array`, got `str`"),
        ({"version": "redis=7"}, "Expected `array`, got `str`"),
        ({"nemesis": (5,)}, "Expected `str`, got `int`"),
        ({"clients": "3"}, "Expected `int`, got `str`"),
        ({"ttl_ms": 1.5}, "Expected `int`, got `float`"),
        ({"seed": "x"}, "Expected `int`, got `str`"),
    ],
)
def test_what_is_of_another_type_is_refused(given: dict[str, Any], cure: str) -> None:
    [(name, value)] = given.items()
    with pytest.raises(UserError) as refused:
        planned(RunConfig(**{"backend": "redis", "seed": 1, **given}))
    assert refused.value.message == f"{name}={value!r} is not possible"
    assert refused.value.cure == cure


def test_a_folder_can_be_a_path() -> None:
    there: Any = Path("some") / "where"
    assert planned(RunConfig(backend="redis", seed=1, out=there)).config.out == "some/where"
