"""`validate` and clients that are not as they should be; what they say of themselves counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockcheck.backends.program import ClientProgram
from lockcheck.backends.program.describing import description_of
from lockcheck.backends.program.words import command_of, promises_of
from lockcheck.cli.commands import run_command
from lockcheck.cli.run_options import config_from
from lockcheck.errors import UserError
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


@pytest.mark.cluster
def test_a_lock_is_validated_by_its_name_in_the_folders_file(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "theirs.py").write_text("import six\n\n" + LOCK)
    table = 'client = "theirs:Lock"\nrequirements = ["six==1.16.0"]\nttl = "300ms"\n'
    (tmp_path / "lockcheck.toml").write_text(f"[client.mine]\n{table}")
    validated = lockcheck("validate", "--backend", "mine", cwd=tmp_path)
    assert "RuntimeError: 2 servers" in validated.stdout, validated.stderr


def test_a_lock_of_lockchecks_own_is_not_validated() -> None:
    refused = lockcheck("validate", "--backend", "redis")
    assert refused.returncode == 2
    assert "redis is one of lockcheck's own" in refused.stderr


@pytest.mark.parametrize("stated", ["('waits', 'fair')", "['waits', 'fair']", "'waits,fair'"])
def test_promises_of_a_class_are_one_text_or_several(stated: str, tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(f"class Lock:\n    promises = {stated}\n")
    promises = description_of(program_in(tmp_path)).promises
    assert promises_of(promises) == promises_of(["waits", "fair"])


def test_a_description_without_sense_is_an_error_and_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text("class Lock:\n    promises = [3]\n")
    with pytest.raises(UserError, match="says of itself has no sense: Expected `str`"):
        description_of(program_in(tmp_path))


@pytest.mark.parametrize(("typed", "ttl_ms"), [((), 2500), (("--ttl", "1s"), 1000)])
def test_its_own_lease_and_version(
    typed: tuple[str, ...], ttl_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    about = "ttl_ms = 2500\nversion = '1.2'\nservers = 7\n"
    (tmp_path / "theirs.py").write_text(f"{about}class Lock: ...\n")
    options = ["--client", "theirs:Lock", *typed]
    with run_command.make_context("run", options) as context:
        config = config_from(context, context.params, None)
    assert (config.ttl_ms, config.client_version, config.servers) == (ttl_ms, "1.2", "")


def program_in(folder: Path) -> ClientProgram:
    return ClientProgram(command=command_of("theirs:Lock"), folder=str(folder))


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


KEPT_BY_ANOTHER = """
import subprocess, sys, uuid
import redis

KEEPER = '''
import redis, sys, time
host, port, key, owner = sys.argv[1:]
server = redis.Redis(host, int(port))
while server.get(key) == owner.encode():
    server.pexpire(key, 300)
    time.sleep(0.05)
'''

class Lock:
    promises = "session,silent-release"

    def __init__(self, key, host, port):
        self.at, self.key, self.owner = (host, port), "lock:" + key, uuid.uuid4().hex
        self.server = redis.Redis(host, port, socket_timeout=1, socket_connect_timeout=1)

    def acquire(self):
        if not self.server.set(self.key, self.owner, nx=True, px=2000):
            return False
        words = [*map(str, self.at), self.key, self.owner]
        self.keeper = subprocess.Popen([sys.executable, "-c", KEEPER, *words])
        return True

    def release(self):
        self.keeper.kill()
        self.keeper.wait()
        if self.server.get(self.key) == self.owner.encode():
            self.server.delete(self.key)
"""


@pytest.mark.cluster
@pytest.mark.long
def test_what_a_killed_client_started_is_killed_with_it(tmp_path: Path) -> None:
    """As in a run: a lock that a process of its own keeps alive is free afterwards."""
    need("local")
    (tmp_path / "theirs.py").write_text(KEPT_BY_ANOTHER)
    validated = lockcheck("validate", "--client", "theirs:Lock", cwd=tmp_path)
    assert "after its holder was killed" in validated.stdout, validated.stdout
    assert "it is not free" not in validated.stdout
    assert "ok  a release that comes too late does not say so" in validated.stdout
