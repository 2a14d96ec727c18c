"""The Docker engine: connecting to it, the labels of our objects, and its errors with a cure."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from lockcheck.errors import ClusterError, is_out_of_space

if TYPE_CHECKING:
    import docker

RUN_LABEL = "lockcheck.run"  # on everything a run creates; the value is the run's id
PART_LABEL = "lockcheck.part"  # of a container of a run: "agent" or "node"
NODE_LABEL = "lockcheck.node"  # of a node's container: the node's name
IMAGE_LABEL = "lockcheck.image"  # on our images, and on containers used only to build them

OLDEST_API = (1, 41)  # Docker Engine 20.10
ANSWER_TIMEOUT_S = 60
BUILD_TIMEOUT_S = 900


def connect(timeout_s: int = ANSWER_TIMEOUT_S) -> docker.DockerClient:
    """Connects to the engine that the docker command uses: DOCKER_HOST, or the current context."""
    import docker

    try:
        return docker.from_env(timeout=timeout_s, use_ssh_client=True)
    except docker.errors.DockerException as error:
        raise _no_engine(str(error)) from error


def _no_engine(reason: str) -> ClusterError:
    where = os.environ.get("DOCKER_HOST", "the default socket")
    if "PermissionError" in reason:
        return ClusterError(
            f"this user may not talk to the Docker engine at {where}",
            cure="sudo usermod -aG docker $USER and log in again, or run lockcheck with sudo",
        )
    if "FileNotFoundError" in reason or "refused" in reason.lower():
        return ClusterError(
            f"no Docker engine answers at {where}",
            cure="start it (systemctl start docker), or name another one in DOCKER_HOST",
        )
    return ClusterError(
        f"the Docker engine at {where} cannot be used: {reason}",
        cure="`docker version` should work before lockcheck can use it",
    )


def why_no_engine() -> str:
    """Empty if an engine answers and is new enough."""
    try:
        with closing(connect()) as client, engine_trouble("asking the engine its version"):
            facts = client.version()
    except ClusterError as error:
        return f"{error.message}: {error.cure}"
    api = str(facts["ApiVersion"])
    if tuple(int(part) for part in api.split(".")) >= OLDEST_API:
        return ""
    return (
        f"the Docker engine is {facts['Version']} (API {api}), too old: "
        f"install Docker Engine 20.10 or newer"
    )


@contextmanager
def engine_trouble(doing: str) -> Iterator[None]:
    """Turns errors of the engine, or of the connection to it, into a ClusterError with `doing`."""
    import docker
    import urllib3

    # Errors of `requests` are OSErrors; while an answer is streamed, urllib3's come unchanged.
    lost = docker.errors.DockerException, urllib3.exceptions.HTTPError, OSError
    try:
        yield
    except docker.errors.APIError as error:
        reason = error.explanation or str(error)
        raise ClusterError(f"{doing}: the Docker engine says: {reason}") from error
    except lost as error:
        if isinstance(error, OSError) and is_out_of_space(error):
            raise ClusterError(
                f"{doing}: no space is left for {error.filename or tempfile.gettempdir()}",
                cure="make room, or name another folder for temporary files by TMPDIR",
            ) from error
        raise ClusterError(
            f"{doing}: lost the Docker engine: {error}",
            cure="`docker version` should work; the engine's own log says more",
        ) from error
