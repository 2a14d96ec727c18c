"""Which runs count as dead. No engine needed."""

from __future__ import annotations

import pytest

from lockcheck.compose.docker.cleanup import Agent, Trace, is_dead

NOW = 1000.0
OLD, NEW = NOW - 61, NOW - 1


@pytest.mark.parametrize(
    ("seen_s", "agent", "dead"),
    [
        (OLD, Agent.ALIVE, False),
        (NEW, Agent.LEFT, True),
        (NEW, Agent.UNCERTAIN, False),  # it is just starting, or its logs are being collected
        (OLD, Agent.UNCERTAIN, True),
        (NEW, None, False),  # no agent yet
        (OLD, None, True),
    ],
)
def test_a_run_lives_as_long_as_its_agent(seen_s: float, agent: Agent | None, dead: bool) -> None:
    assert is_dead([Trace("r1", OLD), Trace("r1", seen_s, agent)], NOW) is dead
