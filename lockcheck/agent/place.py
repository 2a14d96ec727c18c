"""Where a node's processes run: its own network and its view of files, made before its first
process and kept until the end of the run. Only this file knows the difference between the runtimes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lockcheck.agent.entering import Container
from lockcheck.agent.orders import NodeOrders
from lockcheck.agent.own_networks import Network, write_hosts
from lockcheck.client.worker import GENERATION
from lockcheck.errors import ClusterError
from lockcheck.nodes.namespaces import (
    MS_NODEV,
    MS_NOSUID,
    enter_network,
    mount,
    network_of,
)
from lockcheck.nodes.node import Node, Role, children_of, command_line_of
from lockcheck.nodes.waiting import wait_until
from lockcheck.signals import end_with

HOSTS_FILE = "hosts"
INITS = {"docker-init", "tini"}
MAKERS = ("runc", "crun")  # the first process is one of these until it becomes what it is to be
START_TIMEOUT_S = 10.0
# For servers that refuse root: user 1, which has a name on every system, in a user namespace that
# maps no other user.
AS_ORDINARY_USER = ("unshare", "--user", "--map-user=1", "--map-group=1")
# Drops the agent's own rights, which a program in a container must not have.
WITHOUT_THE_AGENTS_RIGHTS = ("setpriv", "--bounding-set", "-sys_admin,-sys_ptrace,-net_admin")
# As root on this host, our programs only need the right to read users' folders, where lockcheck may
# be installed.
WITHOUT_ROOTS_RIGHTS = ("setpriv", "--bounding-set", "-all,+dac_read_search")
# Only these variables: a server is configured by its command, not by this host's settings.
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "LOCKCHECK_RUN")


@dataclass(eq=False, kw_only=True)
class PlacedNode(Node):
    """A node as the agent has it: with its orders, and the way to run programs in it."""

    orders: NodeOrders
    enter: tuple[str, ...] = ()  # the command that runs a program in its container
    root: Path = Path("/")  # the node's root folder, as the agent sees it
    folder: Path | None = None  # where its program runs; None: as the container says
    beside: Container | None = None  # of the user's own image: where users' programs run

    def spawn(
        self, command: Sequence[str], output: IO[bytes] | int, life: int
    ) -> subprocess.Popen[bytes]:
        """Starts the node's own program; stdin is closed."""
        try:
            return self._spawn(
                command,
                environment=self._environment(life),
                streams=(subprocess.DEVNULL, output, subprocess.STDOUT),
                folder=self.folder,
                become=self._become() or WITHOUT_ROOTS_RIGHTS,
            )
        except OSError as error:
            raise ClusterError(
                f"{self.name} cannot be started: {error}",
                cure=f"its command is {' '.join(command)}",
            ) from error

    def spawn_program(
        self, command: Sequence[str], environment: Mapping[str, str], errors: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Starts a user's program, in its node's environment, with pipes for stdin and stdout.
        Raises OSError if that is seen at once; in a container see `has_executed`."""
        if self.beside is not None:
            pipes = (subprocess.PIPE, subprocess.PIPE, errors.fileno())
            return self.beside.spawn(command, pipes, environment)
        return self._spawn(
            command,
            environment={**self._surroundings(), **environment},
            streams=(subprocess.PIPE, subprocess.PIPE, errors),
            folder=None,
            become=self._become(),
        )

    def own_pids(self) -> list[int]:
        """Without users' programs in the container beside."""
        return [pid for pid in self.pids() if not (self.beside and self.beside.has(pid))]

    def _spawn(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        streams: tuple[int, IO[bytes] | int, IO[bytes] | int],
        folder: Path | None,
        become: Sequence[str],
    ) -> subprocess.Popen[bytes]:
        network, agent = self.network, os.getpid()
        stdin, stdout, stderr = streams

        def in_its_place() -> None:
            enter_network(network)
            end_with(agent)

        return subprocess.Popen(
            (*self.enter, *become, *command),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env=environment,
            start_new_session=True,
            preexec_fn=in_its_place,  # noqa: PLW1509 - the agent has one thread
        )

    def has_executed(self, started: subprocess.Popen[bytes], command: Sequence[str]) -> bool:
        """Whether what enters its container has become the user's program, or has failed to."""
        ahead = b"".join(os.fsencode(word) + b"\0" for word in (*self._become(), *command))
        lines = (command_line_of(pid) for pid in children_of(started.pid))
        return started.poll() is not None or any(
            line and not line.endswith(ahead) for line in lines
        )

    def _become(self) -> tuple[str, ...]:
        if self.orders.as_ordinary_user:
            return AS_ORDINARY_USER
        return WITHOUT_THE_AGENTS_RIGHTS if self.enter else ()

    def _environment(self, life: int) -> dict[str, str]:
        passed_on = os.environ.keys() if self.role is Role.CLIENT else PASSED_ON
        inherited = {name: os.environ[name] for name in passed_on if name in os.environ}
        return {**inherited, **self.orders.environment, GENERATION: str(life)}

    def _surroundings(self) -> dict[str, str]:
        if not self.enter:
            return dict(os.environ)
        environment = (self.root.parent / "environ").read_bytes().decode(errors="surrogateescape")
        return dict(each.split("=", 1) for each in environment.split("\0") if "=" in each)

    def empty_data(self) -> None:
        for path in self.data.iterdir() if self.data else ():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def write_files(self) -> None:
        """Into its data folder, if it has one."""
        if self.data is not None:
            for name, text in self.orders.files.items():
                (self.data / name).write_text(text)


async def placed_nodes(
    orders: Sequence[NodeOrders], networks: Sequence[Network], workdir: Path
) -> list[PlacedNode]:
    """In these networks, or, if there are none, in the nodes' containers."""
    for each in orders:
        (workdir / each.name).mkdir(parents=True, exist_ok=True)
    if not networks:
        return [await _in_container(each) for each in orders]
    pairs = list(zip(orders, networks, strict=True))
    write_hosts({each.name: network.address for each, network in pairs}, workdir / HOSTS_FILE)
    return [_on_this_host(each, network, workdir / each.name) for each, network in pairs]


def _on_this_host(orders: NodeOrders, network: Network, folder: Path) -> PlacedNode:
    if orders.data_mb:
        data = Path(orders.data)
        data.mkdir()
        options = f"size={orders.data_mb}m,mode=0700"
        mount("lockcheck", data, "tmpfs", flags=MS_NOSUID | MS_NODEV, options=options)
    return PlacedNode(
        spec=orders.spec,
        address=network.address,
        network=network.handle,
        data=Path(orders.data) if orders.data_mb else None,
        orders=orders,
        folder=folder,
    )


async def _in_container(orders: NodeOrders) -> PlacedNode:
    """The first processes of a container only keep it open."""
    first, beside = orders.container, orders.beside
    root = Path(f"/proc/{first}/root")
    into = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd")
    return PlacedNode(
        spec=orders.spec,
        address=orders.address,
        network=network_of(first),
        keepers=frozenset(await _keepers(orders.name, first, beside)),
        data=root / orders.data.removeprefix("/") if orders.data_mb else None,
        orders=orders,
        enter=("nsenter", "--target", str(first), *into, "--"),
        root=root,
        beside=Container(beside) if beside else None,
    )


async def _keepers(name: str, *firsts: int) -> set[int]:
    """The processes that keep the containers open."""
    found = {first for first in firsts if first}
    return found | {await _behind_init(first, name) for first in found}


async def _behind_init(first: int, name: str) -> int:
    """The process that the container runs: its first process may be an init in front of that."""
    comm = Path(f"/proc/{first}/comm")
    try:
        lacking = f"the container of {name} is still being made"
        await wait_until(lambda: not comm.read_text().startswith(MAKERS), lacking, START_TIMEOUT_S)
        if comm.read_text().strip() not in INITS:
            return first
        lacking = f"the container of {name} has not started"
        await wait_until(lambda: bool(children_of(first)), lacking, START_TIMEOUT_S)
        return children_of(first)[0]
    except (FileNotFoundError, ProcessLookupError, IndexError) as error:
        raise ClusterError(f"the container of {name} exited right after it was started") from error
