"""Exit 0 and 1 mean a verdict of lockcheck's own, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lockcheck.cli.supervising import DECIDED, ENDED_BY_ITSELF
from tests.running import LOCKCHECK, children_of, on_a_terminal
from tests.waiting import wait_for

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SUPERVISED = "import os, signal, time; from lockcheck.cli.supervising import supervise; supervise()"
BOUNDED = (
    f"{SUPERVISED}; from lockcheck.cli.supervising import bound_memory; bound_memory(100 << 20)"
)
HISTORY = """client,key,op,start_ns,end_ns,outcome,token
a,k,acquire,1000,2000,ok,1
a,k,release,3000,4000,ok,
b,k,acquire,5000,6000,ok,2
b,k,release,7000,8000,ok,
"""


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (f"os._exit({DECIDED})", 0),
        (f"os._exit({DECIDED} + 1)", 1),
        (f"os._exit({DECIDED} + 143)", 143),
        ("signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT)", 130),
        ("os._exit(0)", ENDED_BY_ITSELF),
        ("os._exit(1)", ENDED_BY_ITSELF),
        ("os.kill(os.getpid(), signal.SIGKILL)", ENDED_BY_ITSELF),
    ],
)
def test_only_what_was_decided_is_said(ending: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{SUPERVISED}; {ending}"], capture_output=True, check=False
    )
    assert done.returncode == code
    assert (b"before a verdict" in done.stderr) == (code == ENDED_BY_ITSELF)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_reaches_the_command(tmp_path: Path, number: signal.Signals) -> None:
    ready = tmp_path / "ready"
    decide = f"signal.signal({number.value}, lambda n, _: os._exit({DECIDED} + n))"
    program = f"{SUPERVISED}; {decide}; open({str(ready)!r}, 'w').close(); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        wait_for(ready.exists, "it listens")
        process.send_signal(number)
        assert process.wait(30) == number


def test_a_signal_from_outside_of_its_pid_namespace_has_no_sender(tmp_path: Path) -> None:
    """As that of `docker stop`, or at the end of a pod."""
    if os.geteuid() != 0:
        pytest.skip("making a PID namespace takes root")
    ready = tmp_path / "ready"
    decide = f"signal.signal(signal.SIGTERM, lambda n, _: os._exit({DECIDED} + n))"
    program = f"{SUPERVISED}; {decide}; open({str(ready)!r}, 'w').close(); time.sleep(60)"
    apart = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    with subprocess.Popen([*apart, sys.executable, "-c", program]) as process:
        wait_for(ready.exists, "it listens")
        [first] = children_of(process.pid)
        os.kill(first, signal.SIGTERM)
        assert process.wait(30) == signal.SIGTERM


def test_a_terminal_that_hangs_up_ends_the_command_once(tmp_path: Path) -> None:
    """The kernel tells the leader of the session alone, and what is written afterwards fails."""
    ready, left = tmp_path / "ready", tmp_path / "left"
    wait = f"open({str(ready)!r}, 'w').close(); time.sleep(60)"
    leave = f"print('left', flush=True); open({str(left)!r}, 'a').write('once')"
    program = f"""
{SUPERVISED}
from lockcheck.cli.outlived import outlive_readers
from lockcheck.signals import Interrupted
outlive_readers()
try:
    {wait}
except Interrupted as interrupted:
    {leave}
    os._exit({DECIDED} + interrupted.exit_code)
