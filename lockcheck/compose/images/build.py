"""Builds our images in the engine, through its API: neither a docker command nor a local engine is
needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING

from lockcheck.cache import only_one_at_a_time
from lockcheck.compose.docker.compose_binary import cache_binary, find_compose
from lockcheck.compose.docker.engine import BUILD_TIMEOUT_S, connect, engine_trouble
from lockcheck.compose.images.base_image import base_image
from lockcheck.compose.images.dependencies import package_tree
from lockcheck.compose.images.keeping import is_there, keep, own_mark_on, remove, remove_old
from lockcheck.compose.images.recipes import COMPOSE_IMAGE, Recipe, image_names, recipe
from lockcheck.compose.runtime import Say
from lockcheck.errors import ClusterError
from lockcheck.servers.kind import Kind

if TYPE_CHECKING:
    import docker

LAST_LINES = 10


def missing_images(kinds: Iterable[Kind]) -> list[str]:
    """The images that runs with these kinds of server need, and that the engine does not have."""
    with closing(connect()) as client:
        return [name for name in image_names(kinds) if not is_there(client, recipe(name).tag)]


def build_images(kinds: Iterable[Kind], say: Say) -> None:
    """Builds all images that runs with these servers need, and fetches Compose if it is missing."""
    bring_images(image_names(kinds), say)
    if find_compose() is None:
        _fetch_compose(say)


def bring_images(names: Iterable[str], say: Say, packages: Sequence[str] = ()) -> dict[str, str]:
    """The tag of each of these images, after building those that are missing; that of clients with
    these packages in it."""
    recipes = [recipe(name, packages) for name in names]
    with closing(connect(BUILD_TIMEOUT_S)) as client:
        if not all(_keep(client, each) for each in recipes):
            with only_one_at_a_time("build"):
                for each in recipes:
                    _bring(client, each, say)
                remove_old(client)
    return {each.name: each.tag for each in recipes}


def _keep(client: docker.DockerClient, wanted: Recipe) -> bool:
    """Marks the image and the images of ours below it as in use; False if it does not exist."""
    if wanted.parent:
        _keep(client, wanted.parent)
    return keep(client, wanted.tag)


def _bring(client: docker.DockerClient, wanted: Recipe, say: Say) -> str:
    """Builds the image unless another process has built it meanwhile; returns its tag."""
    if _keep(client, wanted):
        return wanted.tag
    base = (
        _bring(client, wanted.parent, say)
        if wanted.parent
        else base_image(client, wanted.suite, say)
    )
    packages = _packages_for(client, wanted, say)
    say(f"building the image {wanted.tag}")
    with (
        wanted.build_context(packages) as context,
        engine_trouble(f"building the image {wanted.name}"),
    ):
        _build(client, wanted, base, context)
    keep(client, wanted.tag)
    return wanted.tag


def _build(client: docker.DockerClient, wanted: Recipe, base: str, context: IO[bytes]) -> None:
    log = client.api.build(
        fileobj=context,
        custom_context=True,
        tag=wanted.tag,
        buildargs={"BASE": base},
        rm=True,
        forcerm=True,
        decode=True,
    )
    _check_log(wanted.name, log)


def _packages_for(client: docker.DockerClient, each: Recipe, say: Say) -> Path | None:
    if not each.has_packages:
        return None
    with engine_trouble("asking the engine its architecture"):
        return package_tree(str(client.version()["Arch"]), say)


def _check_log(name: str, messages: Iterable[Mapping[str, object]]) -> None:
    """Raises ClusterError for a failed build, which is reported at the end of its log only."""
    log: list[str] = []
    for message in messages:
        log += str(message.get("stream", "")).splitlines()
        if "error" in message:
            output = "\n    ".join(line for line in log[-LAST_LINES:] if line.strip())
            raise ClusterError(
                f"building the image {name} failed: {message['error']}\n    {output}",
                cure="fix what the log says, then: lockcheck images build",
            )


def _fetch_compose(say: Say) -> None:
    say("fetching Docker Compose v2 from Debian's packages")
    with only_one_at_a_time("build"), closing(connect(BUILD_TIMEOUT_S)) as client:
        image = _bring(client, recipe(COMPOSE_IMAGE), say)
        try:
            cache_binary(client, image)
        finally:
            remove(client, {image, own_mark_on(image)})
