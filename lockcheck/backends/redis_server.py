"""What all locks on Redis share: the server as a node, and what its errors mean."""

from __future__ import annotations

from lockcheck.backends.base import ErrorRow
from lockcheck.history import EventType
from lockcheck.nodes import NodeSpec, Role
from lockcheck.redis_node import REDIS_ARGUMENTS, REDIS_PORT


def redis_server(name: str, role: Role = Role.SERVER) -> NodeSpec:
    return NodeSpec(name, role, "redis", REDIS_ARGUMENTS, REDIS_PORT)


FAIL, INFO = EventType.FAIL, EventType.INFO

# The first row that fits decides; BusyLoadingError is a ConnectionError, so it comes before it.
REDIS_ERRORS = (
    ErrorRow("connect", "RedisError", FAIL, "could not connect, so nothing was sent"),
    ErrorRow("connect", "OSError", FAIL, "could not connect, so nothing was sent"),
    ErrorRow("command", "BusyLoadingError", FAIL, "the server is loading and refuses commands"),
    ErrorRow("command", "ReadOnlyError", FAIL, "the server is a replica and refuses writes"),
    ErrorRow("command", "TimeoutError", INFO, "sent, but not answered in time"),
    ErrorRow("command", "ConnectionError", INFO, "sent, but the connection broke"),
    ErrorRow("command", "OSError", INFO, "sent, but the connection broke"),
)
