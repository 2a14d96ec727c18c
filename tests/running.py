"""lockcheck as a process of its own, and what carries a run's id on this machine."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from lockcheck.compose.docker.engine import connect, why_no_engine
from lockcheck.compose.images.base_image import NO_BASE
from lockcheck.compose.local.runtime import LocalRuntime
from lockcheck.servers.kind import Kind
from tests.waiting import wait_for

CLUSTER_ERROR = 4
LOCKCHECK = (sys.executable, "-m", "lockcheck")


def lockcheck(
    *arguments: str,
    cwd: Path | None = None,
    timeout_s: float = 240,
    variables: Mapping[str, str] | None = None,  # beside those that there are
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LOCKCHECK, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=timeout_s,
        env={**os.environ, **(variables or {})},
    )


def need(runtime: str, *servers: Kind | str) -> None:
    """Skips, and says why, where this host cannot run it with these servers (a Redis, if none)."""
    if reason := why_not(runtime, *servers):
        pytest.skip(f"no {runtime} runtime: {reason}")


def why_not(runtime: str, *servers: Kind | str) -> str:
    """Empty where it can; then what it takes is there."""
    kinds = tuple(Kind.parse(str(each)) for each in servers or ("redis",))
    return LocalRuntime().why_not(kinds) if runtime == "local" else _why_no_docker(kinds)


@cache
def _why_no_docker(kinds: tuple[Kind, ...]) -> str:
    """Images of these servers, and Compose, are brought as a user would: on a new machine it takes
    a minute, once."""
    if reason := why_no_engine():
        return reason
    built = lockcheck("images", "build", *map(str, kinds), timeout_s=600)
    if built.returncode == CLUSTER_ERROR and NO_BASE in built.stderr:
        return built.stderr[built.stderr.index(NO_BASE) :].strip()
    assert built.returncode == 0, built.stderr
    return ""


RUNTIMES = (
    pytest.param("local", marks=pytest.mark.cluster),
    pytest.param("docker", marks=[pytest.mark.cluster, pytest.mark.docker]),
)


@contextmanager
def run_under_way(
    out: Path, runtime: str, *options: str, within: tuple[str, ...] = ()
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A run of a lock, and its id, once its nodes are ready; killed at the end if it still runs."""
    command = [*within, *LOCKCHECK, "run", "--runtime", runtime, "--out", str(out)]
    command += ["--time-limit", "120s", "--no-stop-on-violation", *options]
    errors = out.parent / f"{out.name}.stderr"
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True
        )
    try:
        wait_for(
            lambda: "nodes ready" in errors.read_text() or process.poll() is not None,
            "the nodes are ready",
            timeout_s=180,
        )
        assert process.poll() is None, errors.read_text()
        [folder] = [path for path in out.iterdir() if not path.is_symlink()]
        yield process, folder.name
    finally:
        process.kill()
        process.communicate()


@contextmanager
def on_a_terminal(
    command: Sequence[str],
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], None]]]:
    """A process that leads the session of a terminal of its own, and what closes the window."""
    window, terminal = os.openpty()
    closing = threading.Event()

    def show() -> None:
        while not closing.is_set():
            if select.select([window], [], [], 0.1)[0]:
                with suppress(OSError):  # nothing has the terminal open any more
                    os.read(window, 1 << 16)
        os.close(window)

    def hang_up() -> None:
        closing.set()
        showing.join()

    showing = threading.Thread(target=show)
    lead = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    leader = [sys.executable, "-c", f"{lead}; os.execvp(sys.argv[1], sys.argv[1:])", *command]
    with subprocess.Popen(
        leader, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    ) as process:
        os.close(terminal)
        showing.start()
        try:
            yield process, hang_up
        finally:
            process.kill()
            hang_up()


def processes_of(run_id: str) -> list[int]:
    """Every process on this machine whose command or environment names the run, and all that are
    in a PID namespace with one: Redis writes its title over its command and environment."""
    naming: set[int] = set()
    namespaces: dict[int, Path] = {}
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            output = (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
            namespaces[int(proc.name)] = (proc / "ns" / "pid").readlink()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if run_id.encode() in output:
            naming.add(int(proc.name))
    of_the_run = {namespaces[pid] for pid in naming} - {Path("/proc/self/ns/pid").readlink()}
    return [
        pid for pid, namespace in namespaces.items() if namespace in of_the_run or pid in naming
    ]


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def stopped_clients() -> list[int]:
    """Clients in state T, in whatever container or namespace."""
    found = []
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            is_client = b"lockcheck.client.worker" in (proc / "cmdline").read_bytes()
            state = (proc / "stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if is_client and state == "T":
            found.append(int(proc.name))
    return found


def docker_things_of(run_id: str) -> list[str]:
    """Containers, networks and volumes that carry the run's id, in whatever way."""
    client = connect()
    try:
        label: dict[str, str | list[str] | bool] = {"label": f"lockcheck.run={run_id}"}
        containers = client.containers.list(all=True, filters=label, ignore_removed=True)
        found = [str(container.name) for container in containers]
        found += [str(n.name) for n in client.networks.list(filters=label)]
        found += [str(v.name) for v in client.volumes.list(filters=label)]
        found += [str(n.name) for n in client.networks.list() if run_id in str(n.name)]
        found += [str(v.name) for v in client.volumes.list() if run_id in str(v.name)]
    finally:
        client.close()
    return sorted(set(found))


def traces_of(run_id: str, runtime: str) -> list[str]:
    traces = [f"process {pid}" for pid in processes_of(run_id)]
    return traces + (docker_things_of(run_id) if runtime == "docker" else [])


def links_of_the_host() -> set[str]:
    """But for those of Docker's networks, which other tests come and go with."""
    every = {path.name for path in Path("/sys/class/net").iterdir()}
    return {name for name in every if not name.startswith(("br-", "docker"))}
