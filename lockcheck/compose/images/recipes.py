"""The content of each of our images, and the tag that results from it."""

from __future__ import annotations

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO

from lockcheck.compose.images.added import files_of
from lockcheck.compose.images.dependencies import LOCK
from lockcheck.compose.launching import CLIENT_IMAGE
from lockcheck.distribution import DISTRIBUTION
from lockcheck.errors import InternalError
from lockcheck.servers.kind import Kind

PACKAGE = Path(__file__).parents[2]
IMAGES_FOLDER = Path(__file__).parent
USUAL_SUITE = "trixie"  # of Debian: the base of all images without a suite of their own
COMPOSE_IMAGE = "compose"  # only to fetch Compose, and removed afterwards
PYTHON_IMAGE = "python"  # the base of `client`: changes with its packages only
BUILT_HERE = {".so", ".dylib"}  # compiled for this machine; the clients need none


def image_names(kinds: Iterable[Kind]) -> list[str]:
    """The images that runs with these kinds of server use."""
    return sorted({CLIENT_IMAGE, *(kind.server.image_name for kind in kinds)})


@dataclass(frozen=True, slots=True)
class Recipe:
    """`files` are the build context; with a lock among them, what it locks is added."""

    name: str  # "etcd"; or "etcd:bookworm", if it is built on that suite of Debian
    files: dict[str, bytes]
    parent: Recipe | None = None  # the image of ours that it is built on

    @property
    def suite(self) -> str:
        return self.name.partition(":")[2] or USUAL_SUITE

    @property
    def has_packages(self) -> bool:
        return LOCK.name in self.files

    @property
    def tag(self) -> str:
        """With a digest of the content: an image with this tag is current. Each suite has a
        repository of its own, since one image is kept in each."""
        content = hashlib.sha256()
        if self.parent is not None:
            content.update(self.parent.tag.encode())
        if self.suite != USUAL_SUITE:
            content.update(self.suite.encode())
        for path, data in sorted(self.files.items()):
            content.update(f"\n{path}\n{len(data)}\n".encode())
            content.update(data)
        return f"lockcheck/{self.name.replace(':', '-')}:{content.hexdigest()[:12]}"

    def build_context(self, packages: Path | None) -> IO[bytes]:
        """Its files as a tar, which is reproducible on all machines."""
        context = tempfile.TemporaryFile()  # noqa: SIM115  # closed by the caller, and gone with it
        with tarfile.open(fileobj=context, mode="w") as tar:
            for path, data in sorted(self.files.items()):
                entry = tarfile.TarInfo(path)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
            if packages is not None:
                tar.add(packages, arcname="dependencies", filter=_plain)
        context.seek(0)
        return context


def recipe(name: str, packages: Iterable[str] = ()) -> Recipe:
    """`packages`: installed ones that add to lockcheck, for the clients' image."""
    files = _files_below(IMAGES_FOLDER / name.partition(":")[0])
    if name == CLIENT_IMAGE:
        ours = {f"site/lockcheck/{path}": data for path, data in _files_below(PACKAGE).items()}
        added = {f"site/{path}": data for path, data in files_of(packages).items()}
        files |= ours | _installation_record() | added
        return Recipe(name, files, parent=recipe(PYTHON_IMAGE))
    return Recipe(name, files)


def _files_below(folder: Path) -> dict[str, bytes]:
    if not folder.is_dir():
        raise InternalError(f"{folder} is missing from this installation of lockcheck")
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in BUILT_HERE
    }


def _installation_record() -> dict[str, bytes]:
    """The files of the dist-info folder, so that the image has lockcheck's entry points, too."""
    installed = metadata.distribution(DISTRIBUTION)
    folder = f"site/{DISTRIBUTION}-{installed.version}.dist-info"
    texts = {name: installed.read_text(name) for name in ("METADATA", "entry_points.txt")}
    return {f"{folder}/{name}": text.encode() for name, text in texts.items() if text}


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = 0
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() else 0o644
    return entry
