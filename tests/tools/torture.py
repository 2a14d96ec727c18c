"""What a run and a check must outlive: interrupts, deaths, limits, full disks, busy machines.

`python -m tests.tools.torture --local 500 --docker 100 --minutes 60` tries as many in turn, for an
hour at most, and counts wrong verdicts, leftovers and tracebacks; there must be none of each.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lockcheck.compose.images.recipes import recipe
from lockcheck.config import RunConfig
from lockcheck.run.resolve import resolve
from tests.running import (
    LOCKCHECK,
    children_of,
    lockcheck,
    on_a_terminal,
    processes_of,
    traces_of,
    why_not,
)
from tests.waiting import wait_for

LONGEST_RUN_S = 8.0
ENDS_WITHIN_S = 120
# It ends by itself, should nobody be there to end it.
BUSY = f"import time\nwhile time.process_time() < {ENDS_WITHIN_S}: pass"
CLEANED_WITHIN_S = 180  # what may be starting is spared for a minute
BY_A_SIGNAL = (130, 143, 129)
VERDICTS = {0: "ok", 1: "violation", 3: "unknown"}
CODES = {*VERDICTS, *BY_A_SIGNAL, 2, 4, 128 + signal.SIGKILL}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What a container needs to run nodes in namespaces of their own.
AS_ON_THE_HOST = (
    *(f"--cap-add={name}" for name in ("SYS_ADMIN", "NET_ADMIN", "SYS_PTRACE")),
    *(f"--security-opt={what}=unconfined" for what in ("seccomp", "apparmor", "systempaths")),
    "--volume=/:/host",
)
SUITE = """
import lockcheck, time

def test_it():
    with lockcheck.cluster("redis", clients=2, runtime={runtime!r}, folder={out!r}) as cluster:
        cluster.run("c1", ["sleep", "600"])
        with cluster.faults.pause("c1"):
            time.sleep(4)
"""
NO_RUN = '{"verdict": "ok"}'  # a test that passes
# Locks that are right under these faults: only a holder may ever be accused. A server is up again
# before a lease has run out, or after that.
BACKENDS = (
    "redis",
    "redis-fenced",
    "etcd",
    "postgres-advisory",
    "postgres-row",
    "mariadb-get-lock",
)
NEMESES = ("none", "kill:server,restart=300ms", "kill:server")


@dataclass
class Trial:
    choices: random.Random
    runtime: str
    backends: tuple[str, ...]
    out: Path

    def command(self) -> list[str]:
        """A run whose lock is right; nothing but restarts and the trial disturbs it."""
        backend, nemesis = self.choices.choice(self.backends), self.choices.choice(NEMESES)
        return [
            *(*LOCKCHECK, "run", "--json", "--runtime", self.runtime, "--backend", backend),
            *(
                "--nemesis",
                nemesis,
                "--time-limit",
                f"{LONGEST_RUN_S:.0f}s",
                "--out",
                str(self.out),
            ),
        ]

    def moment_s(self) -> float:
        return self.choices.uniform(0, LONGEST_RUN_S)

    def run_id(self) -> str | None:
        return next((path.name for path in self.out.glob("2*")), None)


@dataclass
class Ended:
    code: int
    said: str
    errors: str


@contextmanager
def begun(command: list[str], out: Path) -> Iterator[subprocess.Popen[str]]:
    errors = (out.parent / f"{out.name}.stderr").open("w")
    with (
        errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], out: Path) -> Ended:
    said, _ = process.communicate(timeout=ENDS_WITHIN_S)
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Ended(code, said, (out.parent / f"{out.name}.stderr").read_text())


# --- what is done to it --------------------------------------------------------------------------


def interrupted(trial: Trial) -> Ended:
    """Once or in a burst, at any time."""
    with begun(trial.command(), trial.out) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(trial.moment_s())
        for _ in range(trial.choices.choice((1, 1, 2, 20))):
            process.send_signal(trial.choices.choice(SIGNALS))
        return ended(process, trial.out)


def contained(trial: Trial) -> Ended:
    """Interrupted from outside of its PID namespace, as at the end of a pod: without a sender."""
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *trial.command()]
    with begun(apart, trial.out) as process:
        first = wait_for(lambda: _first_that_listens(process), "it listens")
        with suppress(subprocess.TimeoutExpired):
            process.wait(trial.moment_s())
        if process.poll() is None:
            os.kill(first, trial.choices.choice(SIGNALS))
        return ended(process, trial.out)


def _first_that_listens(process: subprocess.Popen[str]) -> int:
    """The first process of the namespace, which the kernel spares until it handles signals: then it
    has a child of its own."""
    return next((first for first in children_of(process.pid) if children_of(first)), 0)


def hung_up(trial: Trial) -> Ended:
    """The window of its terminal is closed."""
    said = trial.out.parent / f"{trial.out.name}.stdout"
    to_a_file = ["sh", "-c", f'exec "$@" > {shlex.quote(str(said))}', "sh", *trial.command()]
    with on_a_terminal(to_a_file) as (process, hang_up):
        with suppress(subprocess.TimeoutExpired):
            process.wait(trial.moment_s())
        hang_up()
        code = process.wait(ENDS_WITHIN_S)
    return Ended(code if code >= 0 else 128 - code, said.read_text(), "")


def stopped(trial: Trial) -> Ended:
    """It is the first process of a container, which is ended by `docker stop`."""
    name = f"lockcheck-torture-{os.getpid()}-{trial.out.name}"
    inside = 'mount -t proc proc /proc && exec "$@"'  # the host's files, and processes of its own
    command = ["docker", "run", "--rm", "--name", name, "--sig-proxy=false", *AS_ON_THE_HOST]
    command += [recipe("redis").tag, "chroot", "/host", "sh", "-c", inside, "sh"]
    with begun([*command, *trial.command()], trial.out) as process:
        wait_for(lambda: trial.run_id() or process.poll() is not None, "it has begun")
        with suppress(subprocess.TimeoutExpired):
            process.wait(trial.moment_s())
        subprocess.run(["docker", "stop", "--time", "10", name], capture_output=True, check=False)
        return ended(process, trial.out)


def cancelled(trial: Trial) -> Ended:
    """A test of somebody's own, with a cluster, whose CI job is cancelled."""
    suite = trial.out.parent / f"{trial.out.name}-test.py"
    suite.write_text(SUITE.format(runtime=trial.runtime, out=str(trial.out)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite)]
    with begun(command, trial.out) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(trial.moment_s())
        process.send_signal(trial.choices.choice((signal.SIGTERM, signal.SIGHUP)))
        end = ended(process, trial.out)
    return Ended(end.code, NO_RUN, end.errors)