"""
    with on_a_terminal([sys.executable, "-c", program]) as (process, hang_up):
        wait_for(ready.exists, "it listens")
        hang_up()
        assert process.wait(30) == 128 + signal.SIGHUP
    assert left.read_text() == "once"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_check_unwinds_once_however_often_it_is_interrupted(
    tmp_path: Path, number: signal.Signals
) -> None:
    fifo, errors = tmp_path / "fifo", tmp_path / "errors"
    os.mkfifo(fifo)
    with (
        errors.open("w") as stderr,
        subprocess.Popen([*LOCKCHECK, "check", str(fifo)], stderr=stderr) as process,
        fifo.open("w"),
    ):
        while process.poll() is None:
            process.send_signal(number)
    assert process.returncode == 128 + number
    assert errors.read_text().strip() == ""


def test_what_nohup_protects_outlives_a_hangup(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = ["nohup", *LOCKCHECK, "check", "--json", str(fifo)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process, fifo.open("w") as history:
        process.send_signal(signal.SIGHUP)
        history.write(HISTORY)
    assert process.returncode == 0


@pytest.mark.parametrize("number", ENDING)
def test_a_bounded_command_that_does_not_hear_a_signal_is_ended(
    tmp_path: Path, number: signal.Signals
) -> None:
    ready = tmp_path / "ready"
    deaf = f"[signal.signal(n, signal.SIG_IGN) for n in {[*map(int, ENDING)]}]"
    program = f"{BOUNDED}; {deaf}; open({str(ready)!r}, 'w').close(); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as process:
        wait_for(ready.exists, "it ignores signals")
        process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_bounded_command_that_takes_too_much_memory_is_ended() -> None:
    grows = "kept = [bytearray(1 << 20) for _ in range(1000)]; time.sleep(600)"
    done = subprocess.run(
        [sys.executable, "-c", f"{BOUNDED}; {grows}"], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == ENDED_BY_ITSELF
    assert b"it takes more memory than --memory allows (100MB)" in done.stderr
    assert b"cure: allow more, as in --memory 200MB" in done.stderr


def test_a_command_whose_parent_is_killed_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    tell = f"open({str(ready)!r} + '~', 'w').write(str(os.getpid()))"
    move = f"os.rename({str(ready)!r} + '~', {str(ready)!r})"
    with subprocess.Popen(
        [sys.executable, "-c", f"{SUPERVISED}; {tell}; {move}; time.sleep(60)"]
    ) as process:
        wait_for(ready.exists, "it says who it is")
        process.kill()
    command = Path(f"/proc/{ready.read_text()}/stat")
    wait_for(lambda: not command.exists() or ") Z " in command.read_text(), "it is gone")


# A limit to processes does not hold for root: as another user, who may read what root may.
AS_ANOTHER = (
    *("setpriv", "--reuid", "64711", "--clear-groups"),
    *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
)


@pytest.mark.parametrize("processes", [0, 1, 2, 3])
def test_short_of_processes_it_says_so_or_gives_a_verdict(tmp_path: Path, processes: int) -> None:
    history = tmp_path / "history.csv"
    # So long a history is judged by columns, with the libraries that this takes.
    rows = [
        row
        for at in range(10_000)
        for row in (
            f"{'abc'[at % 3]},k,acquire,{at}000,{at}100,ok,{at}",
            f"{'abc'[at % 3]},k,release,{at}200,{at}300,ok,",
        )
    ]
    history.write_text("\n".join([HISTORY.splitlines()[0], *rows]))
    limit = f'ulimit -u {processes}; exec "$@"'
    done = subprocess.run(
        [
            *(AS_ANOTHER if os.geteuid() == 0 else ()),
            *("bash", "-c", limit, "bash", *LOCKCHECK, "check", str(history)),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1", "OPENBLAS_NUM_THREADS": "4"},
    )
    if done.returncode == 0:
        assert " OK " in done.stdout
    else:
        assert done.returncode == ENDED_BY_ITSELF, done.stderr
        assert "no process can be started" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("megabytes", [50, 70, 90, 110, 130, 170])
def test_short_of_memory_it_says_so_or_gives_a_verdict(tmp_path: Path, megabytes: int) -> None:
    history = tmp_path / "history.csv"
    history.write_text(HISTORY)
    limit = f'ulimit -v {megabytes << 10}; exec "$@"'
    done = subprocess.run(
        ["bash", "-c", limit, "bash", *LOCKCHECK, "check", str(history)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    if done.returncode == 0:
        assert " OK " in done.stdout
    else:
        assert done.returncode == ENDED_BY_ITSELF
        assert "memory" in done.stderr
        assert "this is a bug" not in done.stderr
