"""Locks that are right, behind a guard, under any fault and any three at once: never accused.

`python -m tests.tools.mixes --seeds 100` runs as many: in turn each fault alone, three that are
drawn, one beside restarts of a server, shorter or longer than the lease, and what `all` draws. A
violation that is
not the holder's is a failure, and so is an `unknown` whose reason is none of those that a reader
accepts. What it takes is in the registry of faults: a new kind is drawn, too.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from lockcheck.checker.doubt import TOO_SHORT, DoubtCode
from lockcheck.config import RunConfig
from lockcheck.nemesis import FAULTS
from lockcheck.nemesis.drawing import applicable, draw, with_a_trigger
from lockcheck.nemesis.grammar import ALL
from lockcheck.run.resolve import resolve
from lockcheck.storage.base import Guard
from tests.running import lockcheck

Result = dict[str, Any]  # what --json prints

# By what guards the data. The row's transaction does so itself.
RIGHT = {
    "etcd": Guard.FENCE,
    "zookeeper": Guard.FENCE,
    "redis-fenced": Guard.FENCE,
    "postgres-advisory": Guard.FENCE,
    "postgres-row": Guard.NONE,
    "mariadb-get-lock": Guard.CAS,
}
AT_ONCE = 3
RESTARTS = ("kill:server,restart=300ms,gap=2s", "kill:server,restart=2500ms,gap=1s")
# Several at once keep each other waiting.
TIME_LIMIT_MS, OF_SEVERAL_MS, OF_ALL_MS = 8_000, 12_000, 15_000
RUN_TIMEOUT_S = 240
# What no lock and no checker can help.
ACCEPTED = {
    DoubtCode.MACHINE_STALLED: "the machine stalled",
    DoubtCode.CLOCK_JUMPED: "the machine stalled",
    DoubtCode.FAULT_NOT_INJECTED: "a fault found nobody to strike",
    DoubtCode.NO_HOLDER_STRUCK: "a fault found nobody to strike",
} | dict.fromkeys(TOO_SHORT, "hardly a moment without a fault")
# Nor this, where a clock was moved.
OF_CLOCKS = {DoubtCode.MAYBE_RELEASED: "a server's clock ended a lease too soon"}
# ZooKeeper goes on writing a log of which a part did not fit, and cannot read it again.
OF_FULL_DISKS = "a server does not start any more since its disk was full"
# Nor these reasons of a fault that was not proven; the last where others were at work, too.
UNPROVEN = {"faults in each other's way": r"other faults had (already )?cut|ha[ds] no process"}
OF_SEVERAL = {"a member that others keep from serving tells no time": r"does not report its uptime"}


@dataclass(frozen=True)
class Mix:
    seed: int
    backend: str
    faults: tuple[str, ...]
    time_limit_ms: int = TIME_LIMIT_MS

    def config(self) -> RunConfig:
        config = _config(self.backend, self.seed, self.faults)
        return structs.replace(config, time_limit_ms=self.time_limit_ms)

    @property
    def name(self) -> str:
        return f"{self.backend} --seed {self.seed} {' and '.join(self.faults)}"


@dataclass(frozen=True)
class Tried:
    mix: Mix
    verdict: str
    wrong: list[str]
    reasons: tuple[str, ...] = ()  # of an unknown


def _config(backend: str, seed: int, faults: tuple[str, ...]) -> RunConfig:
    return RunConfig(
        backend=backend,
        seed=seed,
        nemesis=faults,
        guard=RIGHT[backend],
        time_limit_ms=TIME_LIMIT_MS,
        stop_on_violation=False,
    )


def mixes(seeds: int) -> Iterator[Mix]:
    plans = {name: resolve(_config(name, 0, ("none",))).faults for name in RIGHT}
    able = {
        name: [step for kind in FAULTS.values() for step in applicable(kind, plan)]
        for name, plan in plans.items()
    }
    for seed in range(1, seeds + 1):
        choices, (round_, place) = random.Random(seed), divmod(seed, len(RIGHT))
        backend = [*RIGHT][place]
        plan = plans[backend]
        if round_ % 4 == 3:
            plan = replace(plan, seed=seed, time_limit_ms=OF_ALL_MS)
            yield Mix(seed, backend, draw((ALL,), FAULTS, plan), OF_ALL_MS)
            continue
        drawn = choices.sample(able[backend], (1, AT_ONCE, 1)[round_ % 4])
        beside = (choices.choice(RESTARTS),) if round_ % 4 == 2 else ()
        words = (str(with_a_trigger(step, plan, choices)) for step in drawn)
        several = len(drawn) + len(beside) > 1
        limit_ms = OF_SEVERAL_MS if several else TIME_LIMIT_MS
        yield Mix(seed, backend, (*beside, *words), limit_ms)


# --- running them --------------------------------------------------------------------------------


def try_mix(mix: Mix, runtime: str, out: Path) -> Tried:
    words = [*shlex.split(mix.config().command())[2:], "--runtime", runtime, "--out", str(out)]
    try:
        said = lockcheck("run", "--json", *words, timeout_s=RUN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Tried(mix, "none", [f"did not end within {RUN_TIMEOUT_S} s"])
    if said.returncode not in (0, 1, 3):
        return Tried(mix, "none", [f"exit {said.returncode}: {said.stderr.strip()[-1000:]}"])
    result = json.loads(said.stdout)
    wrong = [f"{text} ({result['report']})" for text in _wrong(mix, result)]
    reasons = tuple(accepted_because(mix, *doubt) for doubt in _doubts(result))
    return Tried(mix, result["verdict"], wrong, reasons)


def _wrong(mix: Mix, result: Result) -> Iterator[str]:
    for finding in result["findings"]:
        if finding["effect"] == "violation" and finding["blame"] != "holder":
            yield f"{finding['code']} is blamed on the {finding['blame']}"
    yield from (text for code, text in _doubts(result) if not accepted_because(mix, code, text))


def _doubts(result: Result) -> Iterator[tuple[str, str]]:
    """The code and the sentence of each."""
    yield from zip(result["doubt_codes"], result["doubts"], strict=True)


def accepted_because(mix: Mix, code: str, text: str) -> str:
    """Why a reader accepts it; empty: it is not accepted."""
    if code == DoubtCode.FAULT_UNPROVEN:
        reasons = UNPROVEN | (
            OF_SEVERAL if mix.time_limit_ms > TIME_LIMIT_MS or len(mix.faults) > 1 else {}
        )
        return next((name for name, words in reasons.items() if re.search(words, text)), "")
    if code == DoubtCode.FAULT_UNHEALED:
        full = any("disk" in fault for fault in mix.faults)
        return OF_FULL_DISKS if full and "exited right after it was started" in text else ""
    moved = any("clock" in fault for fault in mix.faults)
    return (ACCEPTED | (OF_CLOCKS if moved else {})).get(DoubtCode(code), "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=1, help="the seed to begin with")
    parser.add_argument("--runtime", default="local", choices=["local", "docker"])
    parser.add_argument("--out", type=Path, default=None, help="keeps the runs there")
    arguments = parser.parse_args()
    out = arguments.out or Path(tempfile.mkdtemp(prefix="lockcheck-mixes-"))
    last = arguments.first + arguments.seeds - 1
    tried = []
    for mix in (mix for mix in mixes(last) if mix.seed >= arguments.first):
        began = time.monotonic()
        tried.append(try_mix(mix, arguments.runtime, out))
        _print(tried[-1], time.monotonic() - began)
    return _sum_up(tried)


def _print(tried: Tried, took_s: float) -> None:
    mark = "no" if tried.wrong else "ok"
    why = f"  ({', '.join(filter(None, tried.reasons))})" if tried.verdict == "unknown" else ""
    print(f"{mark} {took_s:5.1f} s  {tried.verdict:<9} {tried.mix.name}{why}", flush=True)
    for text in tried.wrong:
        print(f"             {text}", flush=True)


def _sum_up(tried: list[Tried]) -> int:
    failed = sum(bool(each.wrong) for each in tried)
    unknown = [each for each in tried if each.verdict == "unknown"]
    verdicts = ", ".join(f"{n} {name}" for name, n in Counter(t.verdict for t in tried).items())
    print(f"\n{len(tried)} runs: {verdicts}; {failed} failed")
    print(f"unknown: {len(unknown) / max(1, len(tried)):.0%}")
    reasons = Counter(reason for each in unknown for reason in {*each.reasons} if reason)
    for reason, number in reasons.most_common():
        print(f"{number:>6} {reason}")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
