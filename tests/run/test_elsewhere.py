"""Servers that are there already: clients reach them and are struck, and nothing else is."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import redis

import lockcheck as library
from lockcheck.backends.program.words import servers_of
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.nemesis.fitting import steps_of
from lockcheck.run.resolve import planned, resolve
from lockcheck.servers.redis import REDIS
from tests.backends.servers import found, free_port, running
from tests.running import RUNTIMES, lockcheck, need, processes_of, run_under_way, traces_of
from tests.waiting import wait_for

OK, VIOLATION, USAGE = 0, 1, 2
NOWHERE = "redis=127.0.0.1:1"
CLIENT = """
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

refusals = redis.exceptions.LockNotOwnedError


def lock(key, host, port, ttl):
    client = redis.Redis(host, port, socket_timeout=1, retry=Retry(NoBackoff(), 0))
    return client.lock(key, timeout=ttl, blocking=False, thread_local=False)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[redis.Redis]:
    """Of this test's own, on loopback: lockcheck has not started it."""
    (tmp_path / "locks.py").write_text(CLIENT)
    port = free_port()
    folder = tmp_path / "server"
    folder.mkdir()
    command = [*found(REDIS), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with (
        running(command, folder, ("127.0.0.1", port), b"PING\r\n", b"PONG"),
        closing(redis.Redis("127.0.0.1", port, socket_timeout=None)) as connection,
    ):
        yield connection


def where(server: redis.Redis) -> str:
    return f"redis=127.0.0.1:{server.connection_pool.connection_kwargs['port']}"


@contextmanager
def keys_used(server: redis.Redis) -> Iterator[set[str]]:
    """The keys of all scripts and SETs that the server is sent meanwhile."""
    used: set[str] = set()

    def note() -> None:
        with server.monitor() as commands:
            watching.set()
            for each in commands.listen():
                words = each["command"].split()
                if words[0] == "SET":
                    used.add(words[1])
                if words[0] == "EVALSHA":
                    used.add(words[3])
                if words == ["ECHO", "over"]:
                    return

    watching = threading.Event()
    noting = threading.Thread(target=note)
    noting.start()
    assert watching.wait(10)
    yield used
    server.echo("over")
    noting.join()


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("fault", ["pause", "partition"])
def test_its_clients_are_struck_and_other_keys_are_not_touched(
    runtime: str, fault: str, server: redis.Redis, tmp_path: Path
) -> None:
    need(runtime)
    server.set("k1", "another program's")
    options = ("--runtime", runtime, "--client", "locks:lock", "--servers", where(server))
    with keys_used(server) as used:
        struck = ("--nemesis", fault, "--time-limit", "6s", "--out", str(tmp_path / "out"))
        done = lockcheck("run", *options, *struck, cwd=tmp_path)
    assert done.returncode in (OK, VIOLATION), done.stdout + done.stderr
    assert "not tested" in done.stdout
    [folder] = [path for path in (tmp_path / "out").iterdir() if not path.is_symlink()]
    result = json.loads((folder / "verdict.json").read_text())
    assert {f["blame"] for f in result["findings"] if f["effect"] == "violation"} <= {"holder"}
    assert result["counts"]["acquisitions"] > 50
    assert re.search(rf"[1-9] {fault}s? injected and confirmed", " ".join(done.stdout.split()))
    assert used == {f"lockcheck-{folder.name}-k1"}
    assert server.get("k1") == b"another program's"
    assert "they are not lockcheck&#39;s" in (folder / "report.html").read_text()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_nothing_stays_of_a_run_that_was_killed(
    runtime: str, server: redis.Redis, tmp_path: Path
) -> None:
    need(runtime)
    options = ("--client", "locks:lock", "--servers", where(server), "--nemesis", "partition")
    there = ("env", f"--chdir={tmp_path}")
    with run_under_way(tmp_path / "out", runtime, *options, within=there) as (process, run_id):
        wait_for(lambda: len(server.client_list()) > 3, "the clients are connected")
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: len(server.client_list()) == 1, "only this test is connected")
        wait_for(lambda: not processes_of(run_id), "the run is gone")
    if runtime == "docker":
        assert lockcheck("clean").returncode == OK
    assert traces_of(run_id, runtime) == []


