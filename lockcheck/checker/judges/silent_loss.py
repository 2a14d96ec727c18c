"""The lock was gone, and the client did not learn of it for longer than its lease."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.evidence.rivals import Rivals
from lockcheck.checker.evidence.stalls import total_ns
from lockcheck.checker.finding import Code, Finding
from lockcheck.checker.judges import overlap
from lockcheck.checker.wording import Words, one_to_blame
from lockcheck.history import Ending, Hold, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.words import lock_name, span


def find(case: Case) -> Iterator[Finding]:
    if case.terms.permits > 1:
        return
    lost = list(_lost(case))
    if lost:
        running = _RunningTime(case)
        for hold, other, lease_ns in lost:
            again = case.reentries.between(hold, other.start_ns, hold.end_ns)
            if not again and running.ran_ns(hold, other) > lease_ns:
                yield _finding(case, hold, other, lease_ns)


def _lost(case: Case) -> Iterator[tuple[Hold, Hold, int]]:
    """Holds that went on for a lease after another client had been granted the lock."""
    for holds in case.holds_by_key.values():
        rivals = Rivals(case.history, holds)
        for hold in holds:
            lease_ns = _lease_ns(hold, case.terms)
            # Without a lease it is not known by when it should have learned of it.
            if lease_ns is not None and hold.end_ns - hold.start_ns > lease_ns:
                other = next(rivals.after(hold, hold.end_ns - lease_ns), None)
                if other is not None:
                    yield hold, other, lease_ns


def _lease_ns(hold: Hold, terms: Terms) -> int | None:
    """The longest that it asked for."""
    asked = (operation.invoke.ttl_ms for operation in (hold.acquire, *hold.renewals))
    longest_ms = max((ttl_ms or terms.ttl_ms or 0 for ttl_ms in asked), default=0)
    return longest_ms * NS_PER_MS or None


class _RunningTime:
    """How long a client certainly ran: a stopped client cannot learn of its loss."""

    def __init__(self, case: Case) -> None:
        # Our own clients record their stalls: without a record they ran. Other clients certainly
        # ran only when they sent something.
        self._notes_stalls = bool(case.terms.backend)
        self._outages = case.outages
        self._sent_ns: defaultdict[tuple[int | str, str], list[int]] = defaultdict(list)
        if not self._notes_stalls:
            for operation in case.operations:
                self._sent_ns[operation.process, operation.key].append(operation.start_ns)

    def ran_ns(self, hold: Hold, other: Hold) -> int:
        since_ns, until_ns = other.start_ns, hold.end_ns
        if not self._notes_stalls:
            sent_ns = self._sent_ns[hold.process, hold.key]
            position = bisect_right(sent_ns, since_ns)
            since_ns = min(sent_ns[position], until_ns) if position < len(sent_ns) else until_ns
        still = self._outages.during([hold.node], since_ns, until_ns)
        return until_ns - since_ns - total_ns(still)


def _finding(case: Case, hold: Hold, other: Hold, lease_ns: int) -> Finding:
    blame = case.attribution.blame(hold, other)
    return Finding(
        code=Code.SILENT_LOSS,
        key=hold.key,
        time_ns=other.start_ns + lease_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=(hold, other),
        operations=() if hold.release is None else (hold.release,),
        length_ns=hold.end_ns - other.start_ns,
        blame=blame,
    )


def _title(finding: Finding) -> str:
    long, key = span(finding.length_ns), lock_name(finding.key)
    return f"{one_to_blame(finding)} had lost {key} and was not told for {long}"


def _note(finding: Finding) -> Iterator[str]:
    if finding.holds[0].ending is Ending.LOST:
        yield "It was told so in the end."


WORDS = Words(
    one="silent loss",
    many="silent losses",
    kept="no lock lost unnoticed",
    precedence=6,
    title=_title,
    last=lambda f: (
        one_to_blame(f),
        "had lost the lock a whole lease ago, and nobody had told it",
    ),
    did=lambda f: f"it let {one_to_blame(f)} lose {lock_name(f.key)} and did not tell it",
    cure=(
        "The client must learn of it: renew or ask well before the lease ends, count the lease "
        "by its own monotonic clock from before it asked, and stop when it is over, whatever "
        "it is told or not told.{guard}"
    ),
    note=_note,
)
CHECK = Check(
    code=Code.SILENT_LOSS,
    meaning="the lock was gone, and the client did not learn of it for longer than its lease",
    explanation="""\
A client that loses its lock should learn of it: by a renewal that is refused, a session that
expires, or its own clock. If another client has been granted the lock, and a whole lease later the
first one still believes that it holds it, nothing made it notice, and it would have gone on for
ever.

It is reported where the other one certainly was granted the lock later (by time, or by the tokens
where clients wait in a queue), and the first client's own doings show that it still believed, and
ran, for more than its lease after that. The time in which a fault stopped or ended its node, and
that of the machine's stalls, is not counted: a client that does not run cannot notice. One that is
cut off runs, and can look at its own clock. In histories that do not note stalls, time counts only
from the next operation on that key that the client invoked. Locks without a lease are not judged by
this.

Every silent loss is an overlap, too; this says that it would not have ended by itself. The cure is
to renew in the background and to stop where that fails, or to watch the validity.""",
    find=find,
    words=WORDS,
    screen=overlap.SCREEN,  # what was held after a loss overlapped
    endangers_data=True,
)
