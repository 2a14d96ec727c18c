"""What programs print and are told, and what connections carry, waits where it comes from."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

import lockcheck
from lockcheck.agent.flow import WINDOW
from lockcheck.errors import UserError
from lockcheck.library.programs import LONGEST_LINE
from tests.library.agents import agent_of
from tests.running import RUNTIMES, need
from tests.waiting import wait_for

LINES, LINE = 1024, "x" * 65_535
PRINTS = f"for n in range({LINES}): print('x' * {len(LINE)})"
COUNTS = "import sys\nfor n, line in enumerate(sys.stdin): print(n, len(line), flush=True)"
MB = 1_000_000


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[lockcheck.Cluster]:
    need(request.param)
    with lockcheck.cluster("redis", clients=2, runtime=request.param) as cluster:
        yield cluster


in_both_runtimes = pytest.mark.parametrize("cluster", RUNTIMES, indirect=True)


def waits_to_be_heard(program: lockcheck.Program) -> bool:
    try:
        program.wait(timeout_s=0)
    except TimeoutError as error:
        return "that it printed wait to be heard" in str(error)
    return False


@in_both_runtimes
def test_a_program_that_is_not_heard_waits_and_nothing_of_it_is_lost(
    cluster: lockcheck.Cluster,
) -> None:
    program = cluster.run("c1", [cluster.python, "-c", PRINTS])
    wait_for(lambda: waits_to_be_heard(program), "it waits")
    with cluster.faults.pause("r1"):
        pass
    assert waits_to_be_heard(program)
    assert [program.hear() for _ in range(LINES)] == [LINE] * LINES
    assert program.wait() == 0
    with pytest.raises(EOFError, match="ended with 0"):
        program.hear()


@in_both_runtimes
def test_a_line_that_never_ends_is_an_error_and_harms_nothing_else(
    cluster: lockcheck.Cluster,
) -> None:
    endless = cluster.run("c1", ["sh", "-c", "tr '\\0' x < /dev/zero"])
    for _ in range(2):
        with pytest.raises(UserError, match=r"on c1 printed a line of more than 1,048,576 bytes"):
            endless.hear(timeout_s=60)
    with cluster.faults.pause("r1"):
        pass
    longest = cluster.run("c2", [cluster.python, "-c", f"print('x' * {LONGEST_LINE})"])
    assert len(longest.hear(timeout_s=60)) == LONGEST_LINE
    with cluster.faults.kill("c1"):
        pass
    assert endless.wait() < 0


@in_both_runtimes
def test_what_is_said_to_a_program_that_does_not_read_is_limited_and_arrives_later(
    cluster: lockcheck.Cluster,
) -> None:
    program = cluster.run("c1", [cluster.python, "-c", COUNTS])
    program.say("up")
    assert program.hear() == "0 3"
    lengths: list[int] = []
    with cluster.faults.pause("c1"):
        with pytest.raises(TimeoutError, match=r"on c1 has read nothing for 0\.1 s, and .* wait"):
            lengths.extend(said_to(program, 10 * WINDOW))
        assert sum(lengths) > WINDOW / 2
    assert [program.hear() for _ in lengths] == [
        f"{number} {length}" for number, length in enumerate(lengths, start=1)
    ]
    with pytest.raises(UserError, match=r"a line of 1,048,577 bytes .* c1 is too long"):
        program.say("y" * LONGEST_LINE)


def said_to(program: lockcheck.Program, most: int) -> Iterator[int]:
    """The lengths of lines, each once it is said."""
    for _ in range(most // 10_000):
        program.say("y" * 9_999, timeout_s=0.1)
        yield 10_000


@pytest.mark.cluster
def test_connections_wait_for_who_reads_them() -> None:
    need("local")
    with lockcheck.cluster("redis", runtime="local") as cluster:
        way = cluster.forward("r1", via="c1")
        with redis.Redis(*way) as other, socket.create_connection(way, timeout=60) as slow:
            assert other.set("k", "v" * MB)
            before = memory_of(os.getpid())
            slow.sendall(b"GET k\r\n" * 200)
            wait_for(lambda: waiting_in(other) > 20 * MB, "the server waits to be read")
            assert all(other.ping() for _ in range(1000))
            assert waiting_in(other) > 20 * MB
            assert memory_of(os.getpid()) - before < 50 * MB
            assert memory_of(agent_of(cluster)) < 100 * MB
            expected = b"$1000000\r\n" + b"v" * MB + b"\r\n"
            with slow.makefile("rb") as answers:
                assert all(answers.read(len(expected)) == expected for _ in range(200))


@pytest.mark.cluster
def test_connections_take_no_more_than_the_server_reads() -> None:
    need("local")
    command = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n" % (MB, b"v" * MB)
    request, sent = command * 64, 0
    with (
        lockcheck.cluster("redis", runtime="local") as cluster,
        socket.create_connection(cluster.forward("r1", via="c1")) as eager,
    ):
        eager.settimeout(1)
        with cluster.faults.pause("r1"), suppress(TimeoutError):
            while sent < len(request):
                sent += eager.send(request[sent : sent + MB])
        assert sent < len(request) / 2
        eager.settimeout(60)
        eager.sendall(request[sent:] + b"QUIT\r\n")
        with eager.makefile("rb") as answers:
            assert answers.read() == b"+OK\r\n" * 65


def waiting_in(server: redis.Redis) -> int:
    return max(int(each["omem"]) for each in server.client_list())


def memory_of(pid: int) -> int:
    [found] = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found) * 1024
