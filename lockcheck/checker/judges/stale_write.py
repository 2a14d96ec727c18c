"""The storage accepted a write of an earlier holder after one of a later holder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import Screen
from lockcheck.checker.evidence.order import certainly_earlier
from lockcheck.checker.evidence.reads import numbered_reads
from lockcheck.checker.evidence.writes import StoredWrite
from lockcheck.checker.finding import Code, Culprit, Finding, Verdict
from lockcheck.checker.wording import Words
from lockcheck.history import Ending, F, Hold, Operation, Terms
from lockcheck.history.event import TRANSACTION
from lockcheck.history.table import Op


@dataclass(frozen=True, slots=True)
class _Taken:
    """An accepted write of which both the operation and the hold are known."""

    operation: Operation
    hold: Hold


def find(case: Case) -> Iterator[Finding]:
    if case.terms.permits > 1:
        return  # several may write at once, in any order
    reads = numbered_reads(case.history) if _fences_writes_only(case.terms) else {}
    for writes in case.ledger.accepted():
        found = [*_stale(writes)]
        yield from (_finding(case, *pair) for pair in found)
        late = {id(stale.operation) for _, stale in found}
        for newer, stale in _after_reads(case, writes, reads.get(writes[0].key, [])):
            if id(stale.operation) not in late:
                yield replace(_finding(case, newer, stale), effect=Verdict.OK)


class Newest:
    """Among the holds seen so far, those that make the most others stale: the one that was asked
    for last, and the one with the highest token. So each write is compared with two, not all.

    A shared hold makes no write of another shared hold stale, so the same is kept without those.
    """

    def __init__(self) -> None:
        self._latest: list[_Latest] = [_Latest(), _Latest()]  # of all; of those that do not share

    def superseding(self, hold: Hold) -> _Taken | None:
        """A write of a holder that certainly came after `hold`."""
        latest = self._latest[hold.shared]
        for candidate in (latest.asked_last, latest.highest):
            if candidate is not None and certainly_earlier(hold, candidate.hold):
                return candidate
        return None

    def add(self, taken: _Taken) -> None:
        for latest in self._latest[: 1 if taken.hold.shared else 2]:
            latest.add(taken)


@dataclass(slots=True)
class _Latest:
    asked_last: _Taken | None = None
    highest: _Taken | None = None

    def add(self, taken: _Taken) -> None:
        last, highest = self.asked_last, self.highest
        if last is None or taken.hold.acquire.start_ns >= last.hold.acquire.start_ns:
            self.asked_last = taken
        token = taken.hold.token
        if token is not None and (highest is None or token >= (highest.hold.token or 0)):
            self.highest = taken


def supersedable(write: StoredWrite) -> _Taken | None:
    if write.operation is None or write.hold is None:
        return None
    return _Taken(write.operation, write.hold)


def _stale(writes: list[StoredWrite]) -> Iterator[tuple[_Taken, _Taken]]:
    newest = Newest()
    for write in writes:
        taken = supersedable(write)
        if taken is not None:
            newer = newest.superseding(taken.hold)
            if newer is not None:
                yield newer, taken
            newest.add(taken)


def _fences_writes_only(terms: Terms) -> bool:
    """As a fence is published, it may; that of a run looks at reads, too."""
    return terms.guard == "fence" and not terms.backend


def _after_reads(
    case: Case, writes: list[StoredWrite], reads: list[tuple[int, Operation]]
) -> Iterator[tuple[_Taken, _Taken]]:
    """Writes that were accepted after a read by a later holder, by the storage's numbers."""
    served: list[tuple[int, bool, _Taken]] = [
        (number, False, _Taken(read, hold))
        for number, read in reads
        if (hold := case.index.of(read)) is not None
    ]
    if served:
        written = ((write.seq, supersedable(write)) for write in writes)
        served += [(number, True, each) for number, each in written if each is not None]
    newest = Newest()
    for _, is_write, taken in sorted(served, key=itemgetter(0)):
        newer = newest.superseding(taken.hold) if is_write else None
        if newer is not None:
            yield newer, taken
        elif not is_write:
            newest.add(taken)


def _finding(case: Case, newer: _Taken, stale: _Taken) -> Finding:
    earlier, later, write = stale.hold, newer.hold, stale.operation
    blame = case.attribution.blame(earlier, later, write)
    promised_ns = blame.promised_until_ns
    return Finding(
        code=Code.STALE_WRITE,
        key=earlier.key,
        time_ns=write.start_ns if write.end_ns is None else write.end_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=(earlier, later),
        operations=(newer.operation, write),
        length_ns=0 if promised_ns is None else max(0, write.start_ns - promised_ns),
        blame=blame,
    )


def _note(finding: Finding) -> Iterator[str]:
    earlier, write, blame = finding.holds[0], finding.operations[-1], finding.blame
    promised_ns = blame.promised_until_ns
    if blame.who in (Culprit.HOLDER, Culprit.MACHINE) and (
        promised_ns is None or write.start_ns <= promised_ns
    ):
        yield "It was begun within the lease and was in flight when the lease ran out."
    if finding.operations[0].f == F.READ:
        yield "A later holder had read before, so a fence that looks at reads would refuse it."
    if write.unknown:
        yield "Its client never learned that it was accepted."
    if write.start_ns > earlier.end_ns and earlier.ending is not Ending.LAST_SEEN:
        yield f"The client wrote although its hold had ended ({earlier.ending})."


CHECK = Check(
    code=Code.STALE_WRITE,
    meaning="the storage accepted a write of an earlier holder after one of a later holder",
    explanation="""\
The lock changed hands, the new holder wrote, and then a write of the former holder arrived and the
storage took it. This is what a lock is meant to prevent, and what no lock with a lease can prevent
alone: the former holder may be paused between its last look at the clock and its write.

The order of the writes is the storage's own (`seq`). That one holder came before another is taken
for certain only if the later one asked for the lock after the earlier one had been granted it, or
if their requests were concurrent and the fencing tokens tell.

The cure is a guard at the storage: it refuses a token below the highest it has seen
(`--guard fence`), or a write whose base is not the current version (`--guard cas`). With the guard
`fence` any stale write that is accepted is a violation, whatever the lock did. Where a later holder
had only read by then, it is shown and does no harm by itself: a fence that looks at writes alone
accepts it, and what that holder writes next may overwrite it.""",
    find=find,
    words=Words(
        one="late write",
        many="late writes",
        kept="no late write accepted",
        by_holds=True,
        note=_note,
    ),
    screen=Screen(
        "a fence may look at writes only",
        lambda scan: _fences_writes_only(scan.terms) and Op.READ in scan.table.f,
        of_writes=True,
    ),
    kept_out_by=frozenset({"fence", TRANSACTION}),
    damages_data=True,
    endangers_data=True,
    by_storage=True,
)
