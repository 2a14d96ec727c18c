"""Many seeds of all that is right: `python -m tests.simulation.soak --seeds 100000`.

Stops at the first that is accused, and says how to see it again.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

from lockcheck.checker import Finding, Judgement, Verdict, judge
from lockcheck.checker.doubt import DoubtCode
from lockcheck.history import History
from lockcheck.results.story.wording.codes import note
from lockcheck.results.story.wording.doubts import words_of
from tests.simulation import simulate
from tests.simulation.combinations import COMBINATIONS

CHUNK = 50


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    combination: str
    verdict: Verdict
    accusations: tuple[str, ...]
    operations: int


def accusations(history: History, judgement: Judgement) -> tuple[str, ...]:
    """What a lock that is right must never hear. Without a guard that is anything at all."""
    unguarded = history.terms.guard == "none"
    said = [
        _told(finding)
        for finding in judgement.findings
        if unguarded or finding.effect is not Verdict.OK
    ]
    crashed = (doubt for doubt in judgement.doubts if doubt.code is DoubtCode.CHECK_CRASHED)
    return (*said, *map(words_of, crashed))


def _told(finding: Finding) -> str:
    at_ms = finding.time_ns / 1e6
    return f"{finding.code} by {finding.blame.who} at {at_ms:.3f} ms ({note(finding) or 'no note'})"


def tried(case: tuple[int, str]) -> Outcome:
    seed, combination = case
    history = simulate(COMBINATIONS[combination](seed))
    judgement = judge(history)
    told = accusations(history, judgement)
    return Outcome(seed, combination, judgement.verdict, told, len(history.operations))


def all_tried(cases: list[tuple[int, str]], jobs: int) -> Iterator[Outcome]:
    pool = multiprocessing.Pool(jobs) if jobs > 1 else None
    with pool or nullcontext():
        yield from map(tried, cases) if pool is None else pool.imap(tried, cases, CHUNK)


def soak(first: int, seeds: int, jobs: int, combinations: list[str]) -> int:
    """Each seed with each combination."""
    cases = [(seed, name) for seed in range(first, first + seeds) for name in combinations]
    began, verdicts, operations = time.monotonic(), Counter[Verdict](), 0
    for number, outcome in enumerate(all_tried(cases, jobs), start=1):
        if outcome.accusations:
            print(f"\n{outcome.combination}, seed {outcome.seed}: a lock that is right is accused:")
            print("\n".join(f"  {said}" for said in outcome.accusations))
            print(
                f"again: python -m tests.simulation.soak --seeds 1 --first {outcome.seed}"
                f" --only {outcome.combination}"
            )
            return 1
        verdicts[outcome.verdict] += 1
        operations += outcome.operations
        if number % 300 == 0 or number == len(cases):
            _progress(number, len(cases), operations, time.monotonic() - began, verdicts)
    print()
    return 0


def _progress(
    number: int, cases: int, operations: int, seconds: float, verdicts: Counter[Verdict]
) -> None:
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(
        f"\r{number / cases:4.0%}  {number} histories, {operations} operations, {seconds:.0f} s,"
        f" {seconds / number * 1000:.1f} ms each: {said}",
        end="",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=sorted(COMBINATIONS))
    asked = parser.parse_args()
    names = [asked.only] if asked.only else list(COMBINATIONS)
    return soak(asked.first, asked.seeds, asked.jobs, names)


if __name__ == "__main__":
    sys.exit(main())
