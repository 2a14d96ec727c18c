"""Where a node's processes run: a network of its own and a view of files, made before the first of
them and there until the run is over. The one file that knows what differs between the runtimes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lockcheck.agent.orders import NodeOrders
from lockcheck.agent.own_networks import Network, tell_names
from lockcheck.client.worker import GENERATION
from lockcheck.errors import ClusterError
from lockcheck.nodes.namespaces import (
    MS_NODEV,
    MS_NOSUID,
    die_with_parent,
    enter_network,
    mount,
    network_of,
)
from lockcheck.nodes.node import Node, Role, children_of
from lockcheck.nodes.waiting import wait_until

HOSTS_FILE = "hosts"
INITS = {"docker-init", "tini"}
START_TIMEOUT_S = 10.0
# For servers that refuse root: the first user other than root, which every system has a name for,
# in a namespace that knows no other user.
AS_ORDINARY_USER = ("unshare", "--user", "--map-user=1", "--map-group=1")
# The agent's own rights, which a program that it takes into a container is not to have.
WITHOUT_THE_AGENTS_RIGHTS = ("setpriv", "--bounding-set", "-sys_admin,-sys_ptrace,-net_admin")
# On this host as root, ours need no rights of root's but to read what lies in users' folders, where
# lockcheck may be installed.
WITHOUT_ROOTS_RIGHTS = ("setpriv", "--bounding-set", "-all,+dac_read_search")
# A server is configured by its command, whatever this host has set for servers of its own.
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "LOCKCHECK_RUN")


@dataclass(frozen=True, slots=True)
class Place:
    node: Node
    orders: NodeOrders
    enter: tuple[str, ...] = ()  # the command that takes a program into its container
    root: Path = Path("/")  # the node's files, as the agent sees them
    folder: Path | None = None  # where its program runs, unless that is the container's business

    @property
    def data(self) -> Path:
        return self.root / self.orders.data.removeprefix("/")

    def spawn(
        self, command: Sequence[str], output: IO[bytes] | int, life: int
    ) -> subprocess.Popen[bytes]:
        """The node's own program, which nobody talks to."""
        return self._spawn(
            command,
            environment=self._environment(life),
            streams=(subprocess.DEVNULL, output, subprocess.STDOUT),
            folder=self.folder,
            become=self._become() or WITHOUT_ROOTS_RIGHTS,
        )

    def spawn_program(
        self, command: Sequence[str], environment: Mapping[str, str], errors: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Somebody else's program, which is talked to; in the environment of where it runs."""
        return self._spawn(
            command,
            environment={**self._surroundings(), **environment},
            streams=(subprocess.PIPE, subprocess.PIPE, errors),
            folder=None,
            become=self._become(),
        )

    def _spawn(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        streams: tuple[int, IO[bytes] | int, IO[bytes] | int],
        folder: Path | None,
        become: Sequence[str],
    ) -> subprocess.Popen[bytes]:
        network = self.node.network
        stdin, stdout, stderr = streams

        def in_its_place() -> None:
            enter_network(network)
            die_with_parent()

        try:
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
        except OSError as error:
            raise ClusterError(
                f"{self.node.name} cannot be started: {error}",
                cure=f"its command is {' '.join(command)}",
            ) from error

    def _become(self) -> tuple[str, ...]:
        if self.orders.as_ordinary_user:
            return AS_ORDINARY_USER
        return WITHOUT_THE_AGENTS_RIGHTS if self.enter else ()

    def _environment(self, life: int) -> dict[str, str]:
        passed_on = os.environ.keys() if self.node.role is Role.CLIENT else PASSED_ON
        inherited = {name: os.environ[name] for name in passed_on if name in os.environ}
        return {**inherited, **self.orders.environment, GENERATION: str(life)}

    def _surroundings(self) -> dict[str, str]:
        if not self.enter:
            return dict(os.environ)
        told = (self.root.parent / "environ").read_bytes().decode(errors="surrogateescape")
        return dict(each.split("=", 1) for each in told.split("\0") if "=" in each)

    def empty_data(self) -> None:
        for path in self.data.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def write_files(self) -> None:
        for name, text in self.orders.files.items():
            (self.data / name).write_text(text)


async def make_places(
    orders: Sequence[NodeOrders], networks: Sequence[Network], workdir: Path
) -> list[Place]:
    """In these networks of our own, or in containers that are there for them."""
    for each in orders:
        (workdir / each.name).mkdir(parents=True, exist_ok=True)
    if not networks:
        return [await _in_container(each) for each in orders]
    pairs = list(zip(orders, networks, strict=True))
    tell_names({each.name: network.address for each, network in pairs}, workdir / HOSTS_FILE)
    return [_on_this_host(each, network, workdir / each.name) for each, network in pairs]


def _on_this_host(orders: NodeOrders, network: Network, folder: Path) -> Place:
    if orders.data_mb:
        data = Path(orders.data)
        data.mkdir()
        options = f"size={orders.data_mb}m,mode=0700"
        mount("lockcheck", data, "tmpfs", flags=MS_NOSUID | MS_NODEV, options=options)
    node = Node(orders.spec, *network, data=Path(orders.data) if orders.data_mb else None)
    return Place(node, orders, folder=folder)


async def _in_container(orders: NodeOrders) -> Place:
    """Its first processes only hold it open; a program is taken in from outside."""
    first = orders.container
    keepers = frozenset({first, await _behind_init(first, orders.name)})
    root = Path(f"/proc/{first}/root")
    data = root / orders.data.removeprefix("/") if orders.data_mb else None
    node = Node(orders.spec, orders.address, network_of(first), keepers, data)
    into = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd")
    return Place(node, orders, enter=("nsenter", "--target", str(first), *into, "--"), root=root)


async def _behind_init(first: int, name: str) -> int:
    """What the container runs: its first process may be an init in front of that."""
    try:
        if Path(f"/proc/{first}/comm").read_text().strip() not in INITS:
            return first
        lacking = f"the container of {name} has not started"
        await wait_until(lambda: bool(children_of(first)), lacking, START_TIMEOUT_S)
        return children_of(first)[0]
    except (FileNotFoundError, ProcessLookupError, IndexError) as error:
        raise ClusterError(f"the container of {name} exited right after it was started") from error
