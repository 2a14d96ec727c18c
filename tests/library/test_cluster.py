"""A cluster in a user's own test: programs on nodes, ways to servers, faults."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import redis

import lockcheck
from lockcheck.errors import ClusterError, FaultError, UserError
from tests.library.agents import agent_of
from tests.running import RUNTIMES, links_of_the_host, need, traces_of
from tests.waiting import wait_for

ECHO = "import sys\nfor line in sys.stdin: print(line.strip().upper(), flush=True)"


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[lockcheck.Cluster]:
    need(request.param)
    with lockcheck.cluster("redis", clients=2, storage="redis", runtime=request.param) as cluster:
        yield cluster


in_both_runtimes = pytest.mark.parametrize("cluster", RUNTIMES, indirect=True)


def connected(cluster: lockcheck.Cluster, server: str, via: str) -> redis.Redis:
    host, port = cluster.forward(server, via=via)
    assert host == "127.0.0.1"
    return redis.Redis(host, port, socket_timeout=1, retry=None)  # type: ignore[arg-type]


@in_both_runtimes
def test_a_program_is_talked_to_and_ends_as_it_likes(cluster: lockcheck.Cluster) -> None:
    script = "import os, sys; print(os.environ['MINE'], input()); sys.exit(int(input()))"
    program = cluster.run("c1", [cluster.python, "-c", script], environment={"MINE": "yes"})
    program.say("häh")
    assert program.hear() == "yes häh"
    with pytest.raises(TimeoutError, match="the program on c1 printed no line"):
        program.hear(timeout_s=0.01)
    program.say("7")
    assert program.wait() == 7
    for _ in range(2):
        with pytest.raises(EOFError, match="ended with 7"):
            program.hear()
    with pytest.raises(EOFError, match="ended with 7"):
        program.say("more")


@in_both_runtimes
def test_paths_are_words_and_exit_codes_are_the_programs(cluster: lockcheck.Cluster) -> None:
    shown = cluster.run(
        "c1", [Path("/bin/sh"), "-c", "echo $A"], environment={"A": Path("/some/where")}
    )
    assert shown.hear() == "/some/where"
    for code in (0, 126, 127):
        assert cluster.run("c1", ["sh", "-c", f"exit {code}"]).wait() == code


@in_both_runtimes
def test_a_program_can_be_sent_a_signal(cluster: lockcheck.Cluster) -> None:
    program = cluster.run("c1", ["sleep", "600"])
    program.signal(signal.SIGTERM)
    assert program.wait() == -signal.SIGTERM


@in_both_runtimes
def test_who_is_paused_says_nothing_until_it_is_healed(cluster: lockcheck.Cluster) -> None:
    paused, other = (cluster.run(node, [cluster.python, "-c", ECHO]) for node in cluster.clients)
    for each in (paused, other):
        each.say("up")
        assert each.hear() == "UP"
    with cluster.faults.pause("c1") as fault:
        assert (str(fault), fault.nodes) == ("pause:c1", ("c1",))
        assert "in state T" in fault.proof
        paused.say("anybody there")
        other.say("over here")
        assert other.hear() == "OVER HERE"
        with pytest.raises(TimeoutError):
            paused.hear(timeout_s=0.2)
    assert paused.hear() == "ANYBODY THERE"
    with cluster.faults.kill("c1"), pytest.raises(EOFError):
        paused.hear()
    assert paused.wait() == -signal.SIGKILL
    again = cluster.run("c1", [cluster.python, "-c", ECHO])
    again.say("back")
    assert again.hear() == "BACK"


@in_both_runtimes
def test_connections_are_those_of_the_node_that_they_go_by(cluster: lockcheck.Cluster) -> None:
    cut, whole = (connected(cluster, "r1", via) for via in cluster.clients)
    beside = connected(cluster, "s1", "c1")
    large = b"x" * 1_000_000
    assert cut.set("k", large)
    with cluster.faults.partition("c1") as fault:
        assert "silent" in fault.proof
        assert whole.get("k") == large
        assert beside.ping()
        with pytest.raises(redis.exceptions.TimeoutError):
            cut.ping()
    assert cut.ping()
    with cluster.fault("kill:server,no-data") as fault:
        assert fault.nodes == ("r1",)
        with pytest.raises(redis.exceptions.ConnectionError):
            whole.ping()
    assert whole.get("k") is None  # the same server under its old address, without its memory


@in_both_runtimes
def test_a_clock_is_moved_for_as_long_as_the_block_lasts(cluster: lockcheck.Cluster) -> None:
    way = connected(cluster, "r1", "c1")
    way.set("k", "v", px=600_000)
    hour = cluster.faults.clock("r1", jump="+1h", wall=True)
    before = seconds(way)
    for _ in range(2):  # a fault can be had again
        with hour as fault:
            assert fault.nodes == ("r1",)
            assert seconds(way) >= before + 3600
            assert way.get("k") is None
        assert seconds(way) < before + 3600


def seconds(way: redis.Redis) -> int:
    return int(way.time()[0])


@in_both_runtimes
def test_faults_by_a_node_can_be_nested_and_side_by_side(cluster: lockcheck.Cluster) -> None:
    struck: list[tuple[str, ...]] = []

    def strike(node: str) -> None:
        with cluster.faults.partition(node, one_way="in") as fault:
            struck.append(fault.nodes)

    with cluster.faults.pause("r1"), cluster.faults.pause("s1"):
        threads = [threading.Thread(target=strike, args=(node,)) for node in cluster.clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(struck) == [("c1",), ("c2",)]
    assert connected(cluster, "s1", "c2").ping()


@in_both_runtimes
def test_one_fault_twice_is_refused_and_the_first_goes_on(cluster: lockcheck.Cluster) -> None:
    way = connected(cluster, "r1", "c1")
    pause = cluster.faults.pause("r1", "s1")
    with pause:
        with pytest.raises(UserError, match=r"pause:r1\+s1 is under way already"):
            pause.__enter__()
        with (
            pytest.raises(FaultError, match=r"pause:r1 cannot strike r1 during pause:r1\+s1"),
            cluster.faults.pause("r1"),
        ):
            raise AssertionError("the block must not begin")
        with pytest.raises(redis.exceptions.TimeoutError):
            way.ping()
    with pause:
        pass
    with cluster.faults.partition("c1", one_way="in"), cluster.faults.partition("c1"):
        pass
    assert connected(cluster, "r1", "c1").ping()


@in_both_runtimes
def test_what_cannot_be_proven_is_an_error_and_healed(cluster: lockcheck.Cluster) -> None:
    cluster.run("c2", ["sleep", "600"])
    with cluster.faults.kill("c2"):
        pass
    with (
        pytest.raises(FaultError, match="pause:c2 was not proven: c2 has no process left"),
        cluster.faults.pause("c2"),
    ):
        raise AssertionError("the block must not begin")
    with cluster.faults.partition("c2"):  # nothing of it is left in the way
        pass


@in_both_runtimes
def test_a_heal_that_finds_it_over_already_is_an_error(cluster: lockcheck.Cluster) -> None:
    program = cluster.run("c1", [cluster.python, "-c", ECHO])
    fault = cluster.faults.pause("c1")
    fault.__enter__()
    program.signal(signal.SIGCONT)
    program.say("awake")
    assert program.hear() == "AWAKE"
    with pytest.raises(FaultError, match="resumed c1"):
        fault.__exit__(None, None, None)


@in_both_runtimes
def test_an_exception_heals_and_is_the_one_that_is_seen(cluster: lockcheck.Cluster) -> None:
    way = connected(cluster, "r1", "c1")
    with pytest.raises(ZeroDivisionError), cluster.faults.pause("r1"):
        raise ZeroDivisionError
    assert way.ping()


@in_both_runtimes
def test_what_makes_no_sense_is_refused_with_the_cure(cluster: lockcheck.Cluster) -> None:
    faults = cluster.faults

    def run(command: Any, environment: Any = None) -> Any:
        return cluster.run("c1", command, environment=environment)

    for make, reason, cure in (
        (faults.pause, "it is not known here who holds", "name the node"),
        (lambda: faults.pause("c9"), "unknown node 'c9'", "r1, s1, c1, c2"),
        (lambda: cluster.fault("pause:for=3s", "c1"), "for= has no meaning here", "leave it out"),
        (lambda: faults.partition("leader"), "redis has no leader", "aim at server"),
        (lambda: cluster.fault("pause:server then pause:client"), "not one fault", "nest"),
        (lambda: cluster.fault("none"), "not one fault", "nest"),
        (lambda: cluster.run("r1", ["true"]), "unknown name 'r1'", "c1, c2"),
        (lambda: cluster.forward("c1", via="c2"), "unknown name 'c1'", "r1, s1"),
        (lambda: cluster.run("c1", "ls -l"), "a command is a list", r"shlex.split('ls -l')"),
        (lambda: cluster.run("c1", []), "the command names no program", '["program"'),
        (lambda: run(["sleep", 5]), "a part of a command is a text, and 5 is none", "write '5'"),
        (lambda: run(["a\0b"]), "cannot have a NUL in it", "leave it out"),
        (lambda: run(["nonsense"]), "nonsense cannot be run on c1: .*No such file", "of the image"),
        (lambda: run(["/etc/passwd"]), "passwd cannot be run on c1: .*Permission denied", "name a"),
        (lambda: run(["true"], {"A": 1}), "the variable A is a text, and 1 is none", "write '1'"),
        (lambda: run(["true"], {"A=B": "1"}), "'A=B' is no name of a variable", '{"NAME"'),
        (lambda: run(["true"], "A=1"), "an environment is a dict", '{"NAME"'),
        (lambda: run(["true"]).signal(999), "999 is no signal", "SIGTERM"),
        (lambda: run(["true"]).say(b"x"), "a line is a text, and b'x' is none", "quotes"),
        (lambda: cluster.port(""), "unknown name ''", "r1, s1"),
        (lambda: faults.pause(cluster.clients), "by its name, and .* is none", "pause(*cluster."),
        (lambda: faults.of(cast("Any", 5)), "a fault is a text", "quotes"),
    ):
        with pytest.raises(UserError, match=reason) as refused:
            make()
        assert cure in str(refused.value)
    with pytest.raises(AttributeError, match="unknown fault 'nonsense': choose from pause"):
        faults.nonsense("c1")


@pytest.mark.cluster
@pytest.mark.docker
def test_clients_can_have_an_image_of_their_own() -> None:
    from lockcheck.compose.images.build import bring_images

    need("docker")
    [image] = bring_images(["redis"], print).values()
    with lockcheck.cluster("redis", runtime="docker", image=image) as cluster:
        assert cluster.run("c1", ["redis-cli", "-h", "r1", "ping"]).hear() == "PONG"
        with pytest.raises(UserError, match=r"python3 cannot be run on c1: .*No such file"):
            cluster.run("c1", ["python3", "--version"])
        assert cluster.run("c1", ["sh", "-c", "exit 127"]).wait() == 127


@pytest.mark.cluster
def test_servers_can_be_asked_for_by_kind_and_what_they_said_is_kept(tmp_path: Path) -> None:
    need("local", "etcd")
    asked = lockcheck.cluster("etcd", servers=3, clients=1, runtime="local", folder=tmp_path)
    with asked as cluster:
        assert (cluster.servers, cluster.port("e2")) == (("e1", "e2", "e3"), 2379)
        with cluster.faults.partition("leader", one_way="in") as fault:
            assert fault.nodes[0] in cluster.servers
        program = cluster.run("c1", [sys.executable, "-c", "raise SystemExit('my last words')"])
        assert program.wait() == 1
    assert "my last words" in (cluster.folder / "nodes" / "c1" / "output.log").read_text()


@pytest.mark.cluster
def test_a_cluster_that_has_ended_says_so() -> None:
    need("local")
    with lockcheck.cluster("redis", runtime="local") as cluster:
        program = cluster.run("c1", ["echo", "a", "last", "word"])
        assert program.wait() == 0
        sleeping = cluster.run("c1", ["sleep", "600"])
        hearing = ThreadPoolExecutor(1).submit(sleeping.hear, timeout_s=600)
        fault = cluster.faults.pause("r1")
    assert program.hear() == "a last word"
    with pytest.raises(ClusterError, match="the cluster has ended"):
        hearing.result(timeout=60)
    for use in (
        lambda: cluster.run("c1", ["true"]),
        lambda: cluster.forward("r1", via="c1"),
        lambda: sleeping.say("more"),
        sleeping.wait,
        lambda: sleeping.signal(signal.SIGTERM),
        fault.__enter__,
    ):
        with pytest.raises(ClusterError, match="the cluster has ended") as refused:
            use()
        assert "within its `with` block" in str(refused.value)


@pytest.mark.cluster
def test_a_program_of_an_agent_that_was_killed_is_no_longer_waited_for() -> None:
    need("local")
    with lockcheck.cluster("redis", runtime="local") as cluster:
        program = cluster.run("c1", ["sleep", "600"])
        os.kill(agent_of(cluster), signal.SIGKILL)
        with pytest.raises(ClusterError, match="the run's agent exited"):
            program.hear(timeout_s=600)


@pytest.mark.cluster
def test_what_is_too_much_for_the_agent_does_it_no_harm() -> None:
    need("local")
    with lockcheck.cluster("redis", runtime="local") as cluster:
        with pytest.raises(UserError, match=r"'run' with .* bytes is too much at once"):
            cluster.run("c1", ["true", "x" * (1 << 24)])
        assert cluster.run("c1", ["true"]).wait() == 0


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"lock": "nonsense"}, "unknown server 'nonsense'"),
        ({"lock": 5}, "the name of a lock is a text, and 5 is none"),
        ({"lock": "redis", "clients": 0}, "clients=0"),
        ({"lock": "redis", "clients": "2"}, "clients='2'"),
        ({"lock": "redis", "servers": -1}, "servers=-1 is not possible"),
        ({"lock": "redis", "servers": 4000}, "servers=4000"),
        ({"lock": "redis", "servers": 2.5}, r"servers=2\.5"),
        ({"lock": "redis", "seed": "x"}, "seed='x'"),
        ({"lock": "redis", "servers": 3, "version": ["redis=7"]}, "version= is for the servers"),
        ({"lock": "redis", "version": "redis=7"}, "version is a list of texts"),
        ({"lock": "redis", "storage": 5}, "storage is a text"),
        ({"lock": "redis", "runtime": "moon"}, "unknown runtime 'moon'"),
        ({"lock": "redis", "storage": "disk"}, "unknown server 'disk'"),
        ({"lock": "redlock", "version": ["redis=1"]}, "--version redis=1"),
    ],
)
def test_clusters_that_cannot_be(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason) as refused, lockcheck.cluster(**given):
        raise AssertionError("it must not begin")
    assert refused.value.cure


def test_a_runtime_of_the_environment_is_named_with_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOCKCHECK_RUN_RUNTIME", "moon")
    with (
        pytest.raises(UserError, match="unknown runtime 'moon' in LOCKCHECK_RUN_RUNTIME"),
        lockcheck.cluster("redis"),
    ):
        raise AssertionError("it must not begin")


@pytest.mark.cluster
def test_local_has_no_images_and_takes_its_folder_as_a_text(tmp_path: Path) -> None:
    need("local")
    with (
        pytest.raises(UserError, match="local has no containers"),
        lockcheck.cluster("redis", runtime="local", image="mine"),
    ):
        raise AssertionError("it must not begin")
    with lockcheck.cluster("redis", runtime="local", folder=str(tmp_path)) as cluster:
        assert cluster.folder.parent == tmp_path


# Stands in the block of a fault until something ends it.
STANDING = """
import sys, time, lockcheck
from pathlib import Path
with lockcheck.cluster("redis", runtime=sys.argv[1], folder=Path(sys.argv[2])) as cluster:
    program = cluster.run("c1", ["sleep", "600"])
    with cluster.faults.pause("c1") as fault:
        print(cluster.folder.name, flush=True)
        time.sleep(600)
"""


@contextmanager
def standing(runtime: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """It, and the id of its cluster, once the fault is proven."""
    process = subprocess.Popen(
        [sys.executable, "-c", STANDING, runtime, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        assert run_id, process.communicate()
        yield process, run_id
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_ctrl_c_heals_and_leaves_nothing(runtime: str, tmp_path: Path) -> None:
    need(runtime)
    links = links_of_the_host()
    with standing(runtime, tmp_path) as (process, run_id):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert traces_of(run_id, runtime) == []
    if runtime == "local":
        assert links_of_the_host() == links


@pytest.mark.cluster
def test_local_is_gone_by_itself_after_kill_9(tmp_path: Path) -> None:
    need("local")
    with standing("local", tmp_path) as (process, run_id):
        process.kill()
        process.wait()
        wait_for(lambda: not traces_of(run_id, "local"), "nothing carries its id")
