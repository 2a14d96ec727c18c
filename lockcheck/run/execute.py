"""One run, from the plan to the report. The one file that knows every stage; read it downwards."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from lockcheck import __version__
from lockcheck.check.collecting import not_collecting
from lockcheck.check.loading import loaded
from lockcheck.check.patience import FOR_A_RUN_MS, patient_for
from lockcheck.check.recheck import judged
from lockcheck.checker.finding import Judgement
from lockcheck.client.session import LONGEST_THINK
from lockcheck.compose.choose import choose_runtime
from lockcheck.compose.runtime import Cluster, ClusterPlan
from lockcheck.config import RunConfig
from lockcheck.errors import LockcheckError, UserError
from lockcheck.formats import ReadOptions
from lockcheck.history import History
from lockcheck.results.publish import publish
from lockcheck.run.experiment import await_ready, conduct, keep_running
from lockcheck.run.notes import LeaseOutlived, Message, Planned, Ready, Watcher, silent
from lockcheck.run.plan import Rows, kinds_of, node_specs, plan_rows, terms
from lockcheck.run.validation import validated
from lockcheck.runs.facts import RunFacts, now_in_words
from lockcheck.runs.store import Store, out_of_space
from lockcheck.servers.base import NOT_INSTALLED, check_drivers, driver_versions
from lockcheck.servers.versions import check_versions
from lockcheck.signals import INTERRUPTED, ignoring_signals

CUT_SHORT = "The run was killed, or has not ended yet; this is what had happened by then."


@dataclass(frozen=True, slots=True)
class RunOutcome:
    store: Store
    config: RunConfig
    history: History
    judgement: Judgement
    facts: RunFacts
    error: LockcheckError | None  # the cluster or lockcheck itself failed on the way
    interrupted: bool

    @property
    def exit_code(self) -> int:
        if self.interrupted:
            return INTERRUPTED
        if self.error is not None:
            return self.error.exit_code
        return self.judgement.verdict.exit_code


def execute(config: RunConfig, watcher: Watcher = silent) -> RunOutcome:
    """Cluster, clients, history, judgement, report: the report is written in any case.

    Works on any thread. A KeyboardInterrupt ends the run early, and is not raised again.
    """
    config = validated(config)
    runtime, why = choose_runtime(config.runtime, kinds_of(config))
    _check_what_is_here(config, runtime.name)
    store = Store.create(Path(config.out))
    rows = plan_rows(config, store.folder, f"{runtime.name} ({why})")
    watcher(Planned(rows))
    if _outlives_its_lease(config):
        watcher(LeaseOutlived())
    started_at, versions = now_in_words(), _own_versions(config)
    facts = RunFacts(
        run_id=store.run_id,
        started_at=started_at,
        plan=rows,
        versions=versions,
        rerun_command=config.command(),
        check_command=shlex.join(["lockcheck", "check", str(store.folder)]),
        problem=CUT_SHORT,
        stops_within_ms=config.time_limit_ms if config.stops_at_overlaps() else 0,
    )
    error: LockcheckError | None = None
    interrupted = False
    try:
        store.begin(config, terms(config), facts)
        began = time.monotonic()
        with ExitStack() as stack:
            folder = stack.enter_context(store.held())
            plan = ClusterPlan(store.run_id, node_specs(config), folder)
            start = runtime.start(plan, lambda line: watcher(Message(line)))
            cluster = stack.enter_context(_collecting(start))
            versions += tuple(cluster.versions.items())
            check_versions(kinds_of(config), cluster.versions)
            cluster.agent.ask("check_nemesis", config.nemesis)
            nodes = await_ready(cluster)
            watcher(Ready(len(nodes), took_ms=(time.monotonic() - began) * 1000))
            interrupted = conduct(config, cluster, nodes, watcher)
            if config.keep and not interrupted:
                keep_running(cluster, nodes, watcher)
    except LockcheckError as failed:
        error = failed
    except OSError as failed:
        error = out_of_space(failed, store.folder)
    except KeyboardInterrupt:
        interrupted = True
    facts = replace(facts, versions=versions, problem=_problem(error, interrupted))
    with ignoring_signals():
        return _conclude(config, store, facts, error, interrupted=interrupted)


def _conclude(
    config: RunConfig,
    store: Store,
    facts: RunFacts,
    error: LockcheckError | None,
    *,
    interrupted: bool,
) -> RunOutcome:
    try:
        with not_collecting():
            store.assemble_history(terms(config), facts)
            with loaded(str(store.history), ReadOptions()) as found:
                judgement, history = judged(found.history, patient_for(FOR_A_RUN_MS))
                judgement = facts.applied_to(judgement)
                publish(store, history, judgement, facts)
    except OSError as failed:
        raise out_of_space(failed, store.folder) from error or failed
    return RunOutcome(store, config, history, judgement, facts, error, interrupted)


def _check_what_is_here(config: RunConfig, runtime: str) -> None:
    """Clients in containers have their libraries, but no plugins of this host."""
    if runtime == "local":
        for kind in kinds_of(config):
            check_drivers(kind.server)
    elif added := config.from_outside():
        raise UserError(
            f"the {runtime} runtime's images contain only lockcheck itself: "
            f"{', '.join(added)} is missing",
            cure="use --runtime local",
        )


def _outlives_its_lease(config: RunConfig) -> bool:
    """The work under the lock takes longer than the lease, and nobody renews it."""
    promises = config.backend_under_test().promises
    kept_alive = promises.session or promises.renews or config.check_validity
    return not kept_alive and config.think_ms * LONGEST_THINK >= config.ttl_ms


def _own_versions(config: RunConfig) -> Rows:
    """Of lockcheck, and of the servers' client libraries; servers report their own."""
    drivers = chain.from_iterable(driver_versions(kind.server).items() for kind in kinds_of(config))
    return (
        ("lockcheck", __version__),
        ("Python", platform.python_version()),
        # Several kinds may share one; and containers have those that are missing here.
        *(row for row in dict.fromkeys(drivers) if row[1] != NOT_INSTALLED),
        ("kernel", f"{platform.system()} {platform.release()} {platform.machine()}"),
    )


def _problem(error: LockcheckError | None, interrupted: bool) -> str:
    if error is not None:
        return str(error)
    return "The run was interrupted; this is what had happened by then." if interrupted else ""


# --- ways out ------------------------------------------------------------------------------------


@contextmanager
def _collecting(cluster: Cluster) -> Iterator[Cluster]:
    """Fetches its files and ends it on every way out; a second Ctrl-C does not cut that short."""
    try:
        yield cluster
    finally:
        with ignoring_signals(), closing(cluster):
            cluster.collect()