def killed(trial: Trial) -> Ended:
    """What it left is judged, and is never ok."""
    with begun(trial.command(), trial.out) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(trial.moment_s())
        process.kill()
        before = ended(process, trial.out)
    run_id = trial.run_id()
    if before.code in VERDICTS or run_id is None or not list(trial.out.glob("2*/facts.json")):
        return before
    if trial.runtime == "docker":
        wait_for(lambda: _cleaned(run_id), "clean removes it", timeout_s=CLEANED_WITHIN_S)
    checked = lockcheck("check", "--json", str(trial.out / run_id))
    if checked.returncode == 0:
        raise AssertionError("a run that was killed is ok")
    return Ended(checked.returncode, checked.stdout, checked.stderr)


def _cleaned(run_id: str) -> bool:
    return lockcheck("clean").returncode == 0 and not traces_of(run_id, "docker")


def bereaved(trial: Trial) -> Ended:
    """The agent, a server or a client dies by somebody else's hand."""
    with begun(trial.command(), trial.out) as process:
        with suppress(subprocess.TimeoutExpired):
            process.wait(trial.moment_s())
        run_id = trial.run_id()
        others = [pid for pid in processes_of(run_id) if pid != process.pid] if run_id else []
        if others:
            with suppress(ProcessLookupError):
                os.kill(trial.choices.choice(others), signal.SIGKILL)
        return ended(process, trial.out)


def starved(trial: Trial) -> Ended:
    """Too little memory, or too few files, for a run."""
    limit = trial.choices.choice(("-v 60000", "-v 120000", "-v 250000", "-n 12", "-n 24", "-n 40"))
    command = ["bash", "-c", f'ulimit {limit}; exec "$@"', "bash", *trial.command()]
    with begun(command, trial.out) as process:
        return ended(process, trial.out)


def filled(trial: Trial) -> Ended:
    """A disk that is full at the start, or soon."""
    size_kb = trial.choices.choice((16, 100, 400, 1000))
    trial.out.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "lockcheck-torture", str(trial.out)]
    subprocess.run(mount, check=True)
    try:
        with begun(trial.command(), trial.out) as process:
            return ended(process, trial.out)
    finally:
        subprocess.run(["umount", "--lazy", str(trial.out)], check=True)


