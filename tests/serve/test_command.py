"""`lockcheck serve` as a process: what it prints, where it listens, how it ends."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from lockcheck.serve.server import LOOPBACK, PORT, listening
from tests.running import LOCKCHECK, lockcheck
from tests.serve.made_up import run

USAGE = 2


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and the address that it printed."""
    command = [*LOCKCHECK, "serve", str(folder), *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            matched = re.match(r"(http://\S+/) shows ", line)
            assert matched, line + process.communicate(timeout=60)[1]
            yield process, matched[1]
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    run(tmp_path / "r0")
    with serving(tmp_path, "--port", str(free_port())) as (process, address):
        assert address.startswith(f"http://{LOOPBACK}:")
        with urlopen(address) as answer:  # noqa: S310 - it is ours
            assert b"/files/r0/report.html" in answer.read()
        process.send_signal(number)
        out, errors = process.communicate(timeout=60)
        assert (process.returncode, out, errors) == (0, "", "")


def test_only_this_machine_can_ask(tmp_path: Path) -> None:
    with serving(tmp_path, "--port", str(free_port())) as (_, address):
        port = int(address.strip("/").rpartition(":")[2])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=10)


def test_another_address_has_to_be_asked_for_and_is_noted(tmp_path: Path) -> None:
    run(tmp_path / "r0")
    options = ("--port", str(free_port()), "--host", "127.0.0.2")
    with serving(tmp_path, *options) as (process, address):
        assert address.startswith("http://127.0.0.2:")
        with urlopen(address) as answer:  # noqa: S310 - it is ours
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        assert "not only this machine" in process.communicate(timeout=60)[1]


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        done = lockcheck("serve", str(tmp_path), "--port", str(taken.getsockname()[1]))
    assert done.returncode == USAGE
    assert "is taken" in done.stderr


def test_the_next_port_that_is_free(tmp_path: Path) -> None:
    with listening(tmp_path, LOOPBACK, None) as one, listening(tmp_path, LOOPBACK, None) as other:
        first, second = (server.server_address[1] for server in (one, other))
    assert PORT <= first < second


def test_what_is_not_there(tmp_path: Path) -> None:
    done = lockcheck("serve", cwd=tmp_path)
    assert done.returncode == USAGE
    assert "there is no folder results" in done.stderr
    nowhere = lockcheck("serve", str(tmp_path), "--host", "192.0.2.1")
    assert nowhere.returncode == USAGE
    assert "cannot be listened on" in nowhere.stderr
