"""The run's agent in a container, and the pipe to it by Docker's attach.

The engine closes the agent's input when the attached connection ends for any reason.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from lockcheck.agent.link import AgentLink
from lockcheck.backends.program import TOOLS_THERE
from lockcheck.compose.docker.compose_file import RUN_FOLDER, Names
from lockcheck.compose.docker.engine import PART_LABEL, RUN_LABEL, engine_trouble
from lockcheck.errors import ClusterError

if TYPE_CHECKING:
    import docker

AGENT_COMMAND = ("python3", "-m", "lockcheck.agent.agent", "--workdir", RUN_FOLDER)
# To stop and kill processes of other containers, and write to their memory; to enter their networks
# and file systems; and to start a server as another user, with a folder of its own.
CAPABILITIES = [
    *("KILL", "SYS_PTRACE"),
    *("NET_ADMIN", "SYS_ADMIN", "SYS_CHROOT"),
    *("SETUID", "SETGID", "SETPCAP", "SETFCAP", "CHOWN", "DAC_OVERRIDE"),
]
UNCONFINED = ["seccomp=unconfined", "apparmor=unconfined"]

HEADER = struct.Struct(">BxxxL")  # before each chunk of output: its stream and its size in bytes
STDERR = 2


class AlreadyClaimedError(ClusterError):
    """Another run with this id is in the engine: its containers must not be removed."""


def create_agent(
    client: docker.DockerClient,
    run_id: str,
    image: str,
    command: Sequence[str],
    *,
    with_tools: bool = False,
) -> str:
    """Creates the agent's container, without starting it, and the run's volumes; returns its id.
    The container's name claims the run's id: a second run with the same id fails here. A new volume
    has the files that the image has at its place: so the tools are in theirs."""
    from docker.types import Mount

    names = Names(run_id)
    labels = {RUN_LABEL: run_id}
    api = client.api
    mounts = [Mount(RUN_FOLDER, names.volume, labels=labels)]
    if with_tools:
        mounts.append(Mount(TOOLS_THERE, names.tools, labels=labels))
    host_config = api.create_host_config(
        pid_mode="host",
        network_mode="none",
        cap_drop=["ALL"],
        cap_add=CAPABILITIES,
        read_only=True,
        tmpfs={"/tmp": ""},  # noqa: S108 - inside the container
        security_opt=UNCONFINED,
        mounts=mounts,
    )
    with engine_trouble("creating the run's agent"), _claiming(names):
        created = api.create_container(
            image,
            list(command),
            name=names.agent,
            labels=labels | {PART_LABEL: "agent"},
            environment={"LOCKCHECK_RUN": run_id},
            stdin_open=True,
            detach=False,  # with stdin_open: the input closes when the first attached client ends
            host_config=host_config,
        )
    return str(created["Id"])


@contextmanager
def _claiming(names: Names) -> Iterator[None]:
    import docker

    try:
        yield
    except docker.errors.APIError as error:
        if error.status_code != 409:
            raise
        raise AlreadyClaimedError(
            f"a run {names.run_id} is already in the Docker engine",
            cure=f"wait for its end, or: docker rm -f {names.agent} && lockcheck clean",
        ) from error


def start_agent(client: docker.DockerClient, container: str, log: IO[bytes]) -> AgentLink:
    """Starts the agent and returns the link to it. It is attached first, so no output is missed."""
    with engine_trouble("attaching to the run's agent"):
        streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        attached = client.api.attach_socket(container, params=streams)
        connection: socket.socket = getattr(attached, "_sock", attached)
        connection.settimeout(None)  # the agent may be silent for any time
        client.api.start(container)
    return AgentLink(AgentInput(connection), AgentOutput(connection, log, attached))


class AgentInput:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def write(self, data: bytes, /) -> None:
        self._connection.sendall(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        """Closes this direction only: the agent's last output still arrives."""
        self._connection.shutdown(socket.SHUT_WR)


class AgentOutput:
    """The agent's standard output, line by line; its standard error goes to the log."""

    def __init__(self, connection: socket.socket, log: IO[bytes], attached: object) -> None:
        self._connection = connection
        self._attached = attached  # has the response: deleting that would close the connection
        self._frames = connection.makefile("rb")
        self._log = log
        self._pending = bytearray()

    def readline(self) -> bytes:
        while (end := self._pending.find(b"\n")) < 0 and self._read_frame():
            pass
        length = end + 1 if end >= 0 else len(self._pending)
        line = bytes(self._pending[:length])
        del self._pending[:length]
        return line

    def _read_frame(self) -> bool:
        header = self._frames.read(HEADER.size)
        if len(header) < HEADER.size:
            return False
        stream, size = HEADER.unpack(header)
        data = self._frames.read(size)
        if stream == STDERR:
            self._log.write(data)
            self._log.flush()
        else:
            self._pending += data
        return True

    def close(self) -> None:
        self._frames.close()
        if response := getattr(self._attached, "_response", None):
            response.close()
        self._connection.close()
