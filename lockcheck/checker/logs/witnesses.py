"""What a history shows of the clocks of its hosts: differences that they cannot have.

Two holds that exclude each other came one after the other, in the order of their tokens if they
have any; a value is read after it was sent; a client does one thing after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np

from lockcheck.checker.finding import Code, Finding
from lockcheck.checker.logs.offsets import FAR, Choice, Gaps
from lockcheck.history import Ending, F, Hold, Operation, Terms
from lockcheck.history.clocks import slack_ns
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.hosts import Hosts
from lockcheck.history.ordering import order_by
from lockcheck.history.table import NEVER, NO_TOKEN, NOTHING, Codes, Ints, Op, Outcome, Table

MOST_PAIRS = 1_000_000
MOST_OF_A_FINDING = 100  # operations

Columns: TypeAlias = tuple[Ints, Ints, Ints, Ints]


@dataclass(frozen=True, slots=True)
class Witnesses:
    known: Gaps  # whatever the offsets are
    held: Ints  # grants whose ends are certain
    start: Ints
    end: Ints
    table: Table
    hosts: Hosts

    @staticmethod
    def of(table: Table, hosts: Hosts, terms: Terms, losers: Codes) -> Witnesses:
        """`losers` are processes that were notified of losses: when their holds ended is not looked
        at, nor at locks that several may hold, or any client release."""
        granted, end = _held(table, hosts, terms)
        sure = ~np.isin(table.owner[granted], losers) & (end >= table.end[granted])
        sure &= terms.permits == 1 and not terms.released_by_anyone
        granted, end = granted[sure], end[sure]
        tokens = _in_order_of_tokens(table, hosts, granted, end)
        columns = zip(_own_order(table, hosts), _reads(table, hosts), *tokens, strict=True)
        known = Gaps.of(*map(np.concatenate, columns))
        return Witnesses(known, granted, table.end[granted], end, table, hosts)

    def gaps(self, offsets: Ints, within_ns: int) -> Gaps:
        """Of holds on different hosts that come soon after each other with these offsets: so far as
        they concern differences up to `within_ns`."""
        table, later = self.table, offsets[self.hosts.of[self.held]]
        order = order_by(table.key[self.held], self.start + later)
        granted, start, end = self.held[order], self.start[order], self.end[order]
        host, key = self.hosts.of[granted], table.key[granted]
        shared, owner = table.shared[granted], table.owner[granted]
        found: list[Columns] = [(*self.known.columns,)]
        for far in _steps(len(host)):
            near = (key[:-far] == key[far:]) & (host[:-far] != host[far:])
            near &= (start[far:] - end[:-far] < within_ns) & (owner[:-far] != owner[far:])
            near &= ~(shared[:-far] & shared[far:])
            one = np.flatnonzero(near)
            other = one + far
            between = start[other] - end[one], end[other] - start[one]
            found.append((host[one], host[other], *between))
        return Gaps.of(*map(np.concatenate, zip(*found, strict=True)))


def _steps(rows: int) -> range:
    """How far apart rows are compared: the fewer there are, the farther."""
    return range(1, min(rows, 2 + MOST_PAIRS // max(1, rows)))


def _held(table: Table, hosts: Hosts, terms: Terms) -> tuple[Ints, Ints]:
    """The grants that ended with a release, or with the lease of a client that went on without
    one, and when."""
    acquires, releases = table.f == Op.ACQUIRE, table.f == Op.RELEASE
    refused = table.outcome == Outcome.FAIL
    rows = np.flatnonzero(acquires | releases | ((table.f == Op.RENEW) & refused))
    rows = rows[order_by(table.key[rows], table.owner[rows])]
    one, other = rows[:-1], rows[1:]
    same = (table.key[one] == table.key[other]) & (table.owner[one] == table.owner[other])
    given = acquires[one] & (table.outcome[one] == Outcome.OK)
    released = given & same & releases[other] & (hosts.of[one] == hosts.of[other])
    asked = np.flatnonzero(given & same & acquires[other] & refused[other])
    left = one[asked]
    # Up to its client's next operation other than requests that were refused, if that is sooner.
    known = np.append(np.flatnonzero(~(acquires[rows] & refused[rows])), 0)
    after = rows[known[np.searchsorted(known[:-1], asked, "right")]] if len(rows) else left
    later = table.same_client(left, after) & (after > left)
    until = _promised(table, left, terms)
    until = np.where(later, np.minimum(until, table.start[after]), until)
    ended = np.concatenate((table.start[other[released]], until))
    return np.concatenate((one[released], left)), ended


def _promised(table: Table, granted: Ints, terms: Terms) -> Ints:
    """Until when their leases certainly last; without a lease until the grant."""
    start, end = table.start[granted], table.end[granted]
    ttl_ms = np.where(table.ttl_ms[granted] > 0, table.ttl_ms[granted], terms.ttl_ms or 0)
    lease = ttl_ms.astype(np.int64) * NS_PER_MS
    request = end - start
    slack = [slack_ns(*each, terms) for each in zip(lease.tolist(), request.tolist(), strict=True)]
    until: Ints = np.maximum(end, start + lease - np.array(slack, np.int64))
    return until


def _in_order_of_tokens(table: Table, hosts: Hosts, granted: Ints, end: Ints) -> Iterator[Columns]:
    """A grant is answered after one with a smaller token was asked for, and given back if it was
    exclusive."""
    over, alone = table.start.copy(), ~table.shared[granted]
    over[granted[alone]] = end[alone]
    known = (table.f == Op.ACQUIRE) & (table.outcome == Outcome.OK) & (table.token != NO_TOKEN)
    rows = np.flatnonzero(known)
    rows = rows[order_by(table.key[rows], table.token[rows])]
    for far in _steps(len(rows)):
        one, other = rows[:-far], rows[far:]
        later = (table.key[one] == table.key[other]) & (table.token[one] < table.token[other])
        one, other = one[later], other[later]
        yield _before(hosts, one, other, table.end[other] - over[one])


def _reads(table: Table, hosts: Hosts) -> Columns:
    """Of values that were written once, on the same object."""
    written = (table.f == Op.WRITE) & (table.outcome != Outcome.FAIL)
    read = (table.f == Op.READ) & (table.outcome == Outcome.OK) & (table.result != NOTHING)
    writes, reads = np.flatnonzero(written), np.flatnonzero(read)
    what = table.key[writes].astype(np.int64) << 32 | table.argument[writes]
    seen = table.key[reads].astype(np.int64) << 32 | table.result[reads]
    once, first, times = np.unique(what, return_index=True, return_counts=True)
    at = np.minimum(np.searchsorted(once, seen), max(0, len(once) - 1))
    known = (once[at] == seen) & (times[at] == 1) if len(once) else np.zeros(len(seen), np.bool_)
    reads, writes = reads[known], writes[first[at[known]]] if len(once) else writes
    return _before(hosts, writes, reads, table.end[reads] - table.start[writes])


def _own_order(table: Table, hosts: Hosts) -> Columns:
    """Of clients that were on several hosts."""
    rows = order_by(table.process)
    one, other = rows[:-1], rows[1:]
    same = table.process[one] == table.process[other]
    one, other = one[same], other[same]
    done = np.where(table.end[one] == NEVER, table.start[one], table.end[one])
    return _before(hosts, one, other, table.start[other] - done)


def _before(hosts: Hosts, one: Ints, other: Ints, most: Ints) -> Columns:
    """The offset of the first is at most that much larger."""
    apart = hosts.of[one] != hosts.of[other]
    first, second = hosts.of[one[apart]], hosts.of[other[apart]]
    return first, second, most[apart], np.full(len(first), FAR)


# --- what a finding shows ------------------------------------------------------------------------


def choice_of(finding: Finding, host: dict[str, int], terms: Terms) -> Choice:
    """What has to be otherwise for this not to be found, in the times that it was found with; empty
    if no offsets of hosts matter to it, or too many."""
    if finding.code == Code.OVERLAP or (finding.proof is not None and len(finding.holds) > 1):
        return tuple(
            (host[one.node], host[other.node], other.start_ns - _until_ns(one, finding, terms))
            for first, second in combinations(finding.holds, 2)
            for one, other in ((first, second), (second, first))
            if one.node != other.node
        )
    return tuple(_another_order(finding, host, terms))


def _until_ns(hold: Hold, finding: Finding, terms: Terms) -> int:
    """When the lock was free of it. Where no order explains the answers, its client may have given
    it up before it released it, or before its lease was over."""
    if finding.proof is None:
        return hold.end_ns
    named = (o for o in finding.operations if o.f == F.RELEASE and o.process == hold.process)
    until_ns = max([hold.end_ns, *(release.start_ns for release in named)])
    if hold.ending is not Ending.LAST_SEEN:
        return until_ns
    first = hold is finding.holds[0]
    lapsed = finding.blame.promised_until_ns if first else hold.promised_until_ns(terms.ttl_ms)
    return max(until_ns, lapsed or until_ns)


def _another_order(
    finding: Finding, host: dict[str, int], terms: Terms
) -> Iterator[tuple[int, int, int]]:
    """Another order of the moments of two hosts that the finding names."""
    moments: dict[int, set[int]] = {}
    for operation in _operations(finding):
        moments.setdefault(host[operation.node], set()).update(_moments(operation, terms))
    for one, other in combinations(moments, 2):
        first, second = (np.array(sorted(moments[each])) for each in (one, other))
        apart = np.unique(second[None, :] - first[:, None])
        below, above = apart[apart < 0], apart[apart > 0]
        if len(below):
            yield one, other, int(below[-1])
        if len(above):
            yield other, one, -int(above[0])


def _operations(finding: Finding) -> Iterable[Operation]:
    named = [*finding.operations, *(o for hold in finding.holds for o in _of_hold(hold))]
    return () if len(named) > MOST_OF_A_FINDING else named


def _of_hold(hold: Hold) -> Iterator[Operation]:
    yield hold.acquire
    yield from hold.renewals
    if hold.release is not None:
        yield hold.release


def _moments(operation: Operation, terms: Terms) -> Iterator[int]:
    yield operation.start_ns
    yield operation.last_ns
    if operation.f in (F.ACQUIRE, F.RENEW):
        yield operation.start_ns + (operation.invoke.ttl_ms or terms.ttl_ms or 0) * NS_PER_MS
