"""The orders of a run's agent and clients, made from its plan."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from lockcheck.agent.orders import BeginOrders, EndOrders, LedgerOrders, NemesisOrders
from lockcheck.backends.program import ClientProgram
from lockcheck.backends.program.beside import DOOR
from lockcheck.client.worker import StorageAt, WorkerOrders
from lockcheck.compose.docker.compose_file import RUN_FOLDER
from lockcheck.durations import longest_ms
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.run.plan import RunPlan
from lockcheck.servers.wire import Address

# A section under way may still have to wait for servers that answer slowly.
LEAVING_GRACE_S = 15.0
LONGEST_GRACE_S = 120.0


def nemesis_orders(plan: RunPlan) -> NemesisOrders:
    sequences = tuple(tuple(step.orders() for step in sequence) for sequence in plan.nemesis)
    return NemesisOrders(sequences, plan.faults)


def begin_orders(
    plan: RunPlan, addresses: Mapping[str, str], program: ClientProgram | None
) -> BeginOrders:
    """`addresses`: by the names of the nodes."""
    config, storage, node = plan.config, plan.storage, plan.storage_node
    servers = tuple(_address(server, addresses) for server in plan.contacts)
    apart = (
        StorageAt(storage.name, _address(node, addresses))
        if storage and node and storage.apart
        else None
    )
    clients = [node.name for node in plan.nodes if node.role is Role.CLIENT]
    return BeginOrders(
        tuple(
            WorkerOrders(
                node=name,
                index=index,
                clients=len(clients),
                lock=plan.lock.name,
                workload=plan.workload.name,
                servers=servers,
                storage=apart,
                guard=config.guard,
                keys=config.key_names(),
                ttl_ms=config.ttl_ms,
                think_ms=config.work_ms,
                check_validity=config.check_validity,
                lease_clock=config.lease_clock,
                seed=config.seed,
                program=_at_its_door(program, name) if program and config.image else program,
                promises=config.promises,
            )
            for index, name in enumerate(clients)
        )
    )


def end_orders(plan: RunPlan, *, at_once: bool) -> EndOrders:
    under_way_s = 2 * (longest_ms(plan.config.think_ms) + plan.config.ttl_ms) / 1000
    grace_s = min(LEAVING_GRACE_S + under_way_s, LONGEST_GRACE_S)
    storage, node = plan.storage, plan.storage_node
    ledger = LedgerOrders(node.name, storage.name) if storage and node else None
    return EndOrders(at_once=at_once, grace_s=grace_s, ledger=ledger)


def program_of(plan: RunPlan, run_id: str, runtime: str) -> ClientProgram | None:
    """The client of a user's own lock, as the clients' nodes have it. On servers that are there
    already its keys are not anybody else's."""
    program = plan.config.program(runtime)
    if program is None or not plan.faults.elsewhere:
        return program
    return replace(program, key_prefix=key_prefix(run_id))


def _at_its_door(program: ClientProgram, client: str) -> ClientProgram:
    """In the container beside, where the agent starts it."""
    return replace(program, door=f"{RUN_FOLDER}/{client}/{DOOR}")


def key_prefix(run_id: str) -> str:
    """Of the keys on servers that are there already."""
    return f"lockcheck-{run_id}-"


def _address(node: NodeSpec, addresses: Mapping[str, str]) -> Address:
    return addresses[node.name], node.port
