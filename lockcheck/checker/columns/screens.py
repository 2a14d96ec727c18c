"""What the columns of a history alone can clear of suspicion, code by code.

A screen may suspect too much, and then the judge looks at the events and finds nothing. It may
never clear what the judge would find: `tests/checker/columns/test_screens.py` holds each to that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker.columns.stored import stored
from lockcheck.checker.columns.stretches import Suspected, all_follow, suspected
from lockcheck.checker.columns.struck import all_granted_in_the_quiet, doubtful, is_tellable
from lockcheck.checker.finding import Code
from lockcheck.checker.judges.deadlock import SHORTEST_NS
from lockcheck.checker.judges.stuck import FEWEST_REFUSED
from lockcheck.checker.whole_run.freed import FREEING
from lockcheck.history.ordering import BEFORE_ALL, latest_before, order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import NEVER, NO_TOKEN, NOTHING, Ints, Op, Outcome, Table, among

# Of a history that is wrong all over, this many places are looked at.
MOST_PLACES = 1_000
MOST_IN_A_RUN = 100_000  # of ours that has faults: there it is what they are for

Mask: TypeAlias = NDArray[np.bool_]


def whole(scan: Scan) -> str:
    """Why the history has to be judged event by event; empty: it need not be."""
    for reason, applies in WHOLE.items():
        if applies(scan):
            return reason
    return ""


def most_places(scan: Scan) -> int:
    return MOST_IN_A_RUN if scan.context.faults else MOST_PLACES


def places(scan: Scan) -> dict[Code, list[Ints]]:
    """Groups of rows in which there may be something to find, by code; what is clear is left out.

    Groups are whole: nothing that one of them is about lies outside of it and its time."""
    found = {
        Code.OVERLAP: list(_overlapping(scan)),
        Code.TOKEN_REGRESSION: list(_regressions(scan.table)),
        Code.REVIVED: list(_revivals(scan.table)),
    }
    found[Code.SILENT_LOSS] = found[Code.OVERLAP]  # whoever held it after a loss overlapped
    return {code: groups for code, groups in found.items() if groups}


def suspected_writes(scan: Scan) -> Suspected | None:
    """Of a history that need not be judged event by event. None: it has no ledger."""
    written = stored(scan)
    if written is not None and not len(scan.columns.ledger.at):
        return Suspected(written, [], [])  # else it is judged event by event
    return suspected(scan, written.take(written.accepted)) if written else None


# --- what needs the events ------------------------------------------------------------------


def _has_loose_ends(scan: Scan) -> bool:
    """What the storage numbered and what it remembers do not fit together, or there is no ledger;
    or it refused something for a reason that only the events explain."""
    written = stored(scan)
    if written is None:
        return True
    if not len(scan.columns.ledger.at):
        return len(written) > 0 and (scan.terms.stores or not all_follow(scan, written))
    if not (written.accepted | written.by_guard).all():
        return True
    return suspected(scan, written.take(written.accepted)) is None


def _has_open_faults(scan: Scan) -> bool:
    return any(fault.healed_ns is None for fault in scan.context.faults)


def _strikes_holders_of_several(scan: Scan) -> bool:
    """Of one lock the holds are in the order of their starts."""
    freeing = any(fault.effect in FREEING for fault in scan.context.faults)
    several = len(np.unique(scan.table.key)) > 1
    return several and bool(scan.context.faults) and (freeing or bool(scan.terms.at_holders))


def _may_not_be_felt(scan: Scan) -> bool:
    return not all(is_tellable(scan, fault) for fault in doubtful(scan))


def _ends_refused(scan: Scan) -> bool:
    return not all_granted_in_the_quiet(scan)


def _is_fair(scan: Scan) -> bool:
    return scan.terms.fair


def _has_sessions(scan: Scan) -> bool:
    """Whether any renewal is told, and what befell whom, says how long they lasted."""
    return scan.terms.session


def _has_permits(scan: Scan) -> bool:
    return scan.terms.permits > 1


def _is_no_plain_lock(scan: Scan) -> bool:
    """Holds are not what columns take them for: entered again, or ended by somebody else."""
    return scan.terms.reentrant or scan.terms.released_by_anyone


def _has_blind_releases(scan: Scan) -> bool:
    table = scan.table
    said = (table.f == Op.RELEASE) & (table.result != NOTHING)
    values = [table.symbols.value(number) for number in np.unique(table.result[said]).tolist()]
    return any(isinstance(value, dict) and value.get("blind") is True for value in values)


def _has_sections(scan: Scan) -> bool:
    """What ran, or was changed on keys that are locks too, by somebody who was refused when it
    asked last, or who never asked. That may have been before a log of somebody's day, if nobody
    else was granted it since."""
    table, done = scan.table, scan.table.outcome == Outcome.OK
    changes = among(table.f, (Op.WRITE, Op.CAS, Op.ADD)) & done
    changes &= np.isin(table.key, _locked_keys(table))
    if (table.f == Op.RUN).any():
        return True
    rows = np.flatnonzero(changes | (table.f == Op.ACQUIRE))
    rows = rows[order_by(table.process[rows], table.key[rows], rows)]
    asks = table.f[rows] == Op.ACQUIRE
    last = np.maximum.accumulate(np.where(asks, np.arange(len(rows)), -1))
    asked = rows[last]
    own = (last >= 0) & (table.process[asked] == table.process[rows])
    own &= table.key[asked] == table.key[rows]
    suspect = np.where(own, table.outcome[asked] == Outcome.FAIL, True)
    if scan.terms.partial:
        suspect &= own | _granted_before(table, rows)
    return bool((~asks & suspect).any())


def _granted_before(table: Table, rows: Ints) -> Mask:
    """Somebody was granted the same lock by then."""
    granted = np.flatnonzero((table.f == Op.ACQUIRE) & (table.outcome == Outcome.OK))
    first = np.full(int(table.key.max(initial=0)) + 2, NEVER)
    np.minimum.at(first, table.key[granted] + 1, table.end[granted])
    before: Mask = first[table.key[rows] + 1] < table.start[rows]
    return before


def _locked_keys(table: Table) -> NDArray[np.int32]:
    return np.unique(table.key[table.f == Op.ACQUIRE])


def _may_be_stuck(scan: Scan) -> bool:
    """Refusals after the last grant of a key: a few there are at the end of any history."""
    table = scan.table
    acquires = np.flatnonzero(table.f == Op.ACQUIRE)
    granted = acquires[table.outcome[acquires] == Outcome.OK]
    last = np.full(int(table.key.max(initial=0)) + 2, -1, np.int64)
    last[table.key[granted] + 1] = granted
    refused = acquires[table.outcome[acquires] == Outcome.FAIL]
    after = refused[refused > last[table.key[refused] + 1]]
    tried = np.bincount(table.key[after] + 1) if len(after) else np.zeros(1)
    return bool((tried >= FEWEST_REFUSED).any())


def _wait_while_holding(scan: Scan) -> bool:
    """Two clients waited for a lock while they held another one: fewer are no circle."""
    table, holds = scan.table, scan.holds
    long = (table.f == Op.ACQUIRE) & (table.end - table.start >= SHORTEST_NS)
    asks = np.flatnonzero(long)
    if len(np.unique(table.process[asks])) < 2 or len(_locked_keys(table)) < 2:
        return False
    # What the next attempt, or the release, ends is over by then; else it may be held until then.
    until = np.where(holds.ended < 0, holds.end, holds.end - 1)
    process = np.concatenate((table.process[holds.granted], table.process[asks]))
    since = np.concatenate((holds.start, table.start[asks]))
    until = np.concatenate((until, np.full(len(asks), BEFORE_ALL)))
    order = order_by(process, since)
    held_until = np.empty(len(order), np.int64)
    held_until[order] = latest_before(process[order], until[order])
    holding = asks[held_until[len(holds.granted) :] >= table.start[asks]]
    return len(np.unique(table.process[holding])) >= 2


WHOLE: dict[str, Callable[[Scan], bool]] = {
    "its storage remembers something else than its clients": _has_loose_ends,
    "a fault was never healed": _has_open_faults,
    "holders of several locks were struck": _strikes_holders_of_several,
    "a fault that nobody may have felt": _may_not_be_felt,
    "a lock was not granted again after the last fault": _ends_refused,
    "its lock promises fairness": _is_fair,
    "its holds last as long as sessions": _has_sessions,
    "several may hold its lock": _has_permits,
    "its lock is entered again, or released by anyone": _is_no_plain_lock,
    "its releases do not look what they remove": _has_blind_releases,
    "it tells of what was done without the lock": _has_sections,
    "its lock may be stuck at the end": _may_be_stuck,
    "clients waited for a lock while holding another one": _wait_while_holding,
}


# --- where to look -------------------------------------------------------------------------------


def _overlapping(scan: Scan) -> Iterator[Ints]:
    """Holds of a key that have an instant in common, and all that overlap with them."""
    table, holds = scan.table, scan.holds
    if len(holds.granted) < 2:
        return
    key = table.key[holds.granted]
    latest = latest_before(key, holds.end)
    alone = holds.start >= latest
    if alone.all():
        return
    first = np.flatnonzero(alone)
    sizes = np.diff(np.append(first, len(alone)))
    several = sizes > 1
    most = most_places(scan)
    for at, size in zip(
        first[several][:most].tolist(), sizes[several][:most].tolist(), strict=True
    ):
        together = slice(at, at + size)
        rows = np.concatenate((holds.granted[together], holds.ended[together]))
        yield rows[rows >= 0]


def _regressions(table: Table) -> Iterator[Ints]:
    """Grants whose token is not above those of all that were granted before."""
    told = np.flatnonzero((table.f == Op.ACQUIRE) & (table.token != NO_TOKEN))
    if len(told) < 2:
        return
    by_end = told[order_by(table.key[told], table.end[told])]
    key, token = table.key[by_end], table.token[by_end]
    same = key[1:] == key[:-1]
    if not (same & (token[1:] <= token[:-1])).any():
        return  # tokens grow from answer to answer, so from any grant to any later one
    # Against the highest of the same key so far, however many answers came in between.
    rank = np.unique(token, return_inverse=True)[1].astype(np.int64)
    place = np.cumsum(np.append(False, ~same)) * (len(rank) + 1) + rank
    suspected = np.flatnonzero(same & (place[1:] <= np.maximum.accumulate(place)[:-1])) + 1
    for at in suspected[:MOST_PLACES].tolist():
        first = int(np.searchsorted(key[: at + 1], key[at], "left"))
        above = first + np.flatnonzero(token[first:at] >= token[at])
        yield by_end[np.append(above[-MOST_PLACES:], at)]


def _revivals(table: Table) -> Iterator[Ints]:
    """Renewals that were granted to somebody who was not the last one to be granted the lock."""
    ok = table.outcome == Outcome.OK
    renewals = np.flatnonzero(ok & (table.f == Op.RENEW))
    grants = np.flatnonzero(ok & (table.f == Op.ACQUIRE))
    if len(renewals) == 0 or len(grants) == 0:
        return
    # Each renewal among the grants: the last one of its key that was answered before it was sent.
    both = np.concatenate((grants, renewals))
    time = np.concatenate((table.end[grants], table.start[renewals]))
    is_renewal = np.arange(len(both)) >= len(grants)
    order = order_by(table.key[both], time, (~is_renewal).astype(np.int8))
    both, is_renewal = both[order], is_renewal[order]
    last = np.maximum.accumulate(np.where(is_renewal, -1, np.arange(len(both))))
    at = np.flatnonzero(is_renewal & (last >= 0))
    grant, renewal = both[last[at]], both[at]
    others = (table.key[grant] == table.key[renewal]) & (
        table.process[grant] != table.owner[renewal]
    )
    for one, other in zip(*_first(grant[others], renewal[others]), strict=True):
        own = (table.process[:other] == table.owner[other]) & (table.f[:other] == Op.ACQUIRE)
        yield np.append(np.flatnonzero(own)[-1:], (one, other))


def _first(*columns: Ints) -> list[list[int]]:
    return [column[:MOST_PLACES].tolist() for column in columns]