def crowded(trial: Trial) -> Ended:
    """Beside busy loops it may be unknown, and never a violation."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(4)]
    try:
        with begun(trial.command(), trial.out) as process:
            return ended(process, trial.out)
    finally:
        for each in busy:
            each.kill()
            each.wait()


DONE: dict[str, Callable[[Trial], Ended]] = {
    done.__name__: done
    for done in (
        *(interrupted, contained, hung_up, stopped, cancelled),
        *(killed, bereaved, starved, filled, crowded),
    )
}
NEEDS_ROOT = (filled, contained, stopped)
UNDISTURBED = ("crowded",)


# --- what must not come of it --------------------------------------------------------------------


def wrong(name: str, trial: Trial, end: Ended) -> Iterator[str]:
    if end.code not in CODES:
        yield f"exit {end.code}"
    if end.code in VERDICTS and VERDICTS[end.code] != _verdict(end):
        yield f"exit {end.code} for {_verdict(end)}"
    if accused := _accused(end) - {"holder"}:
        yield f"accused: {', '.join(accused)}"
    if name in UNDISTURBED and end.code not in VERDICTS:
        yield "no verdict although nothing stood in its way"
    if "Traceback" in end.errors or "this is a bug" in end.errors:
        yield "a traceback"
    run_id = trial.run_id()
    if run_id is None:
        return
    without = end.said != NO_RUN and not (trial.out / run_id / "report.html").exists()
    if end.code in BY_A_SIGNAL and without:
        yield "a folder without a report"
    try:
        wait_for(lambda: not traces_of(run_id, trial.runtime), "nothing carries the run's id")
    except AssertionError:
        yield f"left behind: {traces_of(run_id, trial.runtime)}"


def _accused(end: Ended) -> set[str]:
    """A holder may learn a moment late that its session ended with its server: no lock can help."""
    if end.code != 1:
        return set()
    findings = json.loads(end.said)["findings"]
    return {each["blame"] for each in findings if each["effect"] == "violation"} or {"no one"}


def _verdict(end: Ended) -> str:
    try:
        return str(json.loads(end.said)["verdict"])
    except (ValueError, KeyError):
        return "no verdict"


def able(runtime: str) -> Iterator[str]:
    """Locks whose servers can be had on this host; says why the others are left out."""
    for backend in BACKENDS:
        if reason := why_not(runtime, *resolve(RunConfig(backend=backend, seed=0)).kinds):
            print(f"left out: {runtime}: {backend}: {reason}", flush=True)
        else:
            yield backend


def _is_possible(done: Callable[[Trial], Ended], runtime: str) -> bool:
    if done is stopped and (runtime != "local" or why_not("docker")):
        return False
    return os.geteuid() == 0 or done not in NEEDS_ROOT


def try_one(
    number: int, seed: int, runtime: str, backends: tuple[str, ...], folder: Path
) -> tuple[str, Ended | None, list[str]]:
    choices = random.Random(f"{seed} {runtime} {number}")
    usable = [done for done in DONE.values() if _is_possible(done, runtime)]
    done = usable[number % len(usable)]
    trial = Trial(choices, runtime, backends, folder / f"{runtime}-{number}")
    try:
        end = done(trial)
        return done.__name__, end, list(wrong(done.__name__, trial, end))
    except (subprocess.TimeoutExpired, AssertionError) as error:
        return done.__name__, None, [f"{type(error).__name__}: {error}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--local", type=int, default=500, help="trials in that runtime")
    parser.add_argument("--docker", type=int, default=100, help="trials in that runtime")
    parser.add_argument("--minutes", type=float, default=60)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lockcheck-torture-"))
    deadline = time.monotonic() + 60 * arguments.minutes
    wanted = {"local": arguments.local, "docker": arguments.docker}
    codes: Counter[tuple[str, str, int | None]] = Counter()
    failures = 0
    for runtime, trials in wanted.items():
        backends = tuple(able(runtime)) if trials else ()
        if not backends:
            continue
        for number in itertools.takewhile(lambda _: time.monotonic() < deadline, range(trials)):
            name, end, mistakes = try_one(number, arguments.seed, runtime, backends, folder)
            codes[runtime, name, end.code if end else None] += 1
            failures += bool(mistakes)
            mark = "no" if mistakes else "ok"
            print(
                f"{runtime} {number + 1:>3}/{trials} {mark} {name}: exit {end and end.code}",
                flush=True,
            )
            for mistake in mistakes:
                print(f"          {mistake} ({folder / f'{runtime}-{number}'})", flush=True)
    for (runtime, name, code), times in sorted(codes.items(), key=str):
        print(f"{times:>4} {runtime} {name}: exit {code}")
    print(f"{codes.total()} trials, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
