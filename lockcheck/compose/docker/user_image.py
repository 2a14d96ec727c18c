"""The image of a user's own lock: whether the engine has it, what it runs, and what that says of
itself."""

from __future__ import annotations

import io
import secrets
import socket
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import msgspec

from lockcheck.backends.program.describing import senseless
from lockcheck.backends.program.messages import ANSWERS, DescribeOk, Mistaken, read, written
from lockcheck.compose.docker.agent_container import AgentInput, AgentOutput
from lockcheck.compose.docker.cleanup import remove_run
from lockcheck.compose.docker.engine import PART_LABEL, RUN_LABEL, connect, engine_trouble
from lockcheck.errors import ClusterError, UserError

if TYPE_CHECKING:
    import docker

PATIENCE_S = 15.0
LAST_BYTES = 300
NUMBER = 1


def command_of_image(image: str) -> tuple[str, ...]:
    """Its entrypoint with its arguments. Raises a UserError if the engine has no such image, or
    that has no command."""
    with closing(connect()) as client:
        config = _inspected(client, image)["Config"]
    command = [*(config["Entrypoint"] or ()), *(config["Cmd"] or ())]
    if not command:
        raise UserError(
            f"the image {image} has no command of its own", cure="name the program with --client"
        )
    return tuple(command)


def image_id(image: str) -> str:
    """Which one it is now. Raises a UserError if the engine has no such image."""
    with closing(connect()) as client:
        return str(_inspected(client, image)["Id"])


def description_in(image: str, command: Sequence[str]) -> DescribeOk:
    """What the program says of itself, asked in a container without a network. Raises a UserError
    if it cannot be started, or ends at once."""
    run_id = f"describing-{secrets.token_hex(6)}"
    with closing(connect()) as client:
        _inspected(client, image)
        try:
            return _asked(client, _created(client, image, command, run_id))
        finally:
            remove_run(client, run_id)


def _inspected(client: docker.DockerClient, image: str) -> dict[str, Any]:
    import docker

    try:
        with engine_trouble(f"looking for the image {image}"):
            found: dict[str, Any] = client.api.inspect_image(image)
            return found
    except ClusterError as error:
        if isinstance(error.__cause__, docker.errors.ImageNotFound):
            raise UserError(
                f"the Docker engine has no image {image}",
                cure=f"docker build -t {image} . (or docker pull); lockcheck pulls none",
            ) from error
        raise


def _created(client: docker.DockerClient, image: str, command: Sequence[str], run_id: str) -> str:
    with engine_trouble(f"making a container of {image}"):
        created = client.api.create_container(
            image,
            entrypoint=[command[0]],
            command=list(command[1:]),
            labels={RUN_LABEL: run_id, PART_LABEL: "program"},
            stdin_open=True,
            detach=False,
            host_config=client.api.create_host_config(network_mode="none"),
        )
    return str(created["Id"])


def _asked(client: docker.DockerClient, container: str) -> DescribeOk:
    """An empty description if it does not know the request."""
    errors = io.BytesIO()
    with engine_trouble("attaching to the program"):
        streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        attached = client.api.attach_socket(container, params=streams)
        connection: socket.socket = getattr(attached, "_sock", attached)
        connection.settimeout(PATIENCE_S)
    _start(client, container)
    output = AgentOutput(connection, errors, attached)
    with closing(output):
        try:
            AgentInput(connection).write(written("description", "describe", NUMBER, {}))
            return _answer(output)
        except EOFError as error:
            why = errors.getvalue()[-LAST_BYTES:].decode(errors="replace").strip()
            raise UserError(
                f"the client program ended at once: {why or 'no output'}",
                cure="name another one with --client, as it is called in the image",
            ) from error
        except OSError:  # nothing in time
            return DescribeOk(in_reply_to=NUMBER)


def _start(client: docker.DockerClient, container: str) -> None:
    try:
        with engine_trouble("starting the program"):
            client.api.start(container)
    except ClusterError as error:  # the engine names what there is not
        raise UserError(
            f"the client program cannot be started: {error.message}",
            cure="name one that is in the image with --client",
        ) from error


def _answer(output: AgentOutput) -> DescribeOk:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        line = output.readline()
        if not line:
            raise EOFError
        try:
            message = read(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        if isinstance(message, Mistaken):
            raise senseless(message.why)
        if isinstance(message, ANSWERS):
            return message if isinstance(message, DescribeOk) else DescribeOk(in_reply_to=NUMBER)
    return DescribeOk(in_reply_to=NUMBER)
