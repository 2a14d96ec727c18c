"""A node is all that runs in its network: seen, stopped and found ended whole."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockcheck.nodes.namespaces import network_of
from lockcheck.nodes.node import Node, NodeSpec, Role, has_ended, pids_of
from tests.processes import node_of, started
from tests.waiting import wait_for

FORKS = """
import os, sys, threading
if os.fork() == 0:
    threading.Thread(target=threading.Event().wait).start()
threading.Event().wait()
"""
# The first thread ends when it is asked to, and the process goes on.
LEADERLESS = """
import ctypes, threading, time
threading.Thread(target=lambda: time.sleep(600)).start()
input()
ctypes.CDLL(None).syscall(60 if __import__("platform").machine() == "x86_64" else 93, 0)
"""


@pytest.fixture
def forking() -> Iterator[subprocess.Popen[bytes]]:
    process = started(FORKS)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_what_it_forks_is_part_of_it(forking: subprocess.Popen[bytes]) -> None:
    node = node_of(forking)
    wait_for(lambda: len(node.pids()) == 2, "it has forked")
    assert forking.pid in node.pids()
    wait_for(lambda: len(node.thread_states()) == 3, "all threads are there")
    node.signal(signal.SIGSTOP)
    wait_for(lambda: node.thread_states() == ["T"] * 3, "all of it is stopped")
    node.signal(signal.SIGKILL)
    wait_for(lambda: not node.alive, "all of it has ended")
    assert forking.poll() is None or forking.returncode == -signal.SIGKILL
    assert node.thread_states() == []


def test_those_that_hold_it_open_are_not_part_of_it(forking: subprocess.Popen[bytes]) -> None:
    node = node_of(forking, "n1", forking.pid)
    [worker] = wait_for(node.pids, "it has forked")
    assert worker != forking.pid


def test_two_networks_are_two_nodes(forking: subprocess.Popen[bytes]) -> None:
    other = started("import threading; threading.Event().wait()")
    try:
        nodes = [node_of(forking, "n1"), node_of(other, "n2")]
        wait_for(lambda: len(nodes[0].pids()) == 2, "it has forked")
        found = pids_of(nodes)
        assert found["n2"] == [other.pid]
        assert not set(found["n1"]) & set(found["n2"])
    finally:
        other.kill()
        other.wait()


def test_a_process_whose_first_thread_has_ended_has_not_ended() -> None:
    process = started(LEADERLESS)
    try:
        node = node_of(process)
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
        network = Path(f"/proc/{process.pid}/ns/net")
        wait_for(lambda: not network.exists(), "its first thread ends")
        assert node.pids() == [process.pid]
        assert not has_ended(process.pid)
        assert len(node.thread_states()) == 1
        node.signal(signal.SIGKILL)
        wait_for(lambda: not node.alive, "it has ended")
        assert has_ended(process.pid)
    finally:
        process.kill()
        process.wait()


def test_nothing_runs_where_nothing_is_left() -> None:
    process = started("pass")
    handle = None
    try:
        process.wait()
    finally:
        handle = network_of("self")
    assert has_ended(process.pid)
    node = Node(NodeSpec("n1", Role.CLIENT), "192.0.2.1", handle)
    assert os.getpid() not in node.pids()  # the looking process is in no node