@pytest.mark.cluster
def test_a_lock_on_it_is_validated(server: redis.Redis, tmp_path: Path) -> None:
    need("local")
    server.set("k1", "another program's")
    options = ("--runtime", "local", "--client", "locks:lock", "--servers", where(server))
    done = lockcheck("validate", *options, cwd=tmp_path)
    assert done.returncode == OK, done.stdout + done.stderr
    assert "a lease" in done.stdout
    assert f"--servers {where(server)}" in done.stdout


@pytest.mark.cluster
def test_the_librarys_programs_reach_it_and_only_clients_are_struck(
    server: redis.Redis, tmp_path: Path
) -> None:
    need("local")
    server.set("seen", "yes")
    with library.cluster(where(server), clients=1, runtime="local", folder=tmp_path) as cluster:
        ask = "import redis, sys; print(redis.Redis('r1', int(sys.argv[1])).get('seen').decode())"
        port = str(cluster.port("r1"))
        assert cluster.run("c1", (cluster.python, "-c", ask, port)).hear() == "yes"
        with cluster.fault("partition", "c1") as cut:
            assert "silent" in cut.proof
        with pytest.raises(UserError, match="not lockcheck's"):
            cluster.fault("partition", "r1")


def test_one_that_cannot_be_reached_is_named_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "locks.py").write_text(CLIENT)
    options = ("--client", "locks:lock", "--servers", NOWHERE, "--out", str(tmp_path / "out"))
    for done in (
        lockcheck("run", "--runtime", "local", *options, cwd=tmp_path),
        lockcheck("validate", "--runtime", "local", *options[:4], cwd=tmp_path),
    ):
        assert done.returncode == USAGE, done.stderr
        assert "redis at 127.0.0.1:1 cannot be reached: Connection refused" in done.stderr
        assert "cure:" in done.stderr
    assert not (tmp_path / "out").exists()


def config(*nemesis: str, seed: int = 1, servers: str = "redis=a:1,b:2,c:3") -> RunConfig:
    return RunConfig(backend="mine", client="./mine", servers=servers, nemesis=nemesis, seed=seed)


@pytest.mark.parametrize(
    "fault",
    [
        *("kill", "kill:server", "kill:all,rolling", "pause:random", "pause:majority"),
        *("partition:server", "partition:node", "partition:bridge", "swizzle"),
        *("slow:leader", "clock", "clock:random", "disk", "failover"),
    ],
)
def test_faults_that_could_strike_a_server_are_refused(fault: str) -> None:
    with pytest.raises(UserError, match="redis at c:3 is not lockcheck's") as refused:
        resolve(config(fault))
    assert "holder" in str(refused.value.cure)


def test_only_faults_of_clients_are_drawn() -> None:
    for seed in range(20):
        drawn = steps_of(planned(config("all", seed=seed)).nemesis)
        assert drawn
        assert {step.aim.name for step in drawn} <= {"holder", "client"}


def test_versions_and_addresses_are_told_apart() -> None:
    [one, two] = servers_of("redis=10.0.0.7:6379, [::1]:6380")
    assert (one.elsewhere, two.elsewhere) == (("10.0.0.7", 6379), ("::1", 6380))
    assert (one.name, two.name, two.port) == ("r1", "r2", 6380)
    [versioned] = servers_of("redis=7")
    assert (str(versioned.kind), versioned.elsewhere) == ("redis=7", None)
    for wrong in ("redis=a:1*3", "redis=a:", "redis=a:99999", "redis=a:1,,b:2", "redis=7,a:1"):
        with pytest.raises(UserError, match="is no address"):
            servers_of(wrong)
    with pytest.raises(UserError, match="unknown server 'oracle'"):
        servers_of("oracle=db:1521")
    with pytest.raises(UserError, match="10 of them"):
        servers_of("redis=" + ",".join(["a:1"] * 10))


def test_what_has_no_use_there_is_refused() -> None:
    with pytest.raises(UserError, match="--version is for servers that lockcheck starts"):
        resolve(
            RunConfig(backend="m", client="./m", servers="redis=a:1", version=("redis=7",), seed=1)
        )
    with pytest.raises(UserError, match="--servers is for a client of your own lock"):
        resolve(RunConfig(backend="redis", servers="redis=a:1", seed=1))
