"""The local runtime needs no root: the same run as an ordinary user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

import lockcheck
from lockcheck.compose.local.fetching import bring_server
from lockcheck.servers import SERVERS
from lockcheck.servers.base import unpacked
from tests.running import need

NOBODY = "65534"
BECOME_NOBODY = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]

# In a mount namespace of its own, another folder takes the place of a closed one. It holds nothing
# but the way to those that are to be seen; nothing outside of the namespace is changed.
SHOW = """
set -e
umask 022
closed=$1; instead=$2; shift 2
mount -t tmpfs -o mode=755 tmpfs "$instead"
while [ "$1" != -- ]; do
  mkdir -p "$instead/$1"
  mount --bind "$closed/$1" "$instead/$1"
  shift
done
shift
mount --move "$instead" "$closed"
exec "$@"
"""


@pytest.fixture
def everybodys_folder() -> Iterator[Path]:
    """pytest's own folders are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="lockcheck-ordinary-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.cluster
def test_an_ordinary_user_can_run_it(everybodys_folder: Path, tmp_path: Path) -> None:
    need("local")
    out = everybodys_folder
    command = [sys.executable, "-m", "lockcheck", "run", "--backend", "redis", "--seed", "1"]
    command += ["--runtime", "local", "--out", str(out)]
    if os.geteuid() == 0:
        command = as_nobody(command, out, tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out)
    if "gives no namespaces" in done.stderr:
        pytest.skip("this system gives ordinary users no namespaces")
    assert done.returncode == 1, done.stderr
    assert "VIOLATION" in done.stdout
    owner = next(path for path in Path(out).iterdir() if not path.is_symlink()).stat().st_uid
    assert owner == (int(NOBODY) if os.geteuid() == 0 else os.geteuid())


# Members that find each other by name, data folders in memory, and one that refuses root.
CLUSTERS = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from lockcheck.servers.kind import Kind
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers import SERVERS
from tests.agent.fleets import fleet
from tests.agent.tiny import PORT, TINY
SERVERS["tiny"] = TINY
nodes = [NodeSpec(name, Role.SERVER, Kind("etcd")) for name in ("e1", "e2", "e3")]
with fleet("local", Path(sys.argv[2]), *nodes, NodeSpec("t1", Role.SERVER, Kind("tiny"))) as on:
    print("tiny says", on.ask("t1", PORT, b""))
    on.end("e1")
    on.start("e1")
    on.end("t1")
    on.start("t1", data=False)
    print("tiny says", on.ask("t1", PORT, b""))
print("user", os.getuid())
"""


@pytest.mark.cluster
def test_an_ordinary_user_can_have_all_that_servers_need(
    everybodys_folder: Path, tmp_path: Path
) -> None:
    need("local", "etcd")
    bring_server(SERVERS["etcd"], print)
    out = everybodys_folder
    checkout = str(Path(lockcheck.__file__).parent.parent)
    command = [sys.executable, "-c", CLUSTERS, checkout, str(out)]
    if os.geteuid() == 0:
        command = as_nobody(command, out, tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out)
    if "gives no namespaces" in done.stderr:
        pytest.skip("this system gives ordinary users no namespaces")
    assert done.returncode == 0, done.stderr
    first, second, user = done.stdout.splitlines()
    assert "/1/I/hello from t1" in first
    assert "/1/I/hello from t1" in second
    assert user == f"user {NOBODY if os.geteuid() == 0 else os.geteuid()}"
    assert not (out / "nodes" / "e1" / "data").exists()


def as_nobody(command: list[str], out: Path, tmp_path: Path) -> list[str]:
    """Root tries it as somebody else, who is shown this Python, this lockcheck and `out`, even if
    they are in folders that only root may enter."""
    checkout = Path(lockcheck.__file__).parent.parent
    needed = {Path(sys.base_prefix), Path(sys.prefix), checkout, out}
    needed |= {fetched} if (fetched := unpacked("etcd")).exists() else set()
    for folder in needed:
        if not is_open(folder):
            pytest.skip(f"other users may not read {folder}: chmod -R o+rX {folder}")
    hidden = [(way, folder) for folder in needed if (way := closed_on_the_way_to(folder))]
    # What is wrapped last is run first: `tmp_path` is needed until all the others are in place.
    hidden.sort(key=lambda each: (not tmp_path.is_relative_to(each[0]), each))
    command = [*BECOME_NOBODY, *command]
    for closed, folders in groupby(hidden, key=lambda each: each[0]):
        instead = tmp_path / f"instead-of{str(closed).replace('/', '-')}"
        instead.mkdir()
        shown = [str(folder.relative_to(closed)) for _, folder in folders]
        command = ["sh", "-c", SHOW, "sh", str(closed), str(instead), *shown, "--", *command]
    return ["unshare", "--mount", *command]


def is_open(folder: Path) -> bool:
    return folder.stat().st_mode & 0o005 == 0o005


def closed_on_the_way_to(folder: Path) -> Path | None:
    """The first folder, seen from the root, that other users may not enter."""
    return next((each for each in reversed(folder.parents) if not each.stat().st_mode & 1), None)
