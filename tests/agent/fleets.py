"""Clusters without a lock, whose agent lets a test end, start and look at nodes."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from lockcheck.compose.docker.compose_file import RUN_FOLDER
from lockcheck.compose.docker.runtime import DockerRuntime
from lockcheck.compose.local.runtime import LocalRuntime
from lockcheck.compose.runtime import Cluster
from lockcheck.nodes.node import NodeSpec
from lockcheck.servers.kind import Kind
from tests.compose.plans import small_plan
from tests.running import need

# The agent of a run, and beside its own requests those of a test. Runs where the nodes are.
AGENT = '''
import asyncio, base64, signal, socket
from lockcheck.agent import agent
from lockcheck.nodes.waiting import wait_until

class WithHands(agent.Agent):
    def __init__(self, *given):
        super().__init__(*given)
        names = ("end", "start", "leader", "look", "ask", "stop_whole")
        self.requests |= {name: getattr(self, "do_" + name) for name in names}

    async def do_end(self, name):
        await self._fleet.end(name)

    async def do_start(self, body):
        await self._fleet.start(body["name"], data=body["data"])

    async def do_leader(self, _):
        return await self._fleet.leader()

    async def do_look(self, name):
        node = self._nodes[name]
        pids = node.pids()
        names = sorted(open(f"/proc/{pid}/comm").read().strip() for pid in pids)
        status = dict(line.split(":", 1) for pid in pids for line in open(f"/proc/{pid}/status"))
        return {"rights": int(status.get("CapEff", "0"), 16), "pids": pids,
                "names": names, "states": node.thread_states(),
                "down": node.down, "alive": node.alive, "address": node.address}

    async def do_ask(self, body):
        """A server's answer to these bytes, asked from its own network; None if unreachable."""
        node = self._nodes[body["name"]]
        with node.inside_network():
            asked = socket.socket()
        asked.settimeout(1)
        answer = b""
        try:
            asked.connect((node.address, body["port"]))
            asked.sendall(base64.b64decode(body["bytes"]))
            while (more := asked.recv(4096)):
                answer += more
        except TimeoutError:
            pass
        except OSError:
            return None
        finally:
            asked.close()
        return answer.decode()

    async def do_stop_whole(self, name):
        node = self._nodes[name]
        node.signal(signal.SIGSTOP)
        await wait_until(lambda: set(node.thread_states()) <= {"T", "t"}, "all stop", 5)
        states = node.thread_states()
        node.signal(signal.SIGCONT)
        await wait_until(lambda: "T" not in node.thread_states(), "all go on", 5)
        return states

agent.Agent = WithHands
agent.main()
'''


@contextmanager
def fleet(runtime: str, folder: Path, *nodes: NodeSpec) -> Iterator[Fleet]:
    """The nodes are ready."""
    need(runtime, *{node.kind for node in nodes if node.kind} - {Kind("tiny")})
    kind = (
        LocalRuntime((sys.executable, "-P", "-c", AGENT))
        if runtime == "local"
        else DockerRuntime(("python3", "-c", AGENT, "--workdir", RUN_FOLDER))
    )
    with closing(kind.start(small_plan(folder, *nodes), print)) as cluster:
        cluster.agent.ask("await_ready", timeout_s=60)
        yield Fleet(cluster)


class Look(msgspec.Struct):
    rights: int  # the capabilities of one of its processes
    pids: list[int]
    names: list[str]
    states: list[str]
    down: bool
    alive: bool
    address: str


class Fleet:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def end(self, name: str) -> None:
        self.cluster.agent.ask("end", name)

    def start(self, name: str, *, data: bool = True) -> None:
        self.cluster.agent.ask("start", {"name": name, "data": data}, timeout_s=60)

    def leader(self) -> str | None:
        return msgspec.convert(self.cluster.agent.ask("leader"), str | None)

    def look(self, name: str) -> Look:
        return msgspec.convert(self.cluster.agent.ask("look", name), Look)

    def ask(self, name: str, port: int, sent: bytes) -> str | None:
        body = {"name": name, "port": port, "bytes": base64.b64encode(sent).decode()}
        return msgspec.convert(self.cluster.agent.ask("ask", body), str | None)

    def stop_whole(self, name: str) -> list[str]:
        return msgspec.convert(self.cluster.agent.ask("stop_whole", name), list[str])
