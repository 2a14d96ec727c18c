"""Carries out trials, some at a time, each in a process of its own with a deadline."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from lockcheck.errors import ClusterError
from lockcheck.matrix.folder import Folder
from lockcheck.matrix.model import Result, Trial, failed

BESIDE_S = 90.0  # of a trial: what a cluster needs to start, and its aftermath
IN_DOCKER_S = 300.0  # images may have to be built first
TO_HEAL_S = 60.0  # after an interruption
LAST_WORDS = 2_000  # characters of the output of a process that failed
CORES_OF_A_RUN = 2


def usual_jobs() -> int:
    """Runs at once that do not disturb each other: a run takes two cores."""
    return max(1, len(os.sched_getaffinity(0)) // CORES_OF_A_RUN)


def deadline_s(trial: Trial) -> float:
    config = trial.config
    beside = BESIDE_S if config.runtime == "local" else IN_DOCKER_S
    return 2 * config.time_limit_ms / 1000 + beside


@dataclass
class Runner:
    """One campaign that is carried out. An interruption ends the processes, which heal first."""

    folder: Folder
    jobs: int
    _processes: set[subprocess.Popen[str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False

    def results(self, trials: Sequence[Trial]) -> Generator[Result, None, None]:
        """Of each trial as it ends."""
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                yield from self._as_they_end(pool, trials)
            finally:
                self._stop()

    def _as_they_end(self, pool: ThreadPoolExecutor, trials: Sequence[Trial]) -> Iterator[Result]:
        """No more are handed out than run at once, so that an interruption leaves none queued."""
        left, under_way = iter(trials), set[Future[Result | None]]()
        while True:
            while len(under_way) < self.jobs and (trial := next(left, None)) is not None:
                under_way.add(pool.submit(self._carry_out, trial))
            if not under_way:
                return
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            yield from (result for each in done if (result := each.result()) is not None)

    def _carry_out(self, trial: Trial) -> Result | None:
        """None: it was interrupted."""
        plan, began = str(self.folder.path / "plan.ndjson"), time.monotonic()
        command = [sys.executable, "-m", "lockcheck", "trial", plan, "--id", trial.id]
        with self._lock:
            if self._stopped:
                return None
            process = subprocess.Popen(
                [*command, "--out", str(self.folder.path)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,  # a terminal's Ctrl-C comes by way of us alone
            )
            self._processes.add(process)
        output = self._awaited(process, deadline_s(trial))
        with self._lock:
            self._processes.discard(process)
        if (result := self.folder.result(trial)) is not None or self._stopped:
            return result
        return self._without_an_answer(trial, output, time.monotonic() - began)

    def _awaited(self, process: subprocess.Popen[str], seconds: float) -> str:
        try:
            return process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            end(process)
            return f"it did not end within {seconds:.0f} s"

    def _without_an_answer(self, trial: Trial, output: str, seconds: float) -> Result:
        problem = output.strip()[-LAST_WORDS:] or "it ended without a word"
        result = failed(trial, problem, ClusterError.exit_code, seconds)
        self.folder.save(trial, result)
        return result

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            ending = list(self._processes)
        for process in ending:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)


def end(process: subprocess.Popen[str]) -> None:
    """It heals what it has broken, or is killed with all that it started."""
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=TO_HEAL_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
