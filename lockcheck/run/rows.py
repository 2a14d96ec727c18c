"""The plan of a run in rows, for people: what is tested, and how it is carried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from lockcheck.durations import duration_words
from lockcheck.nemesis.grammar import sequence_words
from lockcheck.nodes.node import NodeSpec
from lockcheck.results.story.settings import Rows, settings_of
from lockcheck.run.plan import RunPlan


def plan_rows(plan: RunPlan, results: Path, runtime: str) -> Rows:
    config, lock, workload = plan.config, plan.lock, plan.workload
    in_full = {
        "--backend": f"{lock.name}: {lock.summary} ({lock.promises.words()})",
        "--workload": f"{workload.name}: {workload.summary}",
        "--nemesis": ", ".join(map(sequence_words, plan.nemesis)),  # also what follows what
    }
    return (
        *((name, in_full.get(name, value)) for name, value in settings_of(plan.terms)),
        ("servers", in_numbers(plan.servers)),
        *([("dead clients are released by", lock.ended_by)] if lock.ended_by else []),
        ("--think", f"about {duration_words(config.think_ms)}"),
        ("--time-limit", duration_words(config.time_limit_ms)),
        ("runtime", runtime),
        ("results", str(results)),
    )


def in_numbers(servers: Iterable[NodeSpec]) -> str:
    """As in "3 etcd", "1 postgres, 1 pgbouncer", "1 redis=7"."""
    numbers = Counter(server.kind for server in servers)
    return ", ".join(f"{number} {kind}" for kind, number in numbers.items())
