"""The local runtime needs no root: the same run as an ordinary user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import need

NOBODY = "65534"

# Root, too, tries it as somebody else. Where this Python lives in a folder that only root may
# enter, it is shown to that user in a mount namespace of its own; nothing else is changed.
BECOME_NOBODY = """
set -e
python_home=$1; shift
if ! setpriv --reuid 65534 --regid 65534 --clear-groups test -x "$python_home"; then
  private=$(dirname "$python_home")
  while [ "$(dirname "$private")" != / ]; do private=$(dirname "$private"); done
  shown=$(mktemp -d)
  mount --bind "$python_home" "$shown"
  mount -t tmpfs -o mode=755 tmpfs "$private"
  mkdir -p "$python_home"
  mount --move "$shown" "$python_home"
  rmdir "$shown"
fi
exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
"""


@pytest.fixture
def everybodys_folder() -> Iterator[Path]:
    """pytest's own folders are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="lockcheck-ordinary-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.mark.cluster
def test_an_ordinary_user_can_run_it(everybodys_folder: Path) -> None:
    need("local")
    out = everybodys_folder
    command = [sys.executable, "-m", "lockcheck", "run", "--backend", "redis", "--seed", "1"]
    command += ["--runtime", "local", "--out", str(out)]
    if os.geteuid() == 0:
        become = ["unshare", "--mount", "sh", "-c", BECOME_NOBODY, "sh", sys.base_prefix]
        command = [*become, *command]
    said = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out)
    if "gives no namespaces" in said.stderr:
        pytest.skip("this system gives ordinary users no namespaces")
    assert said.returncode == 1, said.stderr
    assert "VIOLATION" in said.stdout
    owner = next(path for path in Path(out).iterdir() if not path.is_symlink()).stat().st_uid
    assert owner == (int(NOBODY) if os.geteuid() == 0 else os.geteuid())
