"""The rules that keep the house a house: imports point one way, the public names, a quick start."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

import lockcheck
from lockcheck.distribution import DISTRIBUTION

PACKAGE = Path(lockcheck.__file__).parent

# Each may import only those above it, and itself. One file of a room may have a floor of its own.
FLOORS = (
    "errors",
    "trust",
    "files",
    "cache",
    "durations",
    "distribution",
    "sizes",
    "plugins",
    "signals",
    "native",
    "history",
    "words",
    "formats",
    "checker",
    "servers",
    "nodes",
    "servers.asking",
    "storage",
    "backends",
    "client",
    "workloads",
    "client.worker",
    "nemesis",
    "agent",
    "compose",
    "config",
    "runs",
    "results",
    "check",
    "run",
    "library",
    "pytest_plugin",
    "yours",
    "matrix",
    "sweep",
    "hunting",
    "serve",
    "python_client",
    "cli",
    "__main__",
)


ONLY_FOR_MYPY = ("typing_extensions",)
MOST_FILES = 20  # in one room: as many as a newcomer can take in


def floor_of(module: str) -> str:
    """`client.worker` of "client.worker", `client` of any other file of that room."""
    room, _, rest = module.partition(".")
    name = f"{room}.{rest.partition('.')[0]}"
    return name if name in FLOORS else room


def modules_imported(path: Path) -> Iterator[str]:
    """By a file, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imports_of(path: Path) -> set[str]:
    """The floors of the package that a file imports from."""
    names = modules_imported(path)
    own = (name.removeprefix("lockcheck.") for name in names if name.startswith("lockcheck."))
    return set(map(floor_of, own))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    own = floor_of(module_of(path))
    assert own in FLOORS, f"{own} has no place in the order of the house: add it to FLOORS"
    below = set(FLOORS[: FLOORS.index(own) + 1])
    assert imports_of(path) <= below


@pytest.mark.parametrize("path", sorted((PACKAGE / "checker").rglob("*.py")), ids=lambda p: p.name)
def test_the_judges_import_nothing_but_the_history(path: Path) -> None:
    assert imports_of(path) <= {"history", "words", "checker", "native", "plugins"}
    outside = {"os", "pathlib", "time", "random", "socket", "subprocess", "io", "logging"}
    imported = {
        name.name.split(".")[0]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import)
        for name in node.names
    }
    assert not imported & outside


def test_no_room_has_more_files_than_one_can_take_in() -> None:
    rooms = Counter(path.parent for path in FILES if path.name != "__init__.py")
    crowded = {str(room.relative_to(PACKAGE)): n for room, n in rooms.items() if n > MOST_FILES}
    assert crowded == {}


def test_a_violation_of_the_order_would_be_seen(tmp_path: Path) -> None:
    sinner = tmp_path / "sinner.py"
    sinner.write_text("def f():\n    from lockcheck.cli.commands import main\n    return main\n")
    assert imports_of(sinner) == {"cli"}


def test_every_library_that_is_imported_is_declared() -> None:
    museum = PACKAGE / "yours" / "museum" / "clients"  # each in an environment of its own
    ours = [path for path in FILES if museum not in path.parents]
    ours.remove(PACKAGE / "pytest_plugin.py")  # pytest itself imports it
    names = {name.partition(".")[0] for path in ours for name in modules_imported(path)}
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    declared = {re.split(r"[^\w-]", each)[0].lower() for each in wanted}
    brought_by = packages_distributions()
    outside = names - sys.stdlib_module_names - {"lockcheck", *ONLY_FOR_MYPY}
    undeclared = {each for each in outside if not declared & {*map(str.lower, brought_by[each])}}
    assert undeclared == set()


def test_nothing_that_we_print_installs_the_other_tool_of_this_name() -> None:
    root = PACKAGE.parent
    texts = [*FILES, *root.glob("*.md"), *root.glob("docs/**/*.md"), root / "pyproject.toml"]
    installing = re.compile(
        r"""(?:pipx?|uv) (?:\w+ )*["']?lockcheck\b|uvx lockcheck|\blockcheck\["""
    )
    assert [str(path) for path in texts if installing.search(path.read_text())] == []
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    assert {"lockcheck", DISTRIBUTION} <= project["scripts"].keys()


def test_the_public_names() -> None:
    assert sorted(lockcheck.__all__) == [
        "Cluster",
        "Code",
        "Event",
        "Fault",
        "Finding",
        "History",
        "Judgement",
        "LockcheckError",
        "Log",
        "Program",
        "Record",
        "RunConfig",
        "Verdict",
        "__version__",
        "cluster",
        "execute",
        "judge",
        "read_history",
        "read_record",
    ]
    assert dir(lockcheck) == sorted(lockcheck.__all__)
    for name in lockcheck.__all__:
        assert getattr(lockcheck, name) is not None


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """This is what keeps `lockcheck --help` far below 0.3 s on any machine."""
    script = (
        "import sys; from lockcheck.cli.commands import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "heavy = {'redis', 'docker', 'rich', 'jinja2', 'pyroute2', 'numpy'}\n"
        "print('LOADED', sorted(heavy & set(sys.modules)))"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert said.stdout.endswith("LOADED []\n")
