"""An engine that is somewhere else: driven with nothing but its socket, from a container.

What the command line can see there is the socket. It shares no process, no network and no file with
the nodes, as with Docker Desktop or a remote context.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container
from docker.types import Mount

from lockcheck.compose.docker.compose_binary import find_compose
from lockcheck.compose.docker.engine import connect
from lockcheck.compose.images.recipes import recipe
from tests.running import docker_things_of, need

pytestmark = [pytest.mark.docker, pytest.mark.cluster]

SOCKET = "/var/run/docker.sock"


@pytest.fixture
def engine() -> Iterator[docker.DockerClient]:
    need("docker")
    if not Path(SOCKET).is_socket():
        pytest.skip(f"this engine has no {SOCKET} to hand to a container")
    client = connect()
    yield client
    client.close()


@pytest.fixture
def elsewhere(engine: docker.DockerClient) -> Iterator[Container]:
    """A container with lockcheck, Compose and the socket, and no network."""
    container = engine.containers.create(
        recipe("client").tag,
        ["sleep", "600"],
        network_mode="none",
        mounts=[Mount(SOCKET, SOCKET, type="bind")],
        labels={"lockcheck.test": "remote-engine"},
        init=True,
    )
    try:
        compose = find_compose()
        assert compose is not None
        container.put_archive(
            "/usr/local/bin", _archive("docker-compose", Path(compose.command[0]))
        )
        container.start()
        yield container
    finally:
        container.remove(force=True)


def _archive(name: str, program: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.mode, entry.size = 0o755, program.stat().st_size
        with program.open("rb") as content:
            archive.addfile(entry, content)
    return packed.getvalue()


def test_a_run_needs_nothing_of_the_engine_but_its_socket(elsewhere: Container) -> None:
    command = ["python3", "-m", "lockcheck", "run", "--backend", "redlock", "--nemesis", "pause"]
    command += ["--runtime", "docker", "--seed", "1", "--json"]
    done = elsewhere.exec_run(command, demux=True)
    output, errors = done.output
    assert done.exit_code == 1, errors
    result = json.loads(bytes(output))
    assert result["verdict"] == "violation"
    assert {f["blame"] for f in result["findings"]} == {"holder"}
    assert {f["fault"][:5] for f in result["findings"]} == {"pause"}
    code, report = elsewhere.exec_run(["head", "-c", "200", result["report"]])
    assert code == 0
    assert b"<html" in report
    assert docker_things_of(Path(result["run"]).name) == []
