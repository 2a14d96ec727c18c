"""The Docker runtime: each node is a container, brought up by Compose, and so is the agent."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import msgspec

from lockcheck.compose.docker.agent_container import (
    AGENT_COMMAND,
    AlreadyClaimedError,
    create_agent,
    start_agent,
)
from lockcheck.compose.docker.cleanup import clean_docker, remove_run
from lockcheck.compose.docker.compose_binary import FoundCompose, find_compose, why_no_compose
from lockcheck.compose.docker.compose_file import (
    DATA_FOLDER,
    RUN_FOLDER,
    Names,
    compose_document,
    sysctls_for,
)
from lockcheck.compose.docker.compose_up import taken_subnets, up
from lockcheck.compose.docker.engine import connect, engine_trouble, why_no_engine
from lockcheck.compose.docker.introduction import introduced
from lockcheck.compose.docker.unpacking import unpack
from lockcheck.compose.images.build import bring_images
from lockcheck.compose.images.dependencies import locked_versions
from lockcheck.compose.launching import CLIENT_IMAGE, CLIENT_IN_IMAGE, image_of, node_orders
from lockcheck.compose.runtime import Cluster, ClusterPlan, Runtime, Say, allow_open_files
from lockcheck.errors import ClusterError
from lockcheck.servers.base import Server
from lockcheck.servers.faketime import IN_IMAGE
from lockcheck.servers.kind import Kind

LAUNCH_TIMEOUT_S = 60.0
LEAVING_S = 3.0  # for the agent to heal and exit; its container is removed in any case


class DockerRuntime(Runtime):
    name = "docker"

    def __init__(self, agent_command: Sequence[str] = AGENT_COMMAND) -> None:
        self._agent_command = tuple(agent_command)

    def why_not(self, servers: Iterable[Kind] = ()) -> str:  # noqa: ARG002 - images have them all
        return why_no_engine() or why_no_compose()

    def driver_versions(self, server: Server) -> dict[str, str]:
        locked = locked_versions()
        return {called: locked[distribution.lower()] for called, distribution in server.drivers}

    def start(self, plan: ClusterPlan, say: Say) -> Cluster:
        """Images that are missing are built first, which takes a minute or two, once."""
        compose = find_compose()
        if (reason := self.why_not()) or compose is None:
            raise ClusterError("the docker runtime cannot run here", cure=reason)
        allow_open_files(plan)
        clean_docker(say)
        wanted = {image_of(node) for node in plan.nodes} | {CLIENT_IMAGE}
        images = bring_images(sorted(wanted), say, plan.packages)
        plan.nodes_folder.mkdir(parents=True, exist_ok=True)
        return DockerCluster(plan, images, compose, self._agent_command)


class DockerCluster(Cluster):
    def __init__(
        self,
        plan: ClusterPlan,
        images: dict[str, str],
        compose: FoundCompose,
        agent_command: Sequence[str],
    ) -> None:
        self._plan = plan
        self._names = Names(plan.run_id)
        with ExitStack() as undo:
            self._client = connect()
            undo.callback(self._client.close)
            self._log = undo.enter_context((plan.nodes_folder / "agent.log").open("ab"))
            # On another thread: after Ctrl-C it must be known whether it was created.
            with ThreadPoolExecutor(1) as beside:
                image = images[CLIENT_IMAGE]
                creating = beside.submit(
                    create_agent,
                    self._client,
                    plan.run_id,
                    image,
                    agent_command,
                    with_tools=bool(plan.program_image),
                )
                undo.callback(self._remove_if_ours, creating)
                agent = creating.result()
            self._bring_up(agent, images, compose)
            self._undo = undo.pop_all()  # from here on, close() undoes it

    def _remove_if_ours(self, creating: Future[str]) -> None:
        if isinstance(creating.exception(), AlreadyClaimedError):
            return
        if kept := remove_run(self._client, self._plan.run_id):
            self._log.write(f"{kept}\n".encode())

    def _bring_up(self, agent: str, images: dict[str, str], compose: FoundCompose) -> None:
        with engine_trouble("asking the engine its version"):
            engine = self._client.version()
        kernel, version = str(engine["KernelVersion"]), str(engine["Version"])
        sysctls = sysctls_for(kernel, version)
        document = partial(compose_document, self._plan, images, sysctls=sysctls)
        with ThreadPoolExecutor(1) as beside:
            starting = beside.submit(start_agent, self._client, agent, self._log)
            up(compose.command, self._plan, taken_subnets(self._client), document)
            self.agent = starting.result()
        self.versions = self._launch() | {
            "docker": version,
            "compose": compose.version,
            "kernel": kernel,
        }

    def _launch(self) -> dict[str, str]:
        """Starts the nodes' programs in their containers; returns the servers' versions."""
        orders = node_orders(
            self._plan.nodes,
            {kind: kind.server.image_program for kind in self._plan.kinds},
            folder_of=lambda name: f"{RUN_FOLDER}/{name}",
            data_of=lambda _name: DATA_FOLDER,
            client=() if self._plan.idle_clients else CLIENT_IN_IMAGE,
            faketime=IN_IMAGE,
        )
        run_id, beside = self._plan.run_id, bool(self._plan.program_image)
        try:
            placed = introduced(self._client, run_id, orders, beside=beside)
            versions = self.agent.ask("launch", placed, timeout_s=LAUNCH_TIMEOUT_S)
            return msgspec.convert(versions, dict[str, str])
        except ClusterError:
            introduced(
                self._client, run_id, orders, beside=beside
            )  # reports a container that has exited
            raise

    def enter_command(self, node: str) -> str:
        return f"docker exec -it {self._names.container(node)} sh"

    def collect(self) -> None:
        """Copies the nodes' files through the engine, even from containers that have exited."""
        with tempfile.TemporaryFile() as packed:
            with engine_trouble("collecting the nodes' files"):
                chunks, _about = self._client.api.get_archive(self._names.agent, f"{RUN_FOLDER}/.")
                packed.writelines(chunks)
            packed.seek(0)
            unpack(packed, self._plan.nodes_folder)

    def close(self) -> None:
        self.agent.close()
        self.agent.await_end(LEAVING_S)
        self._undo.close()
        self.agent.await_end(LEAVING_S)
