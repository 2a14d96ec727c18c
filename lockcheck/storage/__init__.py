"""The storages by kind, as `Backend.storage` names them: what a lock protects, with a ledger."""

from __future__ import annotations

from lockcheck.plugins import Registry
from lockcheck.servers import SERVERS
from lockcheck.servers.wire import Address
from lockcheck.storage.base import Guard, Storage, StorageKind

STORAGES = Registry(
    "lockcheck.storages",
    StorageKind,
    __name__,
    {"redis": "redis:STORAGE", "postgres": "postgres:STORAGE"},
)


def open_storage(kind: str, address: Address, guard: Guard) -> Storage:
    return STORAGES[kind].open(address, guard)


def port_of(kind: str) -> int:
    return SERVERS[STORAGES[kind].server].port
