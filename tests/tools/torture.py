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

from lockcheck.config import RunConfig
from lockcheck.run.resolve import resolve
from tests.running import LOCKCHECK, lockcheck, processes_of, traces_of, why_not
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
# Locks that are right under these faults: they must never be accused. A server is up again before a
# lease has run out, or after that.
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
    done.__name__: done for done in (interrupted, killed, bereaved, starved, filled, crowded)
}
NEEDS_ROOT = (filled,)
UNDISTURBED = ("crowded",)


# --- what must not come of it --------------------------------------------------------------------


def wrong(name: str, trial: Trial, end: Ended) -> Iterator[str]:
    if end.code not in CODES:
        yield f"exit {end.code}"
    if end.code in VERDICTS and VERDICTS[end.code] != _verdict(end):
        yield f"exit {end.code} for {_verdict(end)}"
    if end.code == 1:
        yield "a right lock is accused"
    if name in UNDISTURBED and end.code not in VERDICTS:
        yield "no verdict although nothing stood in its way"
    if "Traceback" in end.errors or "this is a bug" in end.errors:
        yield "a traceback"
    run_id = trial.run_id()
    if run_id is None:
        return
    if end.code in BY_A_SIGNAL and not (trial.out / run_id / "report.html").exists():
        yield "a folder without a report"
    try:
        wait_for(lambda: not traces_of(run_id, trial.runtime), "nothing carries the run's id")
    except AssertionError:
        yield f"left behind: {traces_of(run_id, trial.runtime)}"


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


def try_one(
    number: int, seed: int, runtime: str, backends: tuple[str, ...], folder: Path
) -> tuple[str, Ended | None, list[str]]:
    choices = random.Random(f"{seed} {runtime} {number}")
    usable = [done for done in DONE.values() if os.geteuid() == 0 or done not in NEEDS_ROOT]
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
