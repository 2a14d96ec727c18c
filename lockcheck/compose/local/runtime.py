"""The local runtime: processes in network namespaces, without root where users may have their own.

The agent is the init process of the run's own PID namespace: nothing outlives it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

import msgspec

from lockcheck.agent.link import AgentLink
from lockcheck.agent.own_folder import OWN_FOLDER
from lockcheck.compose.launching import CLIENT_ON_HOST, node_orders, programs_on_host
from lockcheck.compose.local.fetching import bring_faketime, bring_server, why_no_server
from lockcheck.compose.runtime import Cluster, ClusterPlan, Runtime, Say, allow_open_files
from lockcheck.errors import ClusterError
from lockcheck.servers.faketime import find_library
from lockcheck.servers.kind import Kind

AGENT_COMMAND = (sys.executable, "-P", "-m", "lockcheck.agent.agent")  # -P: not this folder's code
DATA = "data"
LAUNCH_TIMEOUT_S = 60.0
LEAVING_S = 10.0
PROBE_S = 10.0
OWN_NAMESPACES = ("--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
AS_USER = ("--user", "--map-root-user")

NO_NAMESPACES = (
    "run it as root, or let users have namespaces: "
    "sysctl -w kernel.unprivileged_userns_clone=1 (Debian), "
    "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu 24.04 on); "
    "or use --runtime docker"
)


@cache
def isolation() -> tuple[str, ...] | None:
    """The command that starts a process in new namespaces; None if this host allows none."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return None
    ways: list[tuple[str, ...]] = [(unshare, *AS_USER, *OWN_NAMESPACES)]
    if os.geteuid() == 0:
        ways.insert(0, (unshare, *OWN_NAMESPACES))
    return next((way for way in ways if _works(way)), None)


def _works(way: tuple[str, ...]) -> bool:
    try:
        probe = subprocess.run((*way, "true"), capture_output=True, check=False, timeout=PROBE_S)
    except subprocess.TimeoutExpired:  # it may hang on a mount, or in a sandbox
        return False
    return probe.returncode == 0


class LocalRuntime(Runtime):
    name = "local"

    def __init__(self, agent_command: Sequence[str] = AGENT_COMMAND) -> None:
        self._agent_command = tuple(agent_command)

    def why_not(self, servers: Iterable[Kind] = ()) -> str:
        if platform.system() != "Linux":
            return "network namespaces are Linux's: use --runtime docker here"
        if shutil.which("unshare") is None:
            return "`unshare` is missing: install util-linux, or use --runtime docker"
        if isolation() is None:
            return f"this system gives no namespaces: {NO_NAMESPACES}"
        return "; ".join(reason for kind in servers if (reason := why_no_server(kind.server)))

    def start(self, plan: ClusterPlan, say: Say) -> Cluster:
        if reason := self.why_not(plan.kinds):
            raise ClusterError("the local runtime cannot run here", cure=reason)
        allow_open_files(plan)
        for kind in plan.kinds:
            bring_server(kind.server, say)
        if any(node.faketime for node in plan.nodes):
            bring_faketime(say)
        return LocalCluster(plan, self._agent_command)


class LocalCluster(Cluster):
    def __init__(self, plan: ClusterPlan, agent_command: Sequence[str]) -> None:
        folder = plan.nodes_folder
        folder.mkdir(parents=True, exist_ok=True)
        orders = node_orders(
            plan.nodes,
            programs_on_host(plan.kinds),
            folder_of=lambda name: str(OWN_FOLDER / name),
            data_of=lambda name: str(OWN_FOLDER / name / DATA),
            client=() if plan.idle_clients else CLIENT_ON_HOST,
            faketime=str(find_library() or ""),
        )
        self._data = [folder / each.name / DATA for each in orders if each.data]
        with (folder / "agent.log").open("wb") as log:
            self._process = _start_agent(agent_command, plan, log)
        assert self._process.stdin is not None  # noqa: S101 - both were asked for above
        assert self._process.stdout is not None  # noqa: S101
        self.agent = AgentLink(self._process.stdin, self._process.stdout)
        try:
            versions = self.agent.ask("launch", orders, timeout_s=LAUNCH_TIMEOUT_S)
            self.versions = msgspec.convert(versions, dict[str, str])
            self._networks = msgspec.convert(self.agent.ask("networks"), dict[str, str])
        except BaseException:
            self.close()
            raise

    def enter_command(self, node: str) -> str:
        """nsenter, into the run's namespaces first and then into the node's network."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        agent = children.read_text().split()[0]
        user = " --user --preserve-credentials" if os.geteuid() else ""
        into_run = f"nsenter --target {agent} --pid --mount{user}"
        return f"{into_run} nsenter --net={self._networks[node]} sh"

    def collect(self) -> None:
        """Does nothing: the nodes write into the run's folder themselves."""

    def close(self) -> None:
        self.agent.close()
        try:
            self._process.wait(LEAVING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()  # and with it, by --kill-child, its whole PID namespace
            self._process.wait(LEAVING_S)
        self.agent.await_end(LEAVING_S)
        for data in self._data:  # its content was in a mount of the agent's
            with suppress(FileNotFoundError):
                data.rmdir()


def _start_agent(
    command: Sequence[str], plan: ClusterPlan, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    way = isolation()
    if way is None:
        raise ClusterError("this system gives no namespaces", cure=NO_NAMESPACES)
    folder = plan.nodes_folder.resolve()
    arguments = ("--workdir", str(folder), "--networks", str(len(plan.nodes)))
    return subprocess.Popen(
        (*way, *command, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env={**os.environ, "LOCKCHECK_RUN": plan.run_id},
        start_new_session=True,  # Ctrl-C is for the command line, which then ends the agent
    )
