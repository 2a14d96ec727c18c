"""Installed packages that add to lockcheck, as they go into the client image: with what they
require and is not there. They are copied from this host, so they must be plain Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from lockcheck.compose.images.dependencies import locked_versions
from lockcheck.distribution import DISTRIBUTION
from lockcheck.errors import UserError

COMPILED = {".so", ".pyd", ".dylib"}
REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
RECORDED = ("METADATA", "entry_points.txt")


def files_of(packages: Iterable[str]) -> dict[str, bytes]:
    """By their paths in a folder of Python packages."""
    found: dict[str, bytes] = {}
    for each in _with_requirements(packages):
        folder = f"{each.name}-{each.version}.dist-info"
        texts = {name: each.read_text(name) for name in RECORDED}
        found |= {f"{folder}/{name}": text.encode() for name, text in texts.items() if text}
        for module in _modules(each):
            found |= dict(_files_of_module(module, each.name))
    return found


def _with_requirements(packages: Iterable[str]) -> Iterator[Distribution]:
    there = {_plain(name) for name in (*locked_versions(), DISTRIBUTION)}
    todo = list(packages)
    while todo:
        name = todo.pop()
        if _plain(name) in there:
            continue
        there.add(_plain(name))
        try:
            found = distribution(name)
        except PackageNotFoundError:  # required elsewhere only: for another Python or system
            continue
        yield found
        for required in found.requires or ():
            words = REQUIREMENT.match(required)
            if words and "extra ==" not in required:
                todo.append(words[0])


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _modules(package: Distribution) -> set[str]:
    """The names of what it installs; of one that is installed as a link to its sources, those that
    its entry points name."""
    paths = (path for path in package.files or () if path.suffix == ".py" or len(path.parts) > 1)
    tops = {path.parts[0].removesuffix(".py") for path in paths}
    named = {each for each in tops if each.isidentifier() and each != "__pycache__"}
    found = {each for each in named if not each.startswith("__editable__")}
    return found or {point.module.partition(".")[0] for point in package.entry_points}


def _files_of_module(name: str, package: str) -> Iterator[tuple[str, bytes]]:
    spec = find_spec(name)
    if spec is None:
        return
    roots = [Path(folder) for folder in spec.submodule_search_locations or ()]
    paths = [(path, root) for root in roots for path in sorted(root.rglob("*"))]
    if not roots and spec.origin:
        paths = [(Path(spec.origin), Path(spec.origin))]
    for path, root in paths:
        if path.suffix in COMPILED:
            raise UserError(
                f"{package} is compiled for this host's Python ({path.name}), and containers have "
                "another",
                cure="use --runtime local",
            )
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(root.parent).as_posix(), path.read_bytes()
