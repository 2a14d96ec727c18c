"""Removes what runs leave in the engine: at the end of a run, and later what dead runs left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import TYPE_CHECKING

from lockcheck.compose.docker.engine import PART_LABEL, RUN_LABEL, connect, engine_trouble
from lockcheck.compose.runtime import Say

if TYPE_CHECKING:
    import docker

# The longest time from a run's first object in the engine to a running agent, and from the crash of
# its agent to the end of its command line.
UNCERTAIN_S = 60
REMOVERS = 8
REMOVAL_TIMEOUT_S = 30
NETWORK_IN_USE_S = 5.0
LOOK_S = 0.1
HAS_JUST_ENDED = "is not running"  # in the engine's error for one that ends while it is killed
IN_USE = "active endpoints"  # in the engine's error for a network that still has containers


class AgentState(Enum):
    ALIVE = auto()
    LEFT = auto()  # exited regularly: its command line has closed the pipe, or is gone
    UNCERTAIN = auto()  # not started yet, or crashed: its command line may still run


@dataclass(frozen=True, slots=True)
class Trace:
    """An object of a run in the engine: a container, a network or a volume."""

    run_id: str
    seen_s: float  # when it was created or, for an agent that has exited, when it exited
    agent: AgentState | None = None  # of the agent's container only


def remove_run(
    client: docker.DockerClient, run_id: str, patience_s: float = NETWORK_IN_USE_S
) -> str:
    """Removes everything with the run's label, and waits for removals that are in progress.

    Returns a message if the engine keeps a network: now and then it miscounts a network's members,
    and keeps it until it is restarted, which is not an error."""
    import docker

    filters = {"label": f"{RUN_LABEL}={run_id}"}
    with engine_trouble(f"removing the run {run_id} from the engine"):
        # Repeated: a start that was interrupted may still be creating containers.
        while containers := client.api.containers(all=True, filters=filters):
            with ThreadPoolExecutor(REMOVERS) as pool:
                list(pool.map(lambda each: _remove_container(client, each["Id"]), containers))
        for volume in client.api.volumes(filters=filters)["Volumes"] or ():
            with suppress(docker.errors.NotFound):
                client.api.remove_volume(volume["Name"])
        networks = client.api.networks(filters=filters)
        kept = [n["Name"] for n in networks if not _is_removed(client, n["Id"], patience_s)]
    return f"the engine keeps the network {', '.join(kept)} until it is restarted" if kept else ""


def _is_removed(client: docker.DockerClient, network: str, patience_s: float) -> bool:
    """Tries for `patience_s`: the network may still have containers that were just removed."""
    import docker

    deadline = time.monotonic() + patience_s
    while True:
        try:
            client.api.remove_network(network)
        except docker.errors.NotFound:
            return True
        except docker.errors.APIError as error:
            if IN_USE not in str(error.explanation):
                raise
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_S)
        else:
            return True


def _remove_container(client: docker.DockerClient, container: str) -> None:
    import docker

    try:
        client.api.remove_container(container, force=True, v=True)
    except docker.errors.NotFound:
        return
    except docker.errors.APIError as error:
        if HAS_JUST_ENDED in str(error.explanation):  # it is looked for again
            return
        if error.status_code != 409:  # 409: its removal is already in progress
            raise
        with suppress(docker.errors.NotFound):
            client.api.wait(container, timeout=REMOVAL_TIMEOUT_S, condition="removed")


def leftovers(client: docker.DockerClient) -> tuple[list[str], dict[str, str]]:
    """The ids of dead runs that are not cleaned up; and by id, why the others are left alone."""
    with engine_trouble("looking for what earlier runs have left"):
        traces = list(_traces(client))
        if not traces:
            return [], {}
        now_s = _seconds(client.info()["SystemTime"])  # the engine may be on another machine
    runs: dict[str, list[Trace]] = {}
    for trace in traces:
        runs.setdefault(trace.run_id, []).append(trace)
    dead = sorted(run_id for run_id, traces in runs.items() if is_dead(traces, now_s))
    return dead, {run_id: _why_spared(runs[run_id]) for run_id in sorted({*runs} - {*dead})}


def _why_spared(traces: list[Trace]) -> str:
    if AgentState.ALIVE in {trace.agent for trace in traces}:
        return "it is under way"
    return f"it may be starting, or looking at its end: try again in {UNCERTAIN_S} s"


def is_dead(traces: list[Trace], now_s: float) -> bool:
    """Whether the run of these traces has ended: its agent has exited, or it never started one."""
    agents = {trace.agent for trace in traces}
    if AgentState.ALIVE in agents or AgentState.LEFT in agents:
        return AgentState.ALIVE not in agents
    return now_s - max(trace.seen_s for trace in traces) > UNCERTAIN_S


def _traces(client: docker.DockerClient) -> Iterator[Trace]:
    filters = {"label": RUN_LABEL}
    for container in client.api.containers(all=True, filters=filters):
        run_id = container["Labels"][RUN_LABEL]
        yield Trace(run_id, container["Created"])
        if container["Labels"].get(PART_LABEL) == "agent":
            yield from _agents_trace(client, run_id, container["Id"])
    for network in client.api.networks(filters=filters):
        yield Trace(network["Labels"][RUN_LABEL], _seconds(network["Created"]))
    for volume in client.api.volumes(filters=filters)["Volumes"] or ():
        yield Trace(volume["Labels"][RUN_LABEL], _seconds(volume["CreatedAt"]))


def _agents_trace(client: docker.DockerClient, run_id: str, container: str) -> Iterator[Trace]:
    import docker

    with suppress(docker.errors.NotFound):  # removed meanwhile
        facts = client.api.inspect_container(container)
        state = facts["State"]
        if state["Running"]:
            yield Trace(run_id, _seconds(facts["Created"]), AgentState.ALIVE)
        elif state["Status"] == "exited":
            agent = AgentState.LEFT if state["ExitCode"] == 0 else AgentState.UNCERTAIN
            yield Trace(run_id, _seconds(state["FinishedAt"]), agent)
        else:
            yield Trace(run_id, _seconds(facts["Created"]), AgentState.UNCERTAIN)


def _seconds(engine_time: str) -> float:
    return datetime.fromisoformat(engine_time).timestamp()


def clean_docker(say: Say, say_spared: Say = lambda _: None) -> int:
    """Removes what dead runs have left, and nothing of live ones; returns how many were removed."""
    removed = 0
    with closing(connect()) as client:
        dead, spared = leftovers(client)
        for run_id, reason in spared.items():
            say_spared(f"the run {run_id} is left alone: {reason}")
        for run_id in dead:
            say(f"removing what the run {run_id} has left in Docker")
            if kept := remove_run(client, run_id, patience_s=0):
                say(kept)
            else:
                removed += 1
    return removed
