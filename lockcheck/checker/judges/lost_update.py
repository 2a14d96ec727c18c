"""An acknowledged update is not in the final state, or two were based on the same version."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.case import Case
from lockcheck.checker.check import GUARDS, Check
from lockcheck.checker.columns.screen import WRITES
from lockcheck.checker.evidence.rivals import exclude
from lockcheck.checker.evidence.versions import Versions
from lockcheck.checker.evidence.writes import StoredWrite
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason
from lockcheck.checker.wording import NOT_EXCLUSIVE, Words
from lockcheck.history import Hold, Operation

UNCONFIRMED = "Its client never learned that it was accepted; another was based on the same value."
WRITTEN_WITHOUT_LOCK = "It was written without the lock."
OVERWROTE_ITS_OWN = "One holder overwrote its own update."

Judged = tuple[tuple[Hold, ...], Blame, int]


def find(case: Case) -> Iterator[Finding]:
    for versions in case.versions:
        yield from (_finding(case, *pair) for pair in _lost(versions))


def _lost(versions: Versions) -> Iterator[tuple[StoredWrite, StoredWrite]]:
    """What the final state was not computed from, if its client counts on it, or if another
    update was computed from the same version."""
    for i, write in enumerate(versions.writes):
        counted_on = write.acknowledged or i in versions.rivals
        if i not in versions.final_ancestors and counted_on:
            yield write, versions.writes[versions.overwriters[i]]


def _finding(case: Case, lost: StoredWrite, overwriting: StoredWrite) -> Finding:
    read = case.knowledge.read_of_base(overwriting)
    outdated = id(read) in case.stale_reads
    holds, blame, late_ns = _blame(case, lost, overwriting, outdated=outdated)
    first = [operation for operation in (lost.operation, read) if operation is not None]
    sent = [*sorted(first, key=lambda operation: operation.start_ns), overwriting.operation]
    return Finding(
        code=Code.LOST_UPDATE,
        key=lost.key,
        time_ns=_known_ns(overwriting, lost),
        effect=CHECK.effect(case.terms, blame),
        holds=holds,
        operations=tuple(operation for operation in sent if operation is not None),
        length_ns=late_ns,
        blame=blame,
        reasons=tuple(map(Reason, _reasons(case, lost, overwriting, holds))),
    )


def _blame(case: Case, lost: StoredWrite, overwriting: StoredWrite, *, outdated: bool) -> Judged:
    """The holds, earlier first; who is to blame; how late the earlier holder's write was sent.
    `outdated`: the storage served an older value to the client that overwrote it."""
    attribution = case.attribution
    holds = [write.hold for write in (lost, overwriting) if write.hold is not None]
    if outdated or len(holds) < 2 or holds[0].process == holds[1].process:
        same = len(holds) == 2 and holds[0] is holds[1]
        blame = Blame(Culprit.STORAGE if outdated else Culprit.CLIENT)
        return tuple(holds[:1] if same else holds), blame, 0
    earlier, later = attribution.in_order(*holds)
    write = (lost if lost.hold is earlier else overwriting).operation
    promised_ns = attribution.promised_until_ns(earlier, later)
    if write is None or _was_there_to_see(write, later) or not exclude(case.terms, earlier, later):
        return (earlier, later), Blame(Culprit.CLIENT, 0, promised_ns), 0
    late_ns = 0 if promised_ns is None else max(0, write.start_ns - promised_ns)
    return (earlier, later), attribution.blame(earlier, later, write), late_ns


def _was_there_to_see(write: Operation, later: Hold) -> bool:
    """It was accepted before the later holder was let in, which only had to read it then."""
    return write.end_ns is not None and write.end_ns < later.start_ns


def _known_ns(*writes: StoredWrite) -> int:
    """When the first of these that a client sent was answered, or else sent."""
    for operation in (write.operation for write in writes):
        if operation is not None:
            return operation.start_ns if operation.end_ns is None else operation.end_ns
    return 0


def _reasons(
    case: Case, lost: StoredWrite, overwriting: StoredWrite, holds: tuple[Hold, ...]
) -> Iterator[str]:
    if not lost.acknowledged:
        yield UNCONFIRMED
    if lost.hold is None or overwriting.hold is None:
        yield WRITTEN_WITHOUT_LOCK
    elif len(holds) == 1:
        yield OVERWROTE_ITS_OWN
    elif not exclude(case.terms, *holds):
        yield NOT_EXCLUSIVE


CHECK = Check(
    code=Code.LOST_UPDATE,
    meaning="an acknowledged update is not in the final state, or two had the same base",
    explanation="""\
Clients read a register under the lock, compute a new value from it, and write it back. Each write
names the value that it was computed from (its base). If all goes well, the accepted writes are a
chain: each is based on the one before. A write that is based on an older value has overwritten
those in between, and what their clients count on as stored is gone.

Every accepted write that the final value does not descend from is reported, if it was confirmed to
its client, or if another accepted write has the same base. The evidence names the lost write, the
first write after it that was not computed from it, and the read which that was based on.

With a guard at the storage this is a violation whatever the lock did. `--guard cas` excludes it;
`--guard fence` does where reads show their token too.""",
    find=find,
    words=Words(one="lost write", many="lost writes", kept="no write lost", by_holds=True),
    screen=WRITES,
    kept_out_by=GUARDS,
    damages_data=True,
    endangers_data=True,
    by_storage=True,
)
