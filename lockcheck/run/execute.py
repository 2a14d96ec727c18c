"""One run, from the plan to the report: the one file that knows every stage."""

from __future__ import annotations

import platform
import shlex
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from lockcheck import __version__
from lockcheck.agent.outlet import Outlet, check_reachable
from lockcheck.backends.program.environment import bring_environment
from lockcheck.cache import remove_leftovers
from lockcheck.check.collecting import not_collecting
from lockcheck.check.loading import loaded
from lockcheck.check.patience import FOR_A_RUN_MS, patient_for
from lockcheck.check.recheck import judged
from lockcheck.compose.choose import choose_runtime
from lockcheck.compose.runtime import ClusterPlan, Runtime
from lockcheck.config import RunConfig
from lockcheck.errors import LockcheckError, UserError
from lockcheck.formats import ReadOptions
from lockcheck.results.judgement import Judgement, with_story
from lockcheck.results.publish import publish
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.story.settings import Rows
from lockcheck.run.experiment import await_ready, conduct, ending, keep_running
from lockcheck.run.notes import Judged, LeaseOutlived, Planned, Preparing, Ready, Watcher, silent
from lockcheck.run.orders import begin_orders, nemesis_orders, program_of
from lockcheck.run.plan import RunPlan
from lockcheck.run.resolve import planned
from lockcheck.run.rows import plan_rows
from lockcheck.run.validation import check_there
from lockcheck.runs.facts import RunFacts, now_in_words
from lockcheck.runs.record import Record, record_of
from lockcheck.runs.store import Store, out_of_space
from lockcheck.servers import SERVERS
from lockcheck.servers.base import check_drivers
from lockcheck.servers.versions import check_versions
from lockcheck.signals import INTERRUPTED, ignoring_signals

CUT_SHORT = "The run was killed, or has not ended yet; this is what had happened by then."
INTERRUPTION = "The run was interrupted; this is what had happened by then."


@dataclass(frozen=True, slots=True)
class RunOutcome:
    store: Store
    config: RunConfig
    narrative: Narrative
    facts: RunFacts
    record: Record
    error: LockcheckError | None  # of the cluster or of lockcheck itself

    @property
    def interrupted(self) -> bool:
        return self.facts.failed_with == INTERRUPTED

    @property
    def judgement(self) -> Judgement:
        return with_story(self.narrative.judgement, report=self.store.report, facts=self.facts)

    @property
    def exit_code(self) -> int:
        return self.facts.failed_with or self.narrative.judgement.verdict.exit_code


def execute(config: RunConfig, watcher: Watcher = silent) -> RunOutcome:
    """Runs a lock under faults on a cluster, judges its history, and writes the report in any case.

    Works on any thread. A KeyboardInterrupt ends the run early, and is not raised again.
    """
    plan = planned(config)
    config = plan.config
    remove_leftovers()
    wanted = "docker" if config.image else config.runtime
    runtime, why = choose_runtime(wanted, plan.kinds)
    _check_what_is_here(plan, runtime.name)
    check_reachable(plan.nodes)
    if config.requirements:
        bring_environment(config.requirements, config.python, lambda line: watcher(Preparing(line)))
    versions = (*_own_versions(plan, runtime), *_of_an_image(config.image))
    store = Store.create(Path(config.out))
    rows = plan_rows(plan, store.folder, f"{runtime.name} ({why})")
    watcher(Planned(rows))
    if plan.outlives_its_lease:
        watcher(LeaseOutlived())
    facts = RunFacts(
        run_id=store.run_id,
        started_at=now_in_words(),
        plan=rows,
        versions=versions,
        rerun_command=config.command(),
        check_command=shlex.join(["lockcheck", "check", str(store.folder)]),
        problem=CUT_SHORT,
        stops_within_ms=config.time_limit_ms if plan.stops_at_overlaps else 0,
    )
    attempt = _Attempt(plan, runtime, store, watcher)
    began = time.monotonic()
    attempt.make(facts)
    facts = replace(
        facts,
        versions=facts.versions + tuple(attempt.servers.items()),
        problem=attempt.problem,
        took_ms=(time.monotonic() - began) * 1000,
        failed_with=attempt.exit_code,
    )
    with ignoring_signals():
        outcome = _conclude(plan, store, facts, attempt.error)
    watcher(Judged(outcome.record))
    return outcome


