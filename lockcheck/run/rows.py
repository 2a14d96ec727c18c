"""The plan of a run in rows, for people: what is tested, and how it is carried out."""

from __future__ import annotations

from pathlib import Path

from lockcheck.durations import Duration, DurationRange, duration_words
from lockcheck.nemesis.grammar import sequence_words
from lockcheck.nodes.node import in_words
from lockcheck.results.story.settings import Rows, settings_of
from lockcheck.run.plan import RunPlan
from lockcheck.runs.facts import NOT_TESTED

NOT_OURS = "faults of the servers: they are not lockcheck's, so faults strike clients only"


def plan_rows(plan: RunPlan, results: Path, runtime: str) -> Rows:
    config, lock, workload = plan.config, plan.lock, plan.workload
    in_full = {
        "--backend": f"{lock.name}: {lock.summary} ({lock.promises.words()})",
        "--workload": f"{workload.name}: {workload.summary}",
        "--nemesis": ", ".join(map(sequence_words, plan.nemesis)),  # also what follows what
    }
    return (
        *((name, in_full.get(name, value)) for name, value in settings_of(plan.terms)),
        *([("--image", config.image)] if config.image else []),
        ("servers", in_words(plan.servers)),
        *([(NOT_TESTED, NOT_OURS)] if plan.faults.elsewhere else []),
        *([("dead clients are released by", lock.ended_by)] if lock.ended_by else []),
        ("--think", _work_words(config.think_ms)),
        ("--time-limit", duration_words(config.time_limit_ms)),
        ("runtime", runtime),
        ("results", str(results)),
    )


def _work_words(think: Duration) -> str:
    about = "" if isinstance(think, DurationRange) else "about "
    return f"{about}{duration_words(think)}"
