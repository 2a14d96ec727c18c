"""What the command line asks of the agent, in words that both sides import."""

from __future__ import annotations

import msgspec

from lockcheck.nodes import Role
from lockcheck.workloads.worker import WorkerOrders

NEMESIS_FILE = "nemesis.jsonl"
STORAGE_FILE = "storage.jsonl"
LAUNCH_FILE = "launch.json"


class AdoptedNode(msgspec.Struct, frozen=True):
    """A node that somebody else started; `pid` may be that of an init in front of it."""

    name: str
    role: Role
    address: str
    pid: int


class Probe(msgspec.Struct, frozen=True):
    node: str
    port: int


class BeginOrders(msgspec.Struct, frozen=True, kw_only=True):
    """The go. The agent adds the origin of time to the clients' orders."""

    workers: tuple[WorkerOrders, ...]
    nemesis: tuple[str, ...]
    ttl_ms: int
    seed: int
    time_limit_s: float


class EndOrders(msgspec.Struct, frozen=True):
    """`at_once`: heal now and kill the clients; else let faults and sections run their course."""

    at_once: bool
    grace_s: float
    storage: Probe | None


class Ended(msgspec.Struct, frozen=True):
    """How the clients left: those that had to be killed, and those that broke down before."""

    killed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
