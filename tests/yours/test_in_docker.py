"""Clients of one's own in docker: from a folder of this host, and in an image of their own."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import docker
import pytest

from lockcheck.backends.program import FOLDER_THERE, TOOLS_THERE
from lockcheck.backends.program.words import command_there
from lockcheck.compose.docker.engine import connect
from lockcheck.compose.images.recipes import PYTHON_IMAGE, recipe
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.run.resolve import resolve
from lockcheck.run.validation import check_there
from tests.running import docker_things_of, lockcheck, need, run_under_way, traces_of
from tests.waiting import wait_for
from tests.yours.test_your_lock import CAREFUL, NAUGHTY

OK, VIOLATION, USAGE, UNKNOWN = 0, 1, 2, 3
MILD = ("--time-limit", "15s", "--clients", "3")  # for a busy machine
PYTHON, STATIC, BARE = (f"lockcheck-test-{name}:dev" for name in ("python", "static", "bare"))
# As an image of its own would have it: another user, folder and variable.
OURS = """
USER 1234:99
ENV WHOSE=mine
WORKDIR /app
"""
TELLS = """
import os, sys

rights = [line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")]
print("I am", os.getuid(), os.getgid(), os.getcwd(), os.environ["WHOSE"], *rights, file=sys.stderr)
"""


def build(engine: docker.DockerClient, tag: str, dockerfile: str, files: dict[str, bytes]) -> None:
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, data in {**files, "Dockerfile": dockerfile.encode()}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755
            tar.addfile(entry, io.BytesIO(data))
    context.seek(0)
    engine.images.build(fileobj=context, custom_context=True, tag=tag, rm=True)


@pytest.fixture(scope="module")
def images() -> Iterator[docker.DockerClient]:
    """One with Python in it, and one with nothing but a command that is not there."""
    need("docker")
    with closing(connect()) as engine:
        files = {"locks.py": CAREFUL.encode(), "naughty.py": f"{TELLS}{NAUGHTY}".encode()}
        base = f"FROM {recipe(PYTHON_IMAGE).tag}\nCOPY *.py /app/\n"
        build(engine, PYTHON, f"{base}{OURS}", files)
        build(engine, BARE, 'FROM scratch\nCOPY locks.py /\nENTRYPOINT ["/nothing"]\n', files)
        yield engine
        for tag in (PYTHON, BARE):
            engine.images.remove(tag, force=True)


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image with one file in it: what `init go` writes, built without libraries."""
    need("docker")
    if shutil.which("go") is None:
        pytest.skip("no Go: apt-get install golang-go")
    folder = tmp_path_factory.mktemp("go")
    assert lockcheck("init", "go", cwd=folder).returncode == OK
    command = ["env", "CGO_ENABLED=0", "go", "build", "-o", "mylock", "mylock.go"]
    subprocess.run(command, cwd=folder, check=True)
    program = {"mylock": (folder / "mylock").read_bytes()}
    with closing(connect()) as engine:
        build(engine, STATIC, f'FROM scratch\nCOPY mylock /\n{OURS}ENTRYPOINT ["/mylock"]', program)
        yield STATIC
        engine.images.remove(STATIC, force=True)


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = ("run", "--runtime", "docker", "--out", str(folder / "out"), *MILD)
    return lockcheck(*command, *options, cwd=folder)


def proofs(folder: Path) -> list[str]:
    """What was seen of its faults."""
    events = (folder / "out" / "latest" / "history.jsonl").read_text().splitlines()
    nemesis = [event for line in events if (event := json.loads(line))["process"] == "nemesis"]
    return [str(each["value"]) for each in nemesis if each["type"] == "ok" and "value" in each]


LONG = partial(pytest.param, marks=pytest.mark.long)

# --- from a folder of this host ------------------------------------------------------------------


@pytest.mark.cluster
@pytest.mark.docker
@pytest.mark.parametrize("client", [LONG("locks:lock"), "./mylock.sh"])
def test_a_client_in_a_folder_of_this_host(client: str, tmp_path: Path) -> None:
    need("docker")
    (tmp_path / "locks.py").write_text(CAREFUL)
    assert lockcheck("init", "bash", cwd=tmp_path).returncode == OK
    calm = run(tmp_path, "--client", client, "--nemesis", "none")
    assert calm.returncode == OK, calm.stdout + calm.stderr
    valid = lockcheck("validate", "--runtime", "docker", "--client", client, cwd=tmp_path)
    assert valid.returncode == OK, valid.stdout + valid.stderr


@pytest.mark.cluster
@pytest.mark.docker
def test_what_is_not_in_the_container_is_named(tmp_path: Path) -> None:
    need("docker")
    assert lockcheck("init", "bash", cwd=tmp_path).returncode == OK
    shutil.move(tmp_path / "mylock.sh", tmp_path.parent / "elsewhere.sh")
    failed = run(tmp_path, "--client", str(tmp_path.parent / "elsewhere.sh"))
    assert "the client program does not begin" in failed.stderr
    assert "No such file or directory" in failed.stderr


def test_the_same_command_in_a_container() -> None:
    helper = f"{TOOLS_THERE}/lockcheck_client.py"
    assert command_there("a.b:Lock", "/mine") == ("python3", "-u", helper, "a.b:Lock")
    assert command_there("a:Lock", python="/opt/python")[:2] == ("/opt/python", "-u")
    there = command_there("/mine/run.sh --set=/mine/x /mine2/y ./z /not/mine/w", "/mine")
    x = f"--set={FOLDER_THERE}/x"
    assert there == (f"{FOLDER_THERE}/run.sh", x, "/mine2/y", "./z", "/not/mine/w")


# --- in an image of its own ----------------------------------------------------------------------


@pytest.mark.cluster
@pytest.mark.docker
@pytest.mark.parametrize(
    ("fault", "proof"),
    [
        ("pause", r"threads of 2 processes in state T"),
        LONG("kill:holder", r"2 processes were killed, and none is left"),
        LONG("clock:client", r"in 2 processes, by vDSO"),
        LONG("partition", r"2 links silent"),
    ],
)
def test_each_fault_of_a_client_strikes_what_is_in_its_image(
    fault: str, proof: str, static: str, tmp_path: Path
) -> None:
    done = run(tmp_path, "--image", static, "--nemesis", fault, "--ttl", "500ms")
    assert done.returncode in (OK, VIOLATION), done.stdout + done.stderr
    result = json.loads((tmp_path / "out" / "latest" / "verdict.json").read_text())
    assert {f["blame"] for f in result["findings"] if f["effect"] == "violation"} <= {"holder"}
    assert result["counts"]["acquisitions"] > 50
    assert any(re.search(proof, seen) for seen in proofs(tmp_path))
    again = next(line for line in done.stdout.splitlines() if line.startswith("run again"))
    assert f"--client /mylock --image {static}" in again
    page = (tmp_path / "out" / "latest" / "report.html").read_text()
    assert f"{static}</" in page
    assert "sha256:" in page


@pytest.mark.cluster
@pytest.mark.docker
@pytest.mark.long
def test_an_image_is_validated(static: str, tmp_path: Path) -> None:
    valid = lockcheck("validate", "--image", static, cwd=tmp_path)
    assert valid.returncode == OK, valid.stdout + valid.stderr
    assert f"lockcheck run --image {static}" in valid.stdout


@pytest.mark.cluster
@pytest.mark.docker
@pytest.mark.usefixtures("images")
@pytest.mark.long
def test_a_program_in_an_image_that_does_whatever_it_wants_is_outlived(tmp_path: Path) -> None:
    naughty = ("--image", PYTHON, "--client", "naughty:Naughty", "--nemesis", "none")
    done = run(tmp_path, *naughty)
    assert done.returncode in (OK, UNKNOWN), done.stdout + done.stderr
    assert "the program    ended " in done.stdout
    assert "and was begun anew" in done.stdout
    logs = (tmp_path / "out" / "latest" / "nodes").glob("c*/output.log")
    texts = [log.read_text(errors="replace") for log in logs]
    assert all("I am 1234 99 /app mine 0000000000000000" in text for text in texts)
    assert not any("lockcheck/client" in text for text in texts)  # no traceback of ours


@pytest.mark.cluster
@pytest.mark.docker
@pytest.mark.usefixtures("images")
def test_nothing_stays_of_a_run_that_was_killed(tmp_path: Path) -> None:
    options = ("--image", PYTHON, "--client", "locks:lock", "--nemesis", "pause", "--ttl", "20s")
    with run_under_way(tmp_path / "out", "docker", *options) as (process, run_id):
        assert "c1-program" in " ".join(docker_things_of(run_id))
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(
            lambda: not [each for each in traces_of(run_id, "docker") if "process" in each],
            "its processes are gone",
        )
    wait_for(lambda: lockcheck("clean").returncode == OK, "it is cleaned")
    assert traces_of(run_id, "docker") == []


@pytest.mark.cluster
@pytest.mark.docker
@pytest.mark.usefixtures("images")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--image", "no-such-image:dev"), "the Docker engine has no image no-such-image:dev"),
        (("--image", BARE), "/nothing"),
        (("--image", PYTHON, "--client", "/bin/false"), "the client program ended at once"),
    ],
)
def test_what_cannot_be_used_is_named_before_the_run(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    failed = run(tmp_path, *options)
    assert failed.returncode == USAGE, failed.stderr
    assert words in failed.stderr
    assert "cure:" in failed.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"image": "mine:dev", "client": "/mine", "runtime": "local"}, "--image is for docker"),
        ({"image": "mine:dev"}, "--image is for a client of your own lock"),
    ],
)
def test_what_does_not_go_together_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        resolve(RunConfig(backend="redis", seed=1, **given))  # type: ignore[arg-type]


def test_what_is_this_hosts_is_refused_in_containers() -> None:
    for option, given in (("python", "python3.12"), ("requirements", ("redis",))):
        config = RunConfig(backend="m", client="a:b", seed=1, **{option: given})  # type: ignore[arg-type]
        with pytest.raises(UserError, match=f"--{option} is for this host's Python"):
            check_there(config)
    check_there(RunConfig(backend="m", client="a:b", image="mine", python="/opt/python", seed=1))
