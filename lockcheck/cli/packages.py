"""Packages that add something and cannot be used: what a command went without, and why."""

from __future__ import annotations

from lockcheck.cli.gate import print_error
from lockcheck.errors import LockcheckError, UserError
from lockcheck.plugins import newly_broken


def broken_packages() -> list[UserError]:
    """Of all kinds: their entry points are loaded for that."""
    from lockcheck.backends import BACKENDS
    from lockcheck.checker import CHECKS
    from lockcheck.checker.linearizability import MODELS
    from lockcheck.nemesis import FAULTS
    from lockcheck.servers import SERVERS
    from lockcheck.storage import STORAGES
    from lockcheck.workloads import WORKLOADS

    for registry in (BACKENDS, SERVERS, WORKLOADS, FAULTS, STORAGES, CHECKS, MODELS):
        len(registry)
    return newly_broken()


def note_broken_packages(reported: LockcheckError | None) -> None:
    """Those that the command came across; `reported` is the error that it has ended with."""
    for broken in newly_broken():
        if broken is not reported:
            print_error(f"left out: {broken.message}", broken.cure)
