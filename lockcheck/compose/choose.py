"""Chooses the runtime of a run."""

from __future__ import annotations

from collections.abc import Iterable

from lockcheck.compose.docker.runtime import DockerRuntime
from lockcheck.compose.local.runtime import LocalRuntime
from lockcheck.compose.runtime import Runtime
from lockcheck.errors import NoRuntimeError
from lockcheck.servers.kind import Kind

RUNTIMES: dict[str, type[Runtime]] = {"local": LocalRuntime, "docker": DockerRuntime}


def choose_runtime(wanted: str, servers: Iterable[Kind] = ()) -> tuple[Runtime, str]:
    """The runtime, and the reason in words; `auto` takes the first that can run these servers."""
    servers = tuple(servers)
    if wanted in RUNTIMES:
        runtime = RUNTIMES[wanted]()
        if reason := runtime.why_not(servers):
            raise NoRuntimeError(f"the {wanted} runtime cannot run here", cure=reason)
        return runtime, "as asked"
    reasons = {}
    for name, kind in RUNTIMES.items():
        runtime = kind()
        reasons[name] = runtime.why_not(servers)
        if not reasons[name]:
            return runtime, _why(name, reasons)
    raise NoRuntimeError(
        "this host can run neither runtime",
        cure="; ".join(f"{name}: {reason}" for name, reason in reasons.items()),
    )


def _why(chosen: str, reasons: dict[str, str]) -> str:
    if chosen == "local":
        return "this host has network namespaces: no Docker needed"
    return f"not local: {reasons['local']}"