@dataclass(slots=True)
class _Attempt:
    """The experiment on a cluster: how far it came, and what ended it."""

    plan: RunPlan
    runtime: Runtime
    store: Store
    watcher: Watcher
    servers: dict[str, str] = field(default_factory=dict)  # their versions
    error: LockcheckError | None = None
    interrupted: bool = False

    def make(self, facts: RunFacts) -> None:
        try:
            self.store.begin(self.plan.config, self.plan.terms, facts)
            self.store.save_record(record_of(facts, self.plan.config, None))
            self._on_a_cluster()
        except LockcheckError as failed:
            self.error = failed
        except OSError as failed:
            self.error = out_of_space(failed, self.store.folder)
        except KeyboardInterrupt:
            self.interrupted = True

    def _on_a_cluster(self) -> None:
        plan, store, watcher = self.plan, self.store, self.watcher
        began = time.monotonic()
        with ExitStack() as stack:
            nodes = ClusterPlan(
                store.run_id,
                plan.nodes,
                store.folder,
                client_folder=plan.config.folder_of_client,
                program_image=plan.config.image,
                packages=plan.packages,
            )
            started = self.runtime.start(nodes, lambda line: watcher(Preparing(line)))
            cluster = stack.enter_context(ending(started))
            stack.enter_context(closing(Outlet(cluster.agent, plan.nodes)))
            self.servers = cluster.versions
            check_versions(plan.kinds, cluster.versions)
            cluster.agent.ask("nemesis", nemesis_orders(plan))
            addresses = await_ready(cluster)
            watcher(Ready(len(addresses), took_ms=(time.monotonic() - began) * 1000))
            program = program_of(plan, store.run_id, self.runtime.name)
            orders = begin_orders(plan, addresses, program)
            self.interrupted = conduct(plan, cluster, orders, watcher)
            if plan.config.keep and not self.interrupted:
                keep_running(plan, cluster, watcher)

    @property
    def problem(self) -> str:
        if self.error is not None:
            return str(self.error)
        return INTERRUPTION if self.interrupted else ""

    @property
    def exit_code(self) -> int:
        """Of an error or an interruption; 0 if the verdict decides."""
        if self.interrupted:
            return INTERRUPTED
        return self.error.exit_code if self.error else 0


def _conclude(
    plan: RunPlan, store: Store, facts: RunFacts, error: LockcheckError | None
) -> RunOutcome:
    try:
        with not_collecting():
            store.assemble_history(plan.terms, facts)
            with loaded(str(store.history), ReadOptions()) as found:
                judgement = judged(found.history, patient_for(FOR_A_RUN_MS))
                narrative = Narrative(facts.applied_to(judgement))
                record = publish(store, narrative, facts)
    except OSError as failed:
        raise out_of_space(failed, store.folder) from error or failed
    return RunOutcome(store, plan.config, narrative, facts, record, error)


def _check_what_is_here(plan: RunPlan, runtime: str) -> None:
    """Refuses a run that lacks drivers, servers, or what its client needs."""
    if runtime == "local":
        for kind in plan.kinds:
            check_drivers(kind.server)
        return
    if added := [kind.name for kind in plan.kinds if SERVERS.package_of(kind.name)]:
        raise UserError(
            f"{runtime} has images of lockcheck's own servers, and none of {', '.join(added)}",
            cure="use --runtime local",
        )
    check_there(plan.config)


def _of_an_image(image: str) -> Rows:
    """Raises a UserError if the engine does not have it."""
    if not image:
        return ()
    from lockcheck.compose.docker.user_image import image_id

    return ((image, image_id(image)),)


def _own_versions(plan: RunPlan, runtime: Runtime) -> Rows:
    """The versions of lockcheck and of client libraries; servers report theirs when they run."""
    kinds, theirs = plan.kinds, plan.config.client_version
    drivers = chain.from_iterable(runtime.driver_versions(kind.server).items() for kind in kinds)
    return (
        ("lockcheck", __version__),
        *(((plan.lock.name, theirs),) if theirs else ()),
        ("Python", platform.python_version()),
        *dict.fromkeys(drivers),  # several kinds may share one
        ("kernel", f"{platform.system()} {platform.release()} {platform.machine()}"),
    )
