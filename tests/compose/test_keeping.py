"""Installations that share an engine: which images stay in it, and whose marks they bear."""

from __future__ import annotations

import platform
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import docker
import pytest

from lockcheck.compose.docker.engine import IMAGE_LABEL
from lockcheck.compose.images import keeping
from lockcheck.compose.images.keeping import (
    OurImage,
    is_there,
    is_unused,
    keep,
    mark_on,
    remove,
)
from lockcheck.compose.images.recipes import Recipe

HOUR_S = 3600
MINE, THEIRS = "lockcheck/x:for-mine", "lockcheck/x:for-theirs"


@pytest.mark.parametrize(
    ("goes", "tags", "idle_s"),
    [
        pytest.param(False, {"lockcheck/x:1", MINE}, HOUR_S, id="this installation uses it"),
        pytest.param(False, {"lockcheck/x:1", THEIRS}, HOUR_S, id="another one uses it"),
        pytest.param(True, {"lockcheck/x:1"}, HOUR_S, id="all have gone on from it"),
        pytest.param(True, set(), HOUR_S, id="it has lost its last tag"),
        pytest.param(False, {"lockcheck/x:1"}, 60, id="a run may be just starting with it"),
        pytest.param(False, {"lockcheck/x:1", THEIRS}, 29 * 24 * HOUR_S, id="seldom used"),
        pytest.param(True, {"lockcheck/x:1", THEIRS}, 31 * 24 * HOUR_S, id="used by no one"),
        pytest.param(False, {"lockcheck/x:1", "mine/x:1"}, 9**9, id="it has a name of its own"),
        pytest.param(False, {"lockcheck/base:trixie"}, 9**9, id="a base is slow to make"),
    ],
)
def test_an_image_goes_once_no_installation_uses_it(
    goes: bool, tags: set[str], idle_s: float
) -> None:
    image = OurImage("x", frozenset(tags), in_container=False, idle_s=idle_s)
    assert is_unused(image) is goes
    assert not is_unused(replace(image, in_container=True))


@pytest.mark.parametrize(
    ("tags", "tagged", "asked_for"),
    [
        (
            ["lockcheck/x:1"],
            "2026-01-01T00:00:00.123456789Z",
            datetime(2026, 1, 1, 0, 0, 0, 123456),
        ),
        (["lockcheck/x:1"], "2025-01-01T00:00:00Z", datetime(2025, 6, 1)),
        (["lockcheck/x:1"], "0001-01-01T00:00:00Z", datetime(2026, 6, 1)),
        ([], "0001-01-01T00:00:00Z", datetime(2025, 6, 1)),
    ],
    ids=["tagged since", "made since", "an engine that does not tell", "untagged"],
)
def test_when_an_image_was_last_used(tags: list[str], tagged: str, asked_for: datetime) -> None:
    about = {
        "Created": "2025-06-01T00:00:00Z",
        "Metadata": {"LastTagTime": tagged},
        "RepoTags": tags,
    }
    now = datetime(2026, 6, 1, tzinfo=UTC)
    assert keeping._last_used(about, now) == asked_for.replace(tzinfo=UTC)


def test_installations_have_marks_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = keeping.installation()
    assert own == keeping.installation()
    others = set()
    for where, name, value in (
        (keeping, "PACKAGE", Path("/elsewhere/lockcheck")),
        (sys, "prefix", "/elsewhere/.venv"),
        (platform, "node", lambda: "another-machine"),
    ):
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(where, name, value)
            others.add(keeping.installation())
    assert len(others - {own}) == 3


@pytest.mark.docker
@pytest.mark.cluster
def test_an_image_is_marked_anew_whenever_it_is_used(
    engine: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By two installations; and a mark goes where its installation goes on to."""
    repository = f"lockcheck/test-{uuid4().hex[:12]}"
    images = [f"{repository}:1", f"{repository}:2"]
    mine, theirs = (mark_on(images[0], by) for by in ("mine", "theirs"))
    assert not keep(engine, images[0])
    try:
        for image in images:
            make_image(engine, image)
        for by in ("mine", "theirs"):
            monkeypatch.setattr(keeping, "installation", lambda by=by: by)
            assert keep(engine, images[0])
        assert held(engine, images[0]).tags == {images[0], mine, theirs}
        marked_at = last_tagged(engine, images[0])
        assert keep(engine, images[0])
        assert last_tagged(engine, images[0]) > marked_at
        assert keep(engine, images[1])
        assert held(engine, images[0]).tags == {images[0], mine}
        assert held(engine, images[1]).tags == {images[1], theirs}
        assert 0 <= held(engine, images[1]).idle_s < keeping.SPARED_S
    finally:
        remove(engine, {*images, mine, theirs})
    assert not any(is_there(engine, image) for image in images)


def make_image(engine: docker.DockerClient, name: str) -> None:
    """With nothing in it but its own name."""
    repository, _, tag = name.partition(":")
    label = [f"LABEL {IMAGE_LABEL}=test"]
    with Recipe("x", {"name": name.encode()}).build_context(None) as tree:
        engine.api.import_image_from_data(tree.read(), repository, tag, changes=label)


def held(engine: docker.DockerClient, name: str) -> OurImage:
    [found] = [image for image in keeping.images_held(engine) if name in image.tags]
    return found


def last_tagged(engine: docker.DockerClient, name: str) -> str:
    return str(engine.api.inspect_image(name)["Metadata"]["LastTagTime"])
