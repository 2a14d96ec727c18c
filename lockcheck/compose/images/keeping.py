"""Keeps the images in the engine that installations of lockcheck have marked, and removes others.

Each installation marks the images that it uses with a tag of its own, again in every run. The
engine records when each image was last tagged: so unused ones are known.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lockcheck.compose.docker.engine import IMAGE_LABEL, engine_trouble
from lockcheck.compose.images.recipes import PACKAGE
from lockcheck.errors import ClusterError

if TYPE_CHECKING:
    import docker

OURS = "lockcheck/"
BASE = f"{OURS}base:"
MARK = ":for-"
NO_TAG = "<none>:<none>"
SPARED_S = 600  # a run that is starting may use an image that it has not marked yet
FORGOTTEN_S = 30 * 24 * 3600


def is_there(client: docker.DockerClient, image: str) -> bool:
    return _unless_missing(image, lambda: client.images.get(image))


def keep(client: docker.DockerClient, image: str) -> bool:
    """Marks it as used by this installation; False if it does not exist."""
    repository, _, tag = own_mark_on(image).partition(":")
    return _unless_missing(image, lambda: client.api.tag(image, repository, tag))


def _unless_missing(image: str, look: Callable[[], object]) -> bool:
    import docker

    try:
        with engine_trouble(f"looking for the image {image}"):
            look()
    except ClusterError as error:
        if isinstance(error.__cause__, docker.errors.ImageNotFound):
            return False
        raise
    return True


def installation() -> str:
    """Identifies a checkout in an environment on a machine, which needs one image of each kind."""
    whose = "\0".join([platform.node(), str(PACKAGE), sys.prefix])
    return hashlib.sha256(whose.encode()).hexdigest()[:12]


def own_mark_on(image: str) -> str:
    return mark_on(image, installation())


def mark_on(image: str, by: str) -> str:
    """The tag by which an installation marks the image."""
    return f"{image.partition(':')[0]}{MARK}{by}"


@dataclass(frozen=True, slots=True)
class OurImage:
    """An image of ours in the engine."""

    image_id: str
    tags: frozenset[str]
    in_container: bool
    idle_s: float  # since it was built or last marked


def is_unused(image: OurImage) -> bool:
    """Whether the image may be removed."""
    if image.in_container or not all(tag.startswith(OURS) for tag in image.tags):
        return False
    if any(tag.startswith(BASE) for tag in image.tags):
        return False
    is_marked = any(MARK in tag for tag in image.tags)
    return image.idle_s > (FORGOTTEN_S if is_marked else SPARED_S)


def remove_old(client: docker.DockerClient) -> None:
    for image in filter(is_unused, images_held(client)):
        remove(client, image.tags or {image.image_id})


def images_held(client: docker.DockerClient) -> list[OurImage]:
    with engine_trouble("looking for old images"):
        now = _time(client.info()["SystemTime"])  # the engine's clock, by which images are dated
        used = {each["ImageID"] for each in client.api.containers(all=True)}
        ids = [each["Id"] for each in client.api.images(filters={"label": IMAGE_LABEL})]
        return [
            OurImage(
                image_id=about["Id"],
                tags=frozenset(about["RepoTags"] or ()) - {NO_TAG},
                in_container=about["Id"] in used,
                idle_s=(now - _last_used(about, now)).total_seconds(),
            )
            for about in _inspected(client, ids)
        ]


def _inspected(client: docker.DockerClient, ids: Iterable[str]) -> Iterator[dict[str, Any]]:
    import docker

    for image_id in ids:
        with suppress(docker.errors.ImageNotFound):  # another process has just removed it
            yield client.api.inspect_image(image_id)


def _last_used(about: dict[str, Any], now: datetime) -> datetime:
    """When it was built or last tagged; `now` for a tagged one if the engine records no time."""
    made = _time(about["Created"])
    match about.get("Metadata"):
        case {"LastTagTime": str(tagged)} if not tagged.startswith("0001-"):
            return max(_time(tagged), made)
    return now if about["RepoTags"] else made


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def remove(client: docker.DockerClient, names: Iterable[str]) -> None:
    import docker

    for name in names:
        try:
            client.api.remove_image(name)
        except docker.errors.APIError:
            return  # still in use, or gone already: it only takes room
