"""Bringing what a run's containers hold into the run's folder, by way of the engine alone: it may
be on another machine, and the containers may be dead."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from lockcheck.compose.docker.compose_file import RUN_FOLDER
from lockcheck.compose.docker.engine import engine_trouble
from lockcheck.compose.docker.unpacking import unpack

if TYPE_CHECKING:
    import docker


def collect_volume(client: docker.DockerClient, agent: str, target: Path) -> None:
    """The content of the run's volume, through the agent's container."""
    with tempfile.TemporaryFile() as packed:
        with engine_trouble("collecting the nodes' files"):
            chunks, _about = client.api.get_archive(agent, f"{RUN_FOLDER}/.")
            packed.writelines(chunks)
        packed.seek(0)
        unpack(packed, target)
