"""The local runtime: plain processes in network namespaces, no Docker, and no root where the
system lets users have namespaces of their own.

The agent is the first process of the run's own PID namespace: when it ends, the kernel ends
everything in there, and with the processes go the networks.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import IO

import msgspec

from lockcheck.compose.link import AgentLink
from lockcheck.compose.local.launch import LaunchSpec
from lockcheck.compose.orders import LAUNCH_FILE
from lockcheck.compose.programs import PROGRAMS
from lockcheck.compose.runtime import Cluster, ClusterPlan, Runtime, Say
from lockcheck.errors import ClusterError
from lockcheck.nodes import Node, NodeSpec, Role

LEAVING_S = 10.0
OWN_NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
AS_USER = ("--user", "--map-root-user")

NO_NAMESPACES = (
    "run it as root, or let users have namespaces: "
    "sysctl -w kernel.unprivileged_userns_clone=1 (Debian), "
    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04 on); "
    "or use --runtime docker"
)


@cache
def isolation() -> tuple[str, ...] | None:
    """The command that gives a process namespaces of its own here; None where none does."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    ways: list[tuple[str, ...]] = [(unshare, *AS_USER, *OWN_NAMESPACES)]
    if os.geteuid() == 0:
        ways.insert(0, (unshare, *OWN_NAMESPACES))
    return next((way for way in ways if _works(way)), None)


def _works(way: tuple[str, ...]) -> bool:
    probe = subprocess.run((*way, "true"), capture_output=True, check=False, timeout=10)
    return probe.returncode == 0


class LocalRuntime(Runtime):
    name = "local"

    def why_not(self) -> str:
        if platform.system() != "Linux":
            return "network namespaces are Linux's: use --runtime docker here"
        if shutil.which("unshare") is None:
            return "there is no `unshare` here: install util-linux, or use --runtime docker"
        if isolation() is None:
            return f"this system gives no namespaces: {NO_NAMESPACES}"
        missing = [p for p in PROGRAMS.values() if p.find() is None]
        return "; ".join(f"no {program.name} here: {program.cure}" for program in missing)

    def start(self, plan: ClusterPlan, say: Say) -> Cluster:  # noqa: ARG002 - it takes no time
        if reason := self.why_not():
            raise ClusterError("the local runtime cannot run here", cure=reason)
        return LocalCluster(plan)


class LocalCluster(Cluster):
    def __init__(self, plan: ClusterPlan) -> None:
        self.versions = {"redis": _version_of("redis")}
        self._nodes = {node.name: node for node in plan.nodes}
        folder = plan.nodes_folder
        folder.mkdir(parents=True, exist_ok=True)
        launch_file = folder / LAUNCH_FILE
        launch_file.write_bytes(
            msgspec.json.encode([_launch_spec(node, folder) for node in plan.nodes])
        )
        with (folder / "agent.log").open("wb") as log:
            self._process = _start_agent(plan, launch_file, log)
        assert self._process.stdin is not None  # noqa: S101 - both were asked for above
        assert self._process.stdout is not None  # noqa: S101
        self.agent = AgentLink(self._process.stdin, self._process.stdout)
        try:
            self._pids = _pids(self.agent.ask("nodes"))
        except BaseException:
            self.close()
            raise

    def enter_command(self, node: str) -> str:
        """From outside: into the run's namespaces first, then into the node's network."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        agent = children.read_text().split()[0]
        user = " --user --preserve-credentials" if os.geteuid() else ""
        into_run = f"nsenter --target {agent} --pid --mount{user}"
        return f"{into_run} nsenter --target {self._pids[node]} --net sh"

    def collect(self) -> None:
        """The nodes wrote into the run's folder all along."""

    def close(self) -> None:
        self.agent.close()
        try:
            self._process.wait(LEAVING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # and with it, by --kill-child, its whole PID namespace
            self._process.wait(LEAVING_S)


def _start_agent(plan: ClusterPlan, launch_file: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    way = isolation()
    if way is None:
        raise ClusterError("this system gives no namespaces", cure=NO_NAMESPACES)
    agent = (sys.executable, "-P", "-m", "lockcheck.compose.agent")  # -P: not this folder's code
    arguments = ("--workdir", str(plan.nodes_folder), "--launch", str(launch_file))
    return subprocess.Popen(
        (*way, *agent, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, "LOCKCHECK_RUN": plan.run_id},
        start_new_session=True,  # Ctrl-C is for the command line, which then ends us in order
    )


def _launch_spec(node: NodeSpec, folder: Path) -> LaunchSpec:
    program = PROGRAMS[node.program]
    command = program.find()
    if command is None:
        raise ClusterError(f"there is no {program.name} here", cure=program.cure)
    arguments = (str(folder / node.name),) if node.role is Role.CLIENT else node.arguments
    return LaunchSpec(node.name, node.role, (*command, *arguments))


def _version_of(program: str) -> str:
    command = PROGRAMS[program].find()
    if command is None:
        return "not here"
    said = subprocess.run((*command, "--version"), capture_output=True, text=True, check=False)
    return said.stdout.strip()


def _pids(nodes: object) -> dict[str, int]:
    return {node.name: node.pid for node in msgspec.convert(nodes, list[Node])}
