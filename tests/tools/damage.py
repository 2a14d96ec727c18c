"""Runs whose files were damaged: never ok with a broken seal, never a violation of a whole run's.

`python -m tests.tools.damage --number 5000 RUN ...` damages copies of these runs in as many
ways, judges each, and counts what the verdicts are.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from lockcheck.check.patience import patient_for
from lockcheck.check.recheck import recheck
from lockcheck.checker.finding import Verdict
from lockcheck.errors import LockcheckError
from lockcheck.formats import ReadOptions
from lockcheck.history.event import RUN, decode_event
from lockcheck.nodes import NODES_FOLDER
from lockcheck.runs.store import FACTS_FILE, HISTORY_FILE

PATIENCE_MS = 5_000
LONGEST = 4_000_000  # bytes of a history: many small ones show more than a few large ones
REFUSED = "refused"

Lines = list[bytes]


# --- what may have happened to a history ---------------------------------------------------------


def cut_at_a_line(lines: Lines, choices: random.Random) -> Lines:
    return lines[: choices.randrange(2, len(lines))]


def cut_within_a_line(lines: Lines, choices: random.Random) -> Lines:
    whole = lines[: choices.randrange(2, len(lines))]
    return [*whole[:-1], whole[-1][: choices.randrange(1, len(whole[-1]))]]


def without_a_line(lines: Lines, choices: random.Random) -> Lines:
    gone = choices.randrange(len(lines))
    return lines[:gone] + lines[gone + 1 :]


def without_a_process(lines: Lines, choices: random.Random) -> Lines:
    processes = [decode_event(line).process for line in lines]
    gone = choices.choice([process for process in processes if process != RUN] or processes)
    return [line for line, process in zip(lines, processes, strict=True) if process != gone]


def without_an_operation(lines: Lines, choices: random.Random) -> Lines:
    kinds = [decode_event(line).f for line in lines]
    gone = choices.choice(kinds)
    return [line for line, kind in zip(lines, kinds, strict=True) if kind != gone]


def a_line_twice(lines: Lines, choices: random.Random) -> Lines:
    at = choices.randrange(len(lines))
    return [*lines[: at + 1], *lines[at:]]


def two_lines_swapped(lines: Lines, choices: random.Random) -> Lines:
    one, other = choices.randrange(len(lines)), choices.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def a_digit_changed(lines: Lines, choices: random.Random) -> Lines:
    at = choices.randrange(len(lines))
    line = bytearray(lines[at])
    digits = [place for place, byte in enumerate(line) if chr(byte).isdigit()] or [0]
    line[choices.choice(digits)] = ord(choices.choice("0123456789"))
    return [*lines[:at], bytes(line), *lines[at + 1 :]]


def a_byte_changed(lines: Lines, choices: random.Random) -> Lines:
    whole = bytearray(b"".join(lines))
    whole[choices.randrange(len(whole))] = choices.randrange(256)
    return [bytes(whole)]


def a_hole_of_zeros(lines: Lines, choices: random.Random) -> Lines:
    whole = bytearray(b"".join(lines))
    begin = choices.randrange(len(whole))
    length = min(choices.choice((1, 512, 4096)), len(whole) - begin)
    whole[begin : begin + length] = bytes(length)
    return [bytes(whole)]


HISTORIES: dict[str, Callable[[Lines, random.Random], Lines]] = {
    each.__name__: each
    for each in (
        cut_at_a_line,
        cut_within_a_line,
        without_a_line,
        without_a_process,
        without_an_operation,
        a_line_twice,
        two_lines_swapped,
        a_digit_changed,
        a_byte_changed,
        a_hole_of_zeros,
    )
}


def damage_history(run: Path, choices: random.Random) -> str:
    """Whatever is left of the two marks, this is no whole history any more, or the same one."""
    history = run / HISTORY_FILE
    kind = choices.choice(sorted(HISTORIES))
    history.write_bytes(b"".join(HISTORIES[kind](_lines(history), choices)))
    return kind


def damage_facts(run: Path, choices: random.Random) -> str:
    facts = run / FACTS_FILE
    facts.write_bytes(b"".join(a_byte_changed(_lines(facts), choices)))
    return "facts"


def damage_parts(run: Path, choices: random.Random) -> str:
    """A run that was killed before its history was assembled, and lost more than that."""
    (run / HISTORY_FILE).unlink()
    parts = sorted({*(run / NODES_FOLDER).rglob("*.jsonl")} - {run / NODES_FOLDER / "terms.jsonl"})
    for part in choices.sample(parts, choices.randrange(0, min(3, len(parts)) + 1)):
        lines = _lines(part)
        if len(lines) < 3 or choices.random() < 0.3:
            part.unlink()
        else:
            cut = choices.choice((cut_at_a_line, cut_within_a_line))
            part.write_bytes(b"".join(cut(lines, choices)))
    return "parts"


def _lines(path: Path) -> Lines:
    return path.read_bytes().splitlines(keepends=True)


# --- what must not come of it --------------------------------------------------------------------


def verdict_of(run: Path) -> str:
    try:
        checked = recheck(
            str(run), None, asked=ReadOptions(), patience=patient_for(PATIENCE_MS), out=run.parent
        )
    except LockcheckError:
        return REFUSED
    return checked.judgement.verdict.value


def wrong(kind: str, before: str, after: str, *, same: bool) -> str:
    if same:
        return "" if after == before else f"the same bytes, and {after} instead of {before}"
    if after == Verdict.VIOLATION and before != Verdict.VIOLATION:
        return f"a violation that the whole run, which is {before}, does not have"
    if after == Verdict.OK:
        return f"ok, although it was damaged ({kind})"
    return ""


def try_one(
    number: int, seed: int, runs: list[tuple[Path, str]], folder: Path
) -> tuple[str, str, str]:
    """The kind of damage, the verdict, and what is wrong with that."""
    choices = random.Random(f"{seed} {number}")
    whole, before = choices.choice(runs)
    run = folder / whole.name
    shutil.copytree(whole, run, symlinks=True)
    ways = [damage_history] * 6 + [damage_facts]
    if len(list((whole / NODES_FOLDER).rglob("*.jsonl"))) > 1:
        ways += [damage_parts] * 3
    kind = choices.choice(ways)(run, choices)
    same = all(_is_same(run / name, whole / name) for name in (HISTORY_FILE, FACTS_FILE))
    try:
        after = verdict_of(run)
        return kind, after, wrong(kind, before, after, same=same)
    except Exception:  # noqa: BLE001 - whatever it is, it is what this looks for
        return kind, "traceback", traceback.format_exc()
    finally:
        shutil.rmtree(run)


def _is_same(one: Path, other: Path) -> bool:
    return one.exists() and one.read_bytes().rstrip(b"\n") == other.read_bytes().rstrip(b"\n")


# --- whole runs ----------------------------------------------------------------------------------


def whole_runs(given: list[Path]) -> Iterator[tuple[Path, str]]:
    """Those that came to their end, and what they are."""
    for run in given:
        history = run / HISTORY_FILE
        if history.exists() and history.stat().st_size < LONGEST:
            verdict = verdict_of(run)
            if verdict != REFUSED:
                yield run, verdict


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of runs")
    arguments = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="lockcheck-damage-") as name:
        folder = Path(name)
        runs = list(whole_runs([run.resolve() for run in arguments.runs]))
        if not runs:
            parser.error("none of these is the folder of a whole run")
        print(f"{len(runs)} whole runs:", dict(Counter(verdict for _, verdict in runs)))
        for number in range(arguments.number):
            kind, verdict, mistake = try_one(number, arguments.seed, runs, folder)
            counts[kind, verdict] += 1
            if mistake:
                failures += 1
                print(f"{number}: {kind}: {mistake}", flush=True)
    for (kind, verdict), times in sorted(counts.items()):
        print(f"{times:>6} {kind}: {verdict}")
    print(f"{counts.total()} damaged, {failures} judged wrongly")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
