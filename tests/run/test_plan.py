"""What a run is judged by, and where its data is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockcheck.backends import BACKENDS
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.history.event import UNLIMITED_PERMITS
from lockcheck.nemesis import FAULTS
from lockcheck.nodes.node import Role
from lockcheck.run.plan import begin_orders, node_specs, plan_rows, storage_node, terms
from lockcheck.run.validation import validated
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
    asked = config(backend)
    found = storage_node(asked)
    assert found is not None
    assert found.name == where
    assert any(spec.role is Role.STORAGE for spec in node_specs(asked)) == (where == "s1")
    assert terms(asked).guard == guard
    assert asked.is_guarded() == (where == "p1")


def test_where_nobody_is_kept_out_everybody_may_be_in() -> None:
    assert terms(config("optimistic")).permits == UNLIMITED_PERMITS
    assert terms(config("postgres-row")).permits == 1


def test_who_lets_go_of_a_lost_client_is_said_where_it_is_not_the_lease(tmp_path: Path) -> None:
    told = dict(plan_rows(config("postgres-advisory"), tmp_path, "local"))
    assert "tcp_user_timeout" in told["a lost client is let go by"]
    assert "a lost client is let go by" not in dict(plan_rows(config("redis"), tmp_path, "local"))


def test_transactions_need_no_guard() -> None:
    with pytest.raises(UserError, match="its own transactions"):
        validated(config("postgres-row", guard=Guard.CAS))
    assert validated(config("postgres-row"))


def test_clients_of_a_pooler_speak_to_the_pooler() -> None:
    from lockcheck.nodes.node import NodeFacts

    asked = config("postgres-advisory-pooled")
    facts = {
        spec.name: NodeFacts(spec.name, spec.role, f"10.0.0.{n}", "")
        for n, spec in enumerate(node_specs(asked))
    }
    for worker in begin_orders(asked, facts).workers:
        assert worker.servers == ((facts["b1"].address, 6432),)


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
    specs = node_specs(config(backend, nemesis=nemesis))
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
    validated(config(lock, nemesis=("all",), version=(version,)))


def _cure(asked: RunConfig) -> str:
    """Of its refusal; empty where the run is possible."""
    try:
        validated(asked)
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


def test_clients_that_count_by_the_wall_clock_believe_by_clocks_of_their_own() -> None:
    told = terms(config("redlock", check_validity=True, lease_clock=Clock.WALL))
    assert (told.honours_validity, told.own_clocks) == (True, True)
    assert not terms(config("redlock", check_validity=True)).own_clocks
    with pytest.raises(UserError, match="has no effect") as refused:
        validated(config("redlock", lease_clock=Clock.WALL))
    assert "--check-validity" in refused.value.cure
