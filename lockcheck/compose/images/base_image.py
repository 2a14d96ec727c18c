"""The image that ours are built on: Debian trixie, from a registry or from a Debian mirror.

Where no registry answers (an air-gapped site), debootstrap makes it from the mirror that this
host installs its own packages from, and the engine imports it: half a minute, once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lockcheck.compose.docker.engine import BUILD_TIMEOUT_S, IMAGE_LABEL, connect, engine_trouble
from lockcheck.compose.images.cache import cache_folder
from lockcheck.compose.runtime import Say
from lockcheck.errors import ClusterError

if TYPE_CHECKING:
    import docker

SUITE = "trixie"
FROM_REGISTRY = ("debian", f"{SUITE}-slim")
OWN_REPOSITORY = "lockcheck/base"
OWN_TAG = f"{OWN_REPOSITORY}:{SUITE}"
REGISTRY_TIMEOUT_S = 10
LAST_LINES = 8
TREE_PREFIX = "debootstrap-"


def base_image(client: docker.DockerClient, say: Say) -> str:
    """The name of an image in the engine to build on. Any base that is there will do."""
    named = os.environ.get("LOCKCHECK_BASE_IMAGE") or ":".join(FROM_REGISTRY)
    for name in (named, OWN_TAG):
        if is_there(client, name):
            return name
    if _pull(named, say):
        return named
    _make_with_debootstrap(client, say)
    return OWN_TAG


def is_there(client: docker.DockerClient, image: str) -> bool:
    import docker

    try:
        with engine_trouble(f"looking for the image {image}"):
            client.images.get(image)
    except ClusterError as error:
        if isinstance(error.__cause__, docker.errors.ImageNotFound):
            return False
        raise
    return True


def _pull(image: str, say: Say) -> bool:
    """False if no registry offers it; asked with a short timeout before the long download."""
    try:
        with closing(connect(REGISTRY_TIMEOUT_S)) as quick, engine_trouble("asking the registry"):
            quick.images.get_registry_data(image)
        say(f"pulling {image}")
        with closing(connect(BUILD_TIMEOUT_S)) as patient, engine_trouble(f"pulling {image}"):
            patient.images.pull(image)
    except ClusterError:
        say(f"no registry offers {image}: making a Debian {SUITE} base image with debootstrap")
        return False
    return True


def _make_with_debootstrap(client: docker.DockerClient, say: Say) -> None:
    _check_debootstrap_can_run()
    with engine_trouble("asking the engine its architecture"):
        architecture = str(client.version()["Arch"])
    with _empty_tree() as tree:
        _debootstrap(tree, architecture, say)
        say("importing the base image into the engine")
        _import(tree)


def _check_debootstrap_can_run() -> None:
    cannot = f"no base image: no registry offers {':'.join(FROM_REGISTRY)}, and debootstrap "
    if sys.platform != "linux":
        raise ClusterError(
            cannot + "runs on Linux only",
            cure="let the engine reach a registry, or name an image in LOCKCHECK_BASE_IMAGE",
        )
    if shutil.which("debootstrap") is None:
        raise ClusterError(cannot + "is not installed", cure="sudo apt-get install debootstrap")
    if os.geteuid() != 0:
        raise ClusterError(
            cannot + "must run as root",
            cure="run `sudo lockcheck images build` once; the runs themselves need no root",
        )


@contextmanager
def _empty_tree() -> Iterator[Path]:
    """In the cache folder, since the system's own place is often mounted without devices.

    The caller holds the lock on building, so a tree that is there was left by a killed build.
    """
    for left in cache_folder().glob(TREE_PREFIX + "*"):
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=TREE_PREFIX, dir=cache_folder()) as name:
        tree = Path(name)
        tree.chmod(0o755)  # it becomes the image's root folder
        yield tree


def _debootstrap(tree: Path, architecture: str, say: Say) -> None:
    """In namespaces of its own, so that its mounts and processes cannot outlive it."""
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    make = ["debootstrap", "--variant=minbase", f"--arch={architecture}", SUITE, str(tree)]
    lines: list[str] = []
    command = [*apart, *make, *_debian_mirror()]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            for line in process.stdout or ():
                lines.append(line.strip())
                _say_stage(line, say)
            process.wait()
        finally:
            process.kill()  # nothing happens to one that has ended
    if process.returncode == 0:
        return
    last_words = "\n    ".join(lines[-LAST_LINES:])
    raise ClusterError(
        f"debootstrap could not make the base image:\n    {last_words}",
        cure="`apt-get update` should work on this host: its Debian mirror is the one used",
    )


def _say_stage(line: str, say: Say) -> None:
    """debootstrap reports each of some hundred packages: a person wants its four stages."""
    stages = {
        "Retrieving InRelease": "debootstrap: reading the mirror's index",
        "Checking component main": "debootstrap: fetching and checking the packages",
        "Chosen extractor": "debootstrap: unpacking",
        "Configuring required packages": "debootstrap: configuring",
    }
    for sign, stage in stages.items():
        if sign in line:
            say(stage)


def _debian_mirror() -> list[str]:
    """Where this host gets its Debian packages; nothing where debootstrap's default must do."""
    if (apt := shutil.which("apt-get")) is None:
        return []
    asked = subprocess.run(
        [apt, "indextargets", "--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian"],
        capture_output=True,
        text=True,
        check=False,
    )
    mirrors = [line for line in asked.stdout.splitlines() if line.startswith(("http:", "https:"))]
    return mirrors[:1]


def _import(tree: Path) -> None:
    """Streamed through tar: the engine may be on another machine, and the tree is large."""
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
            tag=SUITE,
            changes=[f"LABEL {IMAGE_LABEL}=base", 'CMD ["bash"]'],
        )
        client.images.get(OWN_TAG)  # the import answers 200 even to a broken stream
