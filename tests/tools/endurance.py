"""A long run with many clients: the memory of every process stays flat, and it can be judged.

`python -m tests.tools.endurance --minutes 30 --clients 40` runs one lock under faults all the
time, looks at the memory of each of the run's processes as it goes, and then judges what it left.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from lockcheck.nodes.node import children_of
from tests.running import LOCKCHECK, processes_of, run_under_way, traces_of, why_not

LOOKS_EVERY_S = 10.0
KB_A_MB = 1024
# What is filled within the first minutes is no leak: caches, logs that are in memory.
SETTLED = 0.25  # of the run
OURS = ("command line", "lockcheck.")  # servers keep what they are given to keep
FLAT = 1.2  # the last tenth against what it had settled at
FLAT_MB = 8  # small processes breathe
FAULTS = ("pause", "partition", "kill:holder")

Sizes = dict[tuple[int, str], list[float]]  # MB of a process, look by look


def memory_mb(pid: int) -> tuple[str, float] | None:
    """Its name, and what of it is in memory and its own."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        rows = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        name = next((word for word in words.split() if word.startswith("lockcheck.")), rows["Name"])
        return name, int(rows["RssAnon"].split()[0]) / KB_A_MB
    except (FileNotFoundError, ProcessLookupError, KeyError):  # it has just ended
        return None


def look(run_id: str, of_the_command: int, sizes: Sizes) -> None:
    command_line = {of_the_command, *children_of(of_the_command)}  # it is supervised
    for pid in {*processes_of(run_id), *command_line}:
        if found := memory_mb(pid):
            name, mb = found
            sizes[pid, "command line" if pid in command_line else name].append(mb)


def grown(mb: list[float]) -> str:
    """From what it had settled at to its end; empty where that is flat."""
    settled = max(mb[int(len(mb) * SETTLED)], 1.0)
    last = max(mb[-max(1, len(mb) // 10) :])
    return f"{settled:.1f} to {last:.1f} MB" if last > FLAT * settled + FLAT_MB else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--clients", type=int, default=40)
    parser.add_argument("--keys", type=int, default=4)
    parser.add_argument("--backend", default="etcd")
    parser.add_argument("--runtime", default="local")
    parser.add_argument("--most-mb", type=float, default=600, help="for judging it")
    arguments = parser.parse_args()
    if reason := why_not(arguments.runtime, arguments.backend):
        print(f"left out: {reason}")
        return 0
    out = Path(tempfile.mkdtemp(prefix="lockcheck-endurance-")) / "results"
    options = ["--backend", arguments.backend, "--guard", "fence"]
    options += [word for fault in FAULTS for word in ("--nemesis", fault)]
    options += ["--clients", str(arguments.clients), "--keys", str(arguments.keys)]
    options += ["--think", "100ms"]
    options += ["--time-limit", f"{arguments.minutes:g}m"]
    sizes: Sizes = defaultdict(list)
    began = time.monotonic()
    with run_under_way(out, arguments.runtime, *options) as (process, run_id):
        while process.poll() is None and (time.monotonic() - began) < 60 * arguments.minutes:
            look(run_id, process.pid, sizes)
            time.sleep(LOOKS_EVERY_S)
        said, _ = process.communicate(timeout=600)
        print(said)
    failures = [f"the run left {traces}" for traces in traces_of(run_id, arguments.runtime)]
    long_lived = {
        who: mb for who, mb in sizes.items() if len(mb) > 0.5 * max(map(len, sizes.values()))
    }
    for (pid, name), mb in sorted(long_lived.items(), key=lambda each: -each[1][-1]):
        settled = mb[int(len(mb) * SETTLED)]
        print(f"{name:<32} {pid:>8} {settled:>8.1f} {mb[-1]:>8.1f} MB, {len(mb)} looks")
        if name.startswith(OURS) and (told := grown(mb)):
            failures.append(f"{name} ({pid}) has grown from {told}")
    folder = out / run_id
    judged = [*LOCKCHECK, "check", str(folder)]
    measured = subprocess.run(
        [sys.executable, "-c", MEASURED, *judged], check=True, capture_output=True, text=True
    )
    code, mb_used, took_s = measured.stdout.splitlines()[-1].split()
    lines = sum(1 for _ in (folder / "history.jsonl").open("rb"))
    page = (folder / "report.html").stat().st_size / 2**20
    judged_as = f"{lines:,} lines judged in {took_s} s and {mb_used} MB (exit {code})"
    print(f"{judged_as}; a page of {page:.1f} MB")
    if float(mb_used) > arguments.most_mb:
        failures.append(f"judging took {mb_used} MB")
    if process.returncode not in (0, 1, 3):
        failures.append(f"the run ended with {process.returncode}")
    print("\n".join(failures) or "flat, judged, and nothing left")
    print(folder)
    return 1 if failures else 0


MEASURED = """
import resource, subprocess, sys, time
began = time.monotonic()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
print(code, f"{mb:.0f}", f"{time.monotonic() - began:.1f}")
"""

if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
