"""A run's configuration: durations, and the command that runs it again."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck import cli
from lockcheck.backends import BACKENDS
from lockcheck.config import RUNTIMES, RunConfig, duration_words, parse_duration_ms
from lockcheck.errors import UserError
from lockcheck.nemesis import nemesis_choices
from lockcheck.storage import Guard
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
    think_ms=st.integers(1, 10**5),
    guard=st.sampled_from(Guard),
    check_validity=st.booleans(),
    stop_on_violation=st.booleans(),
    seed=st.integers(0, 10**9),
    out=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(
        lambda name: not name.startswith("-")
    ),
)


@given(configs)
def test_the_command_runs_the_same_again(config: RunConfig) -> None:
    taken: list[RunConfig] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "_run_and_tell", lambda config, as_json: taken.append(config))
        _, *arguments = shlex.split(config.command())
        cli.main(arguments, standalone_mode=False)
    assert taken == [config]
