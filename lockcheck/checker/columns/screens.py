"""Whether events of a long history are needed, and which: what concerns all checks. What concerns
one is its own `Screen`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.columns.stored import Stored
from lockcheck.checker.columns.stretches import Suspected, all_follow, suspected
from lockcheck.checker.columns.struck import all_granted_in_the_quiet, doubtful, is_tellable
from lockcheck.checker.registry import CHECKS
from lockcheck.checker.whole_run.freed import FREEING
from lockcheck.history.scan import Scan
from lockcheck.history.table import Ints


def whole(scan: Scan, written: Stored | None) -> str:
    """Why the history has to be judged event by event; empty: it need not be."""
    if written is None or _has_loose_ends(scan, written):
        return "its storage remembers something else than its clients"
    for reason, applies in (*NEEDS_EVENTS.items(), *((s.reason, s.whole) for s in _screens(scan))):
        if applies(scan):
            return reason
    return next((s.reason for s in _screens(scan) if s.stored(scan, written)), "")


def places(scan: Scan) -> dict[str, list[Ints]]:
    """Groups of rows in which there may be something to find, by the code of the check."""
    found = {screen: list(screen.places(scan)) for screen in _screens(scan)}
    by_code = {code: found.get(check.screen, []) for code, check in CHECKS.items()}
    return {code: groups for code, groups in by_code.items() if groups}


def _screens(scan: Scan) -> dict[Screen, None]:
    """Each once: what one finds may serve several checks."""
    return dict.fromkeys(c.screen for c in CHECKS.values() if c.judges(scan.terms))


def suspected_writes(scan: Scan, written: Stored | None) -> Suspected | None:
    """Of a history that need not be judged event by event. None: it has no ledger."""
    if written is not None and not len(scan.columns.ledger.at):
        return Suspected(written, [], [])  # else it is judged event by event
    return suspected(scan, written.take(written.accepted)) if written else None


def _has_loose_ends(scan: Scan, written: Stored) -> bool:
    """What the storage numbered and what its ledger has do not fit together, or there is no ledger;
    or it refused something for a reason that only the events explain."""
    if not len(scan.columns.ledger.at):
        return len(written) > 0 and (scan.terms.stores or not all_follow(scan, written))
    if not (written.accepted | written.by_guard).all():
        return True
    return suspected(scan, written.take(written.accepted)) is None


def _strikes_holders_of_several(scan: Scan) -> bool:
    """Of one lock the holds are in the order of their starts."""
    freeing = any(fault.effect in FREEING for fault in scan.context.faults)
    several = len(np.unique(scan.table.key)) > 1
    return several and bool(scan.context.faults) and (freeing or bool(scan.terms.at_holders))


NEEDS_EVENTS: dict[str, Callable[[Scan], bool]] = {
    "a fault was never healed": lambda scan: any(
        fault.healed_ns is None for fault in scan.context.faults
    ),
    "holders of several locks were struck": _strikes_holders_of_several,
    "a fault that nobody may have felt": lambda scan: (
        not all(is_tellable(scan, fault) for fault in doubtful(scan))
    ),
    "a lock was not granted again after the last fault": lambda scan: (
        not all_granted_in_the_quiet(scan)
    ),
    "its holds last as long as sessions": lambda scan: scan.terms.session,
    "several may hold its lock": lambda scan: scan.terms.permits > 1,
    "its lock is entered again, or released by anyone": lambda scan: (
        scan.terms.reentrant or scan.terms.released_by_anyone
    ),
}
