"""The base of our images: suites of Debian, from a registry, or else made by debootstrap from this
host's Debian mirror and imported: that takes half a minute, once."""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from lockcheck.cache import scratch
from lockcheck.compose.docker.engine import BUILD_TIMEOUT_S, IMAGE_LABEL, connect, engine_trouble
from lockcheck.compose.images import debootstrap
from lockcheck.compose.images.keeping import is_there
from lockcheck.compose.images.recipes import USUAL_SUITE
from lockcheck.compose.runtime import Say
from lockcheck.errors import ClusterError

if TYPE_CHECKING:
    import docker

NO_BASE = "no base image"  # the beginning of the message
OWN_REPOSITORY = "lockcheck/base"
NAMED_BY = "LOCKCHECK_BASE_IMAGE"  # the base of the usual suite
REGISTRY_TIMEOUT_S = 10


def base_image(client: docker.DockerClient, suite: str, say: Say) -> str:
    """The name of a base image in the engine, which is pulled or made if there is none yet."""
    named, own = _wanted(suite), f"{OWN_REPOSITORY}:{suite}"
    for name in (named, own):
        if is_there(client, name):
            return name
    if _pull(named, suite, say):
        return named
    _make_with_debootstrap(client, suite, say)
    return own


def _wanted(suite: str) -> str:
    named = os.environ.get(NAMED_BY) if suite == USUAL_SUITE else None
    return named or f"debian:{suite}-slim"


def _pull(image: str, suite: str, say: Say) -> bool:
    """False if no registry offers it: asked with a short timeout before the long download."""
    try:
        with closing(connect(REGISTRY_TIMEOUT_S)) as quick, engine_trouble("asking the registry"):
            quick.images.get_registry_data(image)
        say(f"pulling {image}")
        with closing(connect(BUILD_TIMEOUT_S)) as patient, engine_trouble(f"pulling {image}"):
            patient.images.pull(image)
    except ClusterError:
        say(f"no registry offers {image}: making a Debian {suite} base image with debootstrap")
        return False
    return True


def _make_with_debootstrap(client: docker.DockerClient, suite: str, say: Say) -> None:
    _check_debootstrap_can_run(suite)
    with engine_trouble("asking the engine its architecture"):
        architecture = str(client.version()["Arch"])
    # In the cache: the system's temporary folder is often mounted nodev.
    with scratch() as folder, scratch() as work:
        tree = folder / "tree"
        tree.mkdir()
        tree.chmod(0o755)  # it becomes the image's root folder
        debootstrap.make_tree(tree, suite, architecture, work, say)
        say("importing the base image into the engine")
        _import(tree, suite)


def _check_debootstrap_can_run(suite: str) -> None:
    reason, cure = debootstrap.what_prevents_it()
    if reason:
        other = f"; or name an image in {NAMED_BY}" if suite == USUAL_SUITE else ""
        raise ClusterError(
            f"{NO_BASE}: no registry offers {_wanted(suite)}, and {reason}", cure=f"{cure}{other}"
        )


def _import(tree: Path, suite: str) -> None:
    """Streams the tree through tar: it is large, and the engine may be on another machine."""
    needless = [f"--exclude=./{path}/*" for path in ("dev", "var/cache/apt", "var/lib/apt/lists")]
    command = ["tar", "--numeric-owner", *needless, "-C", str(tree), "-c", "."]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as tar,
        closing(connect(BUILD_TIMEOUT_S)) as client,
        engine_trouble("importing the base image"),
    ):
        client.api.import_image_from_stream(
            tar.stdout,
            repository=OWN_REPOSITORY,
            tag=suite,
            changes=[f"LABEL {IMAGE_LABEL}=base", 'CMD ["bash"]'],
        )
        # The engine answers 200 even to a broken stream.
        client.images.get(f"{OWN_REPOSITORY}:{suite}")
