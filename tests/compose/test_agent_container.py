"""The agent's pipe, as Docker's attach frames it. No engine needed."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator

import pytest

from lockcheck.compose.docker.agent_container import HEADER, STDERR, AgentInput, AgentOutput

STDOUT = 1


def frame(stream: int, data: bytes) -> bytes:
    return HEADER.pack(stream, len(data)) + data


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, engines = socket.socketpair()
    with ours, engines:
        yield ours, engines


def test_lines_are_whole_whatever_the_frames_are(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, engine = ends
    engine.sendall(frame(STDOUT, b"on") + frame(STDOUT, b"e\ntwo\nthr") + frame(STDOUT, b"ee\n"))
    engine.close()
    output = AgentOutput(ours, io.BytesIO(), None)
    assert [output.readline() for _ in range(5)] == [b"one\n", b"two\n", b"three\n", b"", b""]


def test_what_the_agent_complains_of_goes_to_the_log(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, engine = ends
    engine.sendall(frame(STDERR, b"oops\n") + frame(STDOUT, b"fine\n"))
    log = io.BytesIO()
    assert AgentOutput(ours, log, None).readline() == b"fine\n"
    assert log.getvalue() == b"oops\n"


def test_closing_the_input_leaves_the_output_open(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, engine = ends
    writer = AgentInput(ours)
    writer.write(b"hello\n")
    writer.close()
    assert engine.makefile("rb").read() == b"hello\n"
    engine.sendall(frame(STDOUT, b"bye\n"))
    assert AgentOutput(ours, io.BytesIO(), None).readline() == b"bye\n"
