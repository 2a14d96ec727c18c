"""Plans of runs as the nemesis sees them, of a usual length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockcheck.nemesis import Plan, parse_nemesis
from lockcheck.nemesis.fitting import check_fit

USUAL: dict[str, Any] = {"ttl_ms": 1000, "time_limit_ms": 15_000, "clients": 5}


def plan(backend: str, servers: int, **more: Any) -> Plan:
    return Plan(**{"backend": backend, "servers": servers, **USUAL, **more})


def check_nemesis(texts: Iterable[str], plan: Plan) -> None:
    check_fit(map(parse_nemesis, texts), plan)
