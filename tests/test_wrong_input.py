"""Each mistake: one clear line for the cause, one for the cure, and the right exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import LOCKCHECK, RUNTIMES, lockcheck, need, traces_of

OK, USAGE, CLUSTER = 0, 2, 4
GOOD = """client,key,op,start_ns,end_ns,outcome,token
a,k,acquire,1000,2000,ok,1
a,k,release,3000,4000,ok,
b,k,acquire,5000,6000,ok,2
b,k,release,7000,8000,ok,
"""
LOCALLY = ("run", "--backend", "redis", "--runtime", "local")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backend", "redlok"], ["redlok", "redlock"]),
        (["--backend", "redis", "--backend=etcd"], ["one --backend", "lockcheck matrix"]),
        ([], ["--backend"]),
        (["--backend", "redis", "--ttl", "0"], ["too short", "1s"]),
        (["--backend", "redis", "--ttl", "soon"], ["soon", "500ms"]),
        (["--backend", "redis", "--ttl", "10ms"], ["--ttl", "200ms"]),
        (["--backend", "redis-naive", "--ttl", "1500ms"], ["steps of 1000 ms", "--ttl 2s"]),
        (["--backend", "redis", "--nemesis", "paus"], ["paus", "pause:server"]),
        (
            ["--backend", "redis", "--nemesis", "pause:everybody"],
            ["pause:everybody", "pause:holder"],
        ),
        (["--backend", "redis", "--guard", "fence"], ["fencing", "redis-fenced"]),
        (["--backend", "redis", "--guard", "cas", "--workload", "mutex"], ["storage", "register"]),
        (["--backend", "redis", "--check-validity", "--workload", "mutex"], ["register"]),
        (["--backend", "redis", "--clients", "0"], ["--clients", "100"]),
        (["--backend", "redis", "--keys", "0"], ["--keys"]),
        (["--backend", "redis", "--runtime", "podman"], ["podman", "docker"]),
        (["--backend", "redis", "--out", "/proc/nowhere"], ["/proc/nowhere", "--out"]),
    ],
)
def test_a_wrong_run(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    done = lockcheck("run", *arguments, cwd=tmp_path)
    assert done.returncode == USAGE, done.stderr
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["history.jsonl: it is empty"]),
        (b"not json\n", ["line 1", "malformed"]),
        (b'{"time":1,"process":0,"type":"ok","f":"acquire"}\n', ["line 1", "never invoked"]),
        (b'{"time":1}\n', ["line 1", "process"]),
        (b"\x00\xff\xfe\n", ["line 1"]),
        (b"[" * 100_000 + b"\n", ["line 1"]),
    ],
)
def test_a_wrong_history(content: bytes, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(content)
    done = lockcheck("check", str(path))
    output = (done.stdout + done.stderr).lower()
    assert done.returncode == USAGE
    assert all(word in output for word in words), output
    assert "traceback" not in output


def test_no_such_run(tmp_path: Path) -> None:
    done = lockcheck("check", "yesterday", cwd=tmp_path)
    assert done.returncode == USAGE
    assert "neither a run nor a history file" in done.stderr


def test_an_unreadable_history(tmp_path: Path) -> None:
    folder = tmp_path / "history.jsonl"
    folder.mkdir()
    done = lockcheck("check", str(folder))
    assert done.returncode == USAGE
    assert "cure" in done.stderr


def test_a_broken_configuration_file(tmp_path: Path) -> None:
    (tmp_path / "lockcheck.toml").write_text("[run\n")
    done = lockcheck("run", "--backend", "redis", cwd=tmp_path)
    assert done.returncode == USAGE
    assert "lockcheck.toml" in done.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[run]\nlease = "1s"\n', ["'lease'", "ttl"]),
        ('[runn]\nttl = "1s"\n', ["'runn'", "[run]"]),
        ('ttl = "1s"\n', ["'ttl'", "[run]"]),
    ],
)
def test_a_setting_that_there_is_not(content: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "lockcheck.toml").write_text(content)
    done = lockcheck("run", "--backend", "redis", cwd=tmp_path)
    assert done.returncode == USAGE
    assert all(word in done.stderr for word in words), done.stderr


def test_the_order_of_configuration(tmp_path: Path) -> None:
    """Command line over environment over lockcheck.toml; each shown by the error it causes."""
    (tmp_path / "lockcheck.toml").write_text('[run]\nbackend = "redis"\nttl = "1ms"\nclients = 0\n')

    def error(*options: str, **environment: str) -> str:
        done = lockcheck("run", *options, cwd=tmp_path, variables=environment)
        assert done.returncode == USAGE
        return done.stderr

    assert "--clients 0" in error()
    assert "--clients 101" in error(LOCKCHECK_RUN_CLIENTS="101")
    assert "--clients 102" in error("--clients", "102", LOCKCHECK_RUN_CLIENTS="101")
    assert "--ttl 1ms" in error("--clients", "5")


def test_no_docker() -> None:
    nowhere = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
    done = lockcheck("run", "--backend", "redis", "--runtime", "docker", variables=nowhere)
    assert done.returncode == CLUSTER
    assert "the docker runtime cannot run here" in done.stderr
    assert "cure" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_namespaces(tmp_path: Path) -> None:
    """A system that refuses: an `unshare` that fails, first on the PATH."""
    refusal = tmp_path / "unshare"
    refusal.write_text("#!/bin/sh\nexit 1\n")
    refusal.chmod(0o755)
    done = lockcheck(*LOCALLY, cwd=tmp_path, variables={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == CLUSTER
    assert "namespaces" in done.stderr
    assert "sysctl" in done.stderr


def test_no_redis(tmp_path: Path) -> None:
    done = lockcheck(
        *LOCALLY, cwd=tmp_path, variables={"LOCKCHECK_REDIS_SERVER": str(tmp_path / "nothing")}
    )
    assert done.returncode == CLUSTER
    assert "LOCKCHECK_REDIS_SERVER" in done.stderr


@pytest.mark.cluster
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_too_few_open_files(runtime: str, tmp_path: Path) -> None:
    """Said before anything is there that could not be removed again."""
    need(runtime)
    limit = 'ulimit -n 40; exec "$@"'
    options = ("--backend", "redis", "--runtime", runtime, "--out", str(tmp_path))
    done = subprocess.run(
        ["bash", "-c", limit, "bash", *LOCKCHECK, "run", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == CLUSTER, done.stderr
    assert "a run with 7 nodes takes 92 open files, and 40 are allowed" in done.stderr
    assert "cure: raise the limit: ulimit -n 1024" in done.stderr
    [folder] = [path for path in tmp_path.iterdir() if not path.is_symlink()]
    assert traces_of(folder.name, runtime) == []


def test_a_server_that_does_not_start(tmp_path: Path) -> None:
    need("local")
    server = tmp_path / "redis-server"
    server.write_text("#!/bin/sh\necho 'FATAL: this one never starts' >&2\nexit 1\n")
    server.chmod(0o755)
    done = lockcheck(*LOCALLY, cwd=tmp_path, variables={"LOCKCHECK_REDIS_SERVER": str(server)})
    assert done.returncode == CLUSTER
    assert "FATAL: this one never starts" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.cluster
def test_a_port_in_use_on_the_host_is_nobodys_business(
    redis_address: tuple[str, int], tmp_path: Path
) -> None:
    """Nodes have networks of their own: what listens on this host cannot be in their way."""
    need("local")
    assert redis_address[1]
    done = lockcheck(
        *("run", "--backend", "redis", "--runtime", "local", "--nemesis", "none"),
        *("--time-limit", "2s", "--out", str(tmp_path / "out")),
    )
    assert done.returncode == 0, done.stderr


def test_python_is_called_as_a_module() -> None:
    done = lockcheck("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("lockcheck, version")


@pytest.mark.parametrize("arguments", [["explain", "foo"], ["run", "--backend", "foo"]])
def test_a_full_log_does_not_change_the_exit_code(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run([*LOCKCHECK, *arguments], stderr=full, check=False)
    assert done.returncode == USAGE


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("options", [[], ["--json"], ["--report", "page.html"]])
def test_a_closed_stream_does_not_change_the_verdict(
    closed: str, options: list[str], tmp_path: Path
) -> None:
    history = tmp_path / "history.csv"
    history.write_text(GOOD)
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *LOCKCHECK, "check", str(history), *options]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == OK
    assert b"Traceback" not in done.stderr
    for page in tmp_path.glob("*.html"):  # it did not get the number of a stream that was closed
        assert page.read_text().startswith("<!doctype html>")
        assert page.read_text().rstrip().endswith("</html>")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell(shell: str) -> None:
    done = lockcheck(variables={"_LOCKCHECK_COMPLETE": f"{shell}_source"})
    assert done.returncode == OK, done.stderr
    assert "lockcheck" in done.stdout
    words = {"COMP_WORDS": "lockcheck run --backend redlo", "COMP_CWORD": "3"}
    words |= {"_LOCKCHECK_COMPLETE": "bash_complete"}
    assert lockcheck(variables=words).stdout.split() == ["plain,redlock", "plain,redlock-3"]


def test_no_control_codes_reach_the_terminal(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text('{"time":1,"process":"\\u001b[31mx","type":"ok","f":"\\u001b[31mread"}\n')
    done = lockcheck("check", str(history))
    assert done.returncode == USAGE
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    "setting", ["ttl = 0", "clients = 2.7", "clients = [1]", "think = true", "nemesis = []"]
)
def test_values_in_the_file_are_read_like_the_command_line(setting: str, tmp_path: Path) -> None:
    (tmp_path / "lockcheck.toml").write_text(f"[run]\n{setting}\n")
    done = lockcheck("run", "--backend", "redis", cwd=tmp_path)
    assert done.returncode == USAGE, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.cluster
def test_code_in_this_folder_is_not_run(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "queue.py").write_text("raise SystemExit(7)\n")
    entry = [sys.executable, "-P", "-m", "lockcheck"]  # as the installed command does
    done = subprocess.run(
        [*entry, "run", "--backend", "redis", "--nemesis", "none", "--time-limit", "2s"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.cluster
def test_a_closed_progress_pipe_does_not_stop_the_run(tmp_path: Path) -> None:
    need("local")
    reading, writing = os.pipe()
    os.close(reading)
    options = ("--backend", "redis", "--nemesis", "none", "--time-limit", "2s", "--json")
    done = subprocess.run(
        [*LOCKCHECK, "run", *options],
        stdout=subprocess.PIPE,
        stderr=writing,
        cwd=tmp_path,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 0
    assert (tmp_path / "results" / "latest" / "report.html").exists()
