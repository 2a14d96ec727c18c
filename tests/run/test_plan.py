"""What a run is judged by, and where its data is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lockcheck.backends import BACKENDS
from lockcheck.config import RunConfig, option_of, settings
from lockcheck.durations import parse_duration_ms
from lockcheck.errors import UserError
from lockcheck.history.event import UNLIMITED_PERMITS
from lockcheck.nemesis import FAULTS
from lockcheck.nodes.node import Role
from lockcheck.results.story.settings import settings_of
from lockcheck.run.orders import begin_orders
from lockcheck.run.resolve import planned, resolve
from lockcheck.run.rows import plan_rows
from lockcheck.servers import SERVERS
from lockcheck.servers.base import Clock
from lockcheck.storage.base import Guard
from tests.checker.dsl import codes, judged


def config(backend: str, **more: object) -> RunConfig:
    return RunConfig(backend=backend, seed=1, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("backend", "where", "guard"),
    [
        ("redis", "s1", "none"),
        ("postgres-advisory", "s1", "none"),
        ("postgres-row", "p1", "transaction"),
    ],
)
def test_data_is_apart_or_in_the_locks_own_server(backend: str, where: str, guard: str) -> None:
    plan = resolve(config(backend))
    assert plan.storage_node is not None
    assert plan.storage_node.name == where
    assert any(spec.role is Role.STORAGE for spec in plan.nodes) == (where == "s1")
    assert plan.terms.guard == guard
    assert plan.is_guarded == (where == "p1")


def test_where_nobody_is_kept_out_everybody_may_be_in() -> None:
    assert resolve(config("optimistic")).terms.permits == UNLIMITED_PERMITS
    assert resolve(config("postgres-row")).terms.permits == 1


def test_who_lets_go_of_a_lost_client_is_said_where_it_is_not_the_lease(tmp_path: Path) -> None:
    rows = dict(plan_rows(resolve(config("postgres-advisory")), tmp_path, "local"))
    assert "tcp_user_timeout" in rows["dead clients are released by"]
    rows = dict(plan_rows(resolve(config("redis")), tmp_path, "local"))
    assert "dead clients are released by" not in rows


def test_what_is_tested_has_the_same_words_in_the_plan_and_on_the_page(tmp_path: Path) -> None:
    plan = resolve(config("redis-fenced", guard=Guard.FENCE, nemesis=("pause then slow", "clock")))
    rows = dict(plan_rows(plan, tmp_path, "local"))
    on_the_page = dict(settings_of(plan.terms))
    assert {name: value for name, value in on_the_page.items() if rows[name] != value} == {
        "--backend": "redis-fenced",
        "--workload": "register",
        "--nemesis": "pause:holder, slow:holder, clock:server",
    }
    assert rows["--backend"].startswith("redis-fenced: ")
    assert rows["--nemesis"] == "pause:holder then slow:holder, clock:server"
    assert (rows["--guard"], rows["--ttl"], rows["--clients"]) == ("fence", "1s", "5")
    assert {name for name in rows if name.startswith("--")} <= set(map(option_of, settings()))


def test_transactions_need_no_guard() -> None:
    with pytest.raises(UserError, match="its own transactions"):
        resolve(config("postgres-row", guard=Guard.CAS))
    assert resolve(config("postgres-row"))


def test_clients_of_a_pooler_speak_to_the_pooler() -> None:
    plan = resolve(config("postgres-advisory-pooled"))
    addresses = {spec.name: f"10.0.0.{n}" for n, spec in enumerate(plan.nodes)}
    for worker in begin_orders(plan, addresses, None).workers:
        assert worker.servers == ((addresses["b1"], 6432),)


def test_a_holder_that_is_late_does_no_harm_to_a_transaction() -> None:
    both = ("1 acquire 0-1", "2 acquire 150-151", "1 read 160-161", "2 release 170-171")
    held: dict[str, Any] = {"ttl_ms": 100, "backend": "postgres-row", "session": True}
    found = judged(*both, guard="transaction", **held)
    assert codes(found) == ["overlap"]
    assert found.findings[0].effect.value == "ok"
    assert judged(*both, **held).findings[0].effect.value == "violation"


@pytest.mark.parametrize(
    ("backend", "nemesis", "under_it"),
    [
        ("zookeeper", ("clock:leader",), True),
        ("zookeeper", ("pause", "clock:strobe=1s"), True),
        ("zookeeper", ("clock:leader,wall",), False),
        ("zookeeper", ("clock:client",), False),
        ("zookeeper", ("pause",), False),
        ("etcd", ("clock:leader",), False),
    ],
)
def test_servers_run_under_libfaketime_only_where_a_fault_needs_it(
    backend: str, nemesis: tuple[str, ...], under_it: bool
) -> None:
    specs = resolve(config(backend, nemesis=nemesis)).nodes
    assert {spec.faketime for spec in specs if spec.role is Role.SERVER} == {under_it}
    assert not any(spec.faketime for spec in specs if spec.role is not Role.SERVER)


IN_VERSIONS = [
    pytest.param(lock.name, f"{software}={version}", id=f"{lock.name} {version}")
    for lock in BACKENDS.values()
    for software in sorted({spec.kind.software for spec in lock.servers if spec.kind})
    for version in SERVERS[software].versions
]


@pytest.mark.parametrize(("lock", "version"), IN_VERSIONS)
def test_every_fault_is_possible_in_a_version_where_it_is_in_the_usual_one(
    lock: str, version: str
) -> None:
    texts = [f"{kind.name}:{aim.name}" for kind in FAULTS.values() for aim in kind.aims]
    for text in (*texts, "kill:server,no-data", "disk:read-only", "clock:drift=1.5"):
        usual = _cure(config(lock, nemesis=(text,)))
        assert _cure(config(lock, nemesis=(text,), version=(version,))) == usual, text
    planned(config(lock, nemesis=("all",), version=(version,)))


def _cure(asked: RunConfig) -> str:
    """Of its refusal; empty where the run is possible."""
    try:
        resolve(asked)
    except UserError as refused:
        return refused.cure
    return ""


@pytest.mark.parametrize(
    ("lock", "version", "nemesis"),
    [
        ("etcd", "etcd=3.4", "disk"),
        ("redis", "redis=7", "disk"),
        ("redis-failover", "redis=7", "failover"),
    ],
)
def test_a_version_takes_the_faults_of_its_server(lock: str, version: str, nemesis: str) -> None:
    assert _cure(config(lock, nemesis=(nemesis,), version=(version,))) == ""


def test_a_plan_is_a_value() -> None:
    asked = config("redlock", nemesis=("pause then kill:server", "clock"), version=("redis=7",))
    assert resolve(asked) == resolve(asked) != resolve(config("redlock"))
    assert "RunPlan(" in repr(resolve(asked))


def test_a_run_is_resolved_without_a_look_at_files_or_networks() -> None:
    script = (
        "import sys; from lockcheck.config import RunConfig\n"
        "from lockcheck.run.resolve import resolve\n"
        "def run(): return resolve(RunConfig(backend='redis', seed=1, nemesis=('clock', 'slow')))\n"
        "run(); seen = []\n"
        "sys.addaudithook(lambda event, _: seen.append(event))\n"
        "run()\n"
        "looks = ('open', 'os.', 'socket.', 'subprocess.', 'import')\n"
        "assert not [event for event in seen if event.startswith(looks)], seen\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("lock", "ttl_ms", "step", "cure"),
    [
        ("mariadb-get-lock", 1200, "500 ms (got 1200 ms)", "--ttl 1500ms"),
        ("mariadb-get-lock", 1700, "500 ms (got 1700 ms)", "--ttl 2s"),
        ("etcd", 1200, "1000 ms (got 1200 ms)", "--ttl 2s"),
    ],
)
def test_a_ttl_between_two_steps_of_a_lock_is_refused_and_the_next_step_taken(
    lock: str, ttl_ms: int, step: str, cure: str
) -> None:
    asked = config(lock, ttl_ms=ttl_ms, nemesis=("none",))
    with pytest.raises(UserError) as refused:
        resolve(asked)
    assert refused.value.message == f"{lock} needs --ttl in steps of {step}"
    assert refused.value.cure == cure
    taken_ms = parse_duration_ms(cure.removeprefix("--ttl "))
    assert resolve(config(lock, ttl_ms=taken_ms, nemesis=("none",)))


def test_clients_that_count_by_the_wall_clock_believe_by_clocks_of_their_own() -> None:
    terms = resolve(config("redlock", check_validity=True, lease_clock=Clock.WALL)).terms
    assert (terms.check_validity, terms.own_lease_clock) == (True, True)
    assert not resolve(config("redlock", check_validity=True)).terms.own_lease_clock
    with pytest.raises(UserError, match="has no effect") as refused:
        resolve(config("redlock", lease_clock=Clock.WALL))
    assert "--check-validity" in refused.value.cure
