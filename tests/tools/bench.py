"""How long lockcheck's own work takes, as ratios to a yardstick of the same run and machine.

`make bench`. The yardstick is decoding the history's JSON lines with msgspec: the least that any
judge of a file has to do. Nothing here is a test: machines are shared, and a figure is no truth.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lockcheck.checker import judge
from lockcheck.history import Event, EventType, History, Terms, read_events, write_events
from lockcheck.history.event import terms_event
from lockcheck.results.report import render
from lockcheck.results.story.narrative import Narrative
from lockcheck.runs.facts import RunFacts

OPERATIONS = 10_000


def long_history(operations: int) -> list[Event]:
    """Five clients take turns with one lock: acquire, read, write, release, over and over."""
    events = [terms_event(Terms(backend="redis", workload="register", ttl_ms=1000, clients=5))]
    ledger: list[tuple[int, str, str | None, str | None, int]] = []
    time_ns, seq = 0, 0
    mark: str | None = None
    for turn in range(operations // 4):
        process, node = turn % 5, f"c{turn % 5 + 1}"
        fresh = f"{node}-{turn}"
        for f, value, base in (
            ("acquire", None, None),
            ("read", mark, None),
            ("write", fresh, mark),
            ("release", None, None),
        ):
            for kind in (EventType.INVOKE, EventType.OK):
                time_ns += 250_000
                answered = kind is EventType.OK and f in ("read", "write")
                seq += answered
                events.append(
                    Event(
                        time=time_ns,
                        process=process,
                        type=kind,
                        f=f,
                        key="k1",
                        node=node,
                        value=value if answered or f == "write" else None,
                        base=base,
                        seq=seq if answered else None,
                        ttl_ms=1000 if f == "acquire" and kind is EventType.INVOKE else None,
                    )
                )
                if answered:
                    ledger.append((seq, f, value, base, process))
        mark = fresh
    events += [
        Event(
            time=time_ns + 1,
            process="storage",
            type=EventType.OK,
            f=f,
            key="k1",
            value=value,
            base=base,
            seq=number,
            of=process,
        )
        for number, f, value, base, process in ledger
    ]
    return events


def seconds(work: Callable[[], object]) -> float:
    """The best of three: what the machine can do when nobody is in its way."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.jsonl"
        write_events(path, long_history(OPERATIONS))
        yardstick = seconds(lambda: list(read_events(path)))
        history = History.of(read_events(path))
        judgement = judge(history)
        facts = RunFacts(
            run_id="b", started_at="", plan=(), versions=(), rerun_command="", check_command=""
        )
        stages: dict[str, Callable[[], object]] = {
            "read and understand": lambda: History.of(read_events(path)),
            "judge": lambda: judge(history),
            "write the report": lambda: render(Narrative(judgement), facts),
        }
        print(f"{OPERATIONS:,} operations, verdict {judgement.verdict}, ", end="")
        print(f"report {len(render(Narrative(judgement), facts).encode()) / 1e6:.2f} MB")
        print(f"{yardstick * 1000:8.1f} ms  decode the lines (the yardstick)")
        for name, work in stages.items():
            took = seconds(work)
            print(f"{took * 1000:8.1f} ms  {took / yardstick:6.1f} x  {name}")
    bare = seconds(lambda: subprocess.run([sys.executable, "-c", "import click"], check=True))
    helped = seconds(
        lambda: subprocess.run(
            [sys.executable, "-m", "lockcheck", "--help"], check=True, stdout=subprocess.DEVNULL
        )
    )
    print(f"{helped * 1000:8.1f} ms  {helped / bare:6.1f} x  lockcheck --help (x: importing click)")


if __name__ == "__main__":
    main()
