"""`validate` and clients that are not as they should be; what they say of themselves counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import lockcheck, need

LOCK = """
servers = "redis*2"

class Lock:
    def __init__(self, key, servers):
        self.servers = servers
    def acquire(self):
        raise RuntimeError(f"{len(self.servers)} servers")
    release = acquire
"""


@pytest.mark.cluster
def test_the_servers_that_it_names_are_there(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "theirs.py").write_text(LOCK)
    validated = lockcheck("validate", "--client", "theirs:Lock", "--ttl", "300ms", cwd=tmp_path)
    assert "RuntimeError: 2 servers" in validated.stdout


def test_a_client_that_cannot_be_started_is_an_error_with_its_cure(tmp_path: Path) -> None:
    validated = lockcheck("validate", "--client", "./nothing", cwd=tmp_path)
    assert validated.returncode == 2
    assert "./nothing cannot be started: No such file or directory" in validated.stderr


ENDS = """
import os

promises = ["silent-release"]

class Lock:
    def acquire(self, key):
        return os.path.exists("granting")
    def release(self, key):
        os._exit(3)
"""


@pytest.mark.cluster
def test_a_client_that_ends_is_begun_anew_and_reported(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "theirs.py").write_text(ENDS)
    (tmp_path / "granting").touch()
    validated = lockcheck("validate", "--client", "theirs:Lock", "--ttl", "300ms", cwd=tmp_path)
    assert validated.returncode == 1, validated.stderr
    [released] = [line for line in validated.stdout.splitlines() if "its holder releases" in line]
    assert released.startswith("no ")
    assert "the program on c1 has ended with 3" in released
    assert "ok  then another client is granted it" in validated.stdout
    assert "It says of itself: silent-release" in validated.stdout
    assert "--promises" not in validated.stdout


@pytest.mark.cluster
def test_of_a_lock_that_is_never_granted_nothing_else_is_asked(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "theirs.py").write_text(ENDS)
    validated = lockcheck("validate", "--client", "theirs:Lock", "--ttl", "300ms", cwd=tmp_path)
    lines = [line for line in validated.stdout.splitlines() if line.startswith(("ok ", "no "))]
    assert [line[:30].strip() for line in lines] == ["ok  it begins", "no  a free lock is granted"]
    assert "It promises" not in validated.stdout
