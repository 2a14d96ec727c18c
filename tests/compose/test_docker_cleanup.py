"""Which runs count as dead. No engine needed."""

from __future__ import annotations

from typing import cast

import docker
import pytest

from lockcheck.compose.docker.cleanup import AgentState, Trace, is_dead, remove_run

NOW = 1000.0
OLD, NEW = NOW - 61, NOW - 1


@pytest.mark.parametrize(
    ("seen_s", "agent", "dead"),
    [
        (OLD, AgentState.ALIVE, False),
        (NEW, AgentState.LEFT, True),
        (NEW, AgentState.UNCERTAIN, False),  # it is just starting, or its logs are being collected
        (OLD, AgentState.UNCERTAIN, True),
        (NEW, None, False),  # no agent yet
        (OLD, None, True),
    ],
)
def test_a_run_lives_as_long_as_its_agent(
    seen_s: float, agent: AgentState | None, dead: bool
) -> None:
    assert is_dead([Trace("r1", OLD), Trace("r1", seen_s, agent)], NOW) is dead


class _Engine:
    """An engine with one network, which is in use for the first `in_use` attempts to remove it."""

    def __init__(self, in_use: int) -> None:
        self.in_use = in_use
        self.api = self

    def containers(self, **_filters: object) -> list[dict[str, str]]:
        return []

    def volumes(self, **_filters: object) -> dict[str, None]:
        return {"Volumes": None}

    def networks(self, **_filters: object) -> list[dict[str, str]]:
        return [{"Id": "n", "Name": "lockcheck-r1"}]

    def remove_network(self, _network: str) -> None:
        self.in_use -= 1
        if self.in_use >= 0:
            raise docker.errors.APIError("403", explanation="network n has active endpoints")


@pytest.mark.parametrize(
    ("in_use", "patience_s", "left"),
    [(0, 0, False), (3, 60, False), (1_000_000, 0, True)],
)
def test_a_network_that_the_engine_keeps_is_waited_for_and_then_told(
    in_use: int, patience_s: float, left: bool
) -> None:
    engine = cast("docker.DockerClient", _Engine(in_use))
    kept = remove_run(engine, "r1", patience_s)
    assert kept == ("the engine keeps the network lockcheck-r1 until it is restarted" * left)
