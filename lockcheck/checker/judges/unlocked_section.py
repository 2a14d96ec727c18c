"""The critical section ran although the lock was never granted."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.evidence.order import Spans
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason, Verdict
from lockcheck.checker.wording import Words, one_to_blame
from lockcheck.history import Ending, F, Hold, Operation, Terms
from lockcheck.history.ordering import order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import NEVER, Ints, Op, Outcome, Table, among
from lockcheck.words import lock_name

NEVER_ASKED = "It never asked for it."
HELD_BY_ANOTHER = "{hold.node} certainly held it at that moment."

CHANGING = frozenset({F.WRITE, F.CAS, F.ADD, F.RUN})  # a reader may well do without the lock


@dataclass(slots=True)
class _Key:
    """What the operations so far show of one lock, and of what it protects."""

    granted_nodes: set[str] = field(default_factory=set)
    granted_ns: list[int] = field(default_factory=list)  # when clients were, in order
    locked: bool = False  # a client changed something while it held the lock
    unlocked: list[tuple[Operation | None, Operation]] = field(default_factory=list)

    def grant(self, acquire: Operation) -> None:
        self.granted_nodes.add(acquire.node)
        insort(self.granted_ns, acquire.last_ns)

    def gone_by(self, time_ns: int, since_ns: int) -> bool:
        """What a client asked for before the log began, and may have been granted up to its first
        row, it held no longer: another client was granted the lock since."""
        last = bisect_left(self.granted_ns, time_ns)
        return last > 0 and self.granted_ns[last - 1] > since_ns

    @property
    def accused(self) -> list[tuple[Operation | None, Operation]]:
        """A client that never asked is accused only where others work under the lock."""
        return [pair for pair in self.unlocked if pair[0] is not None or self.locked]


def find(case: Case) -> Iterator[Finding]:
    accused = {name: key.accused for name, key in _read(case).items() if key.accused}
    for name, sections in accused.items():
        holds = case.holds_by_key.get(name, [])
        spans = Spans((hold.start_ns, hold.end_ns, hold) for hold in holds)
        for refused, change in sections:
            yield _finding(case.terms, refused, change, spans)


def _read(case: Case) -> dict[str, _Key]:
    keys: dict[str, _Key] = {}
    asked: dict[tuple[int | str, str], Operation] = {}  # what each process asked for last
    first_ns: dict[int | str, int] = {}  # the first row of each process
    for operation in case.operations:  # in the order of their invocations
        name, who = operation.key, (operation.owner, operation.key)
        began_ns = first_ns.setdefault(operation.owner, operation.start_ns)
        if operation.f == F.ACQUIRE:
            key = keys.setdefault(name, _Key())
            asked[who] = operation
            if operation.ok:
                key.grant(operation)
        elif operation.f in CHANGING and operation.ok and name in keys:
            hold, acquire = case.index.of(operation), asked.get(who)
            since_ns = began_ns if case.terms.partial else None
            _look_at(keys[name], operation, hold, acquire, since_ns)
    return keys


def _look_at(
    key: _Key, change: Operation, hold: Hold | None, asked: Operation | None, since_ns: int | None
) -> None:
    """`since_ns`: in a log that may begin at any time, the first row of the client."""
    if hold is not None and change.start_ns <= hold.end_ns:
        key.locked = True
    elif asked is not None:
        # Granted, it is late at worst, which other checks judge. And what was never answered may
        # have been granted: the client may have found that out in its own way.
        # So may one that asked again for what it had never released.
        if asked.failed and (hold is None or hold.ending is not Ending.LAST_SEEN):
            key.unlocked.append((asked, change))
    elif change.node not in key.granted_nodes and (
        since_ns is None or key.gone_by(change.start_ns, since_ns)
    ):
        # A client whose process was retired goes on as another process of the same node.
        key.unlocked.append((None, change))


def _finding(
    terms: Terms, refused: Operation | None, change: Operation, holds: Spans[Hold]
) -> Finding:
    blame = Blame(Culprit.CLIENT)
    asked = () if refused is None else (refused,)
    never = () if asked else (Reason(NEVER_ASKED),)
    at_once = holds.touching(change.start_ns, change.start_ns)
    held = (Reason(HELD_BY_ANOTHER, hold) for hold in at_once if hold.process != change.owner)
    return Finding(
        code=Code.UNLOCKED_SECTION,
        key=change.key,
        time_ns=change.start_ns,
        effect=_effect(terms, change, blame),
        holds=(),
        operations=(*asked, change),
        length_ns=0,
        blame=blame,
        reasons=(*never, *islice(held, 1)),
    )


def _effect(terms: Terms, change: Operation, blame: Blame) -> Verdict:
    """The guard `fence` must refuse a write without a token."""
    if terms.guard == "fence" and change.f == F.WRITE and change.invoke.token is None:
        return Verdict.VIOLATION
    return CHECK.effect(terms, blame)


def _has_sections(scan: Scan) -> bool:
    """What ran, or was changed on keys that are locks too, by a client whose last request was
    refused, or that never asked. That may have been before the log began, unless another client
    was granted the lock since."""
    table, done = scan.table, scan.table.outcome == Outcome.OK
    changes = among(table.f, (Op.WRITE, Op.CAS, Op.ADD, Op.RUN)) & done
    changes &= np.isin(table.key, np.unique(table.key[table.f == Op.ACQUIRE]))
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


def _granted_before(table: Table, rows: Ints) -> NDArray[np.bool_]:
    """A client was granted the same lock by then."""
    granted = np.flatnonzero((table.f == Op.ACQUIRE) & (table.outcome == Outcome.OK))
    first = np.full(int(table.key.max(initial=0)) + 2, NEVER)
    np.minimum.at(first, table.key[granted] + 1, table.end[granted])
    before: NDArray[np.bool_] = first[table.key[rows] + 1] < table.start[rows]
    return before


def _title(finding: Finding) -> str:
    who, key = one_to_blame(finding), lock_name(finding.key)
    return f"{who} went into the critical section of {key} without having been granted it"


WORDS = Words(
    one="unlocked section",
    many="unlocked sections",
    kept="no work without the lock",
    precedence=9,
    title=_title,
    last=lambda f: (one_to_blame(f), "worked on without having been granted the lock"),
    did=lambda f: f"it went on although {lock_name(f.key)} had not been granted to it",
    cure=(
        "Fix the client: enter the critical section only after the answer that grants the "
        "lock. An error, a time-out or no answer at all is not a grant."
    ),
)
CHECK = Check(
    code=Code.UNLOCKED_SECTION,
    meaning="the critical section ran although the lock was never granted",
    explanation="""\
A client asked for the lock, was refused, and did its work all the same: it did not look at what
`acquire` returned, or went on after a timeout as if that were a grant. Or it never asked at all,
while others change the same thing under the lock.

It is reported for what changes something (write, cas, add, run) and was accepted, on a key that is
also a lock, by a process whose last `acquire` of that key was certainly refused and whose last hold
of it is over; or by a process, and a node, that never asked for it before, if others do their work
under it. It is not reported for what came before the first `acquire` of any client (that sets
things up), for reads, or after an `acquire` whose outcome is unknown. Work that goes on after one's
own hold is over is a late write: see stale-write.

Behind a guard it is shown and does not fail the run, except where the guard `fence` accepted a
write without a token.""",
    find=find,
    words=WORDS,
    screen=Screen("it tells of what was done without the lock", _has_sections),
)
