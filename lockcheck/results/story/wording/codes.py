"""What is said of each kind of finding: one entry for each, and what its sentences are made of.

What is told by who held the lock when (`by_holds`) has its title and its last steps from the holds.
The others are told by the operations in their evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lockcheck.checker.finding import Code, Finding
from lockcheck.history import F
from lockcheck.results.story.wording import notes
from lockcheck.words import (
    LOCKING,
    listed,
    lock_name,
    names,
    node_of,
    plain,
    span,
)

NAMED_AT_MOST = 4
Last = tuple[str, str]  # the last step: whom it befell, and what


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    one: str
    many: str
    did: str = ""  # what the one to blame did, as half a sentence
    cure: str = ""  # what would prevent it; {guard}: how the data can be protected besides
    title: Callable[[Finding], str] = lambda _: ""
    last: Callable[[Finding], Last] = lambda _: ("", "")
    note: Callable[[Finding], Iterable[str]] = lambda _: ()  # beside the judge's reasons
    in_full: Callable[[Finding], Iterable[str]] = lambda _: ()  # where it takes more than a note


def anomalies(code: Code, number: int) -> str:
    """How many there were of a kind: 1 deadlock, 3 silent losses."""
    return f"{number:,} {CODES[code].one if number == 1 else CODES[code].many}"


def the_anomalies(code: Code, number: int) -> str:
    return f"the {CODES[code].one if number == 1 else CODES[code].many}"


def deed(finding: Finding) -> str:
    return CODES[finding.code].did.format(
        who=guilty(finding), other=_other(finding), key=lock_name(finding.key), job=_job(finding)
    )


def note(finding: Finding) -> str:
    """What the numbers do not say."""
    ruled = (notes.ruled(finding, reason) for reason in finding.reasons)
    return " ".join((*ruled, *CODES[finding.code].note(finding)))


def in_full(finding: Finding) -> tuple[str, ...]:
    return tuple(CODES[finding.code].in_full(finding))


def about_a_lock(finding: Finding) -> bool:
    """A register is no lock: then nothing may be said of one."""
    if finding.code is not Code.NOT_LINEARIZABLE or finding.holds:
        return True
    return any(operation.f in LOCKING for operation in finding.operations)


def guilty(finding: Finding) -> str:
    """Whom it is about: the first holder, or else the first whose operation is in evidence."""
    nodes = [hold.node for hold in finding.holds[:1]] or [o.node for o in finding.operations[:1]]
    return plain(nodes[0]) if nodes else "a client"


def everybody(finding: Finding) -> str:
    nodes = [hold.node for hold in finding.holds] + [o.node for o in finding.operations]
    return names(nodes, NAMED_AT_MOST)


def _other(finding: Finding) -> str:
    return node_of(finding.holds, 1, "somebody else")


def _job(finding: Finding) -> str:
    values = (o.invoke.value for o in finding.operations if o.f == F.RUN)
    return f"the job {next((plain(value) for value in values if value is not None), 'it')}"


# --- titles, and the moment it became certain ----------------------------------------------------


def _token_title(finding: Finding) -> str:
    (before, older), (token, node) = _tokens(finding)
    after = f"the same as {older} before it" if token == before else ""
    after = after or f"although {older} had been given {before} before"
    return f"{node} was given the token {token} of {lock_name(finding.key)}, {after}"


def _token_last(finding: Finding) -> Last:
    (before, older), (token, node) = _tokens(finding)
    return node, f"its token {token} is not greater than {before}, which {older} had been given"


def _tokens(finding: Finding) -> tuple[tuple[int | None, str], tuple[int | None, str]]:
    """The greater token and whose it was, then the later one that was not greater."""
    first, last = finding.holds[0], finding.holds[-1]
    return (first.token, plain(first.node)), (last.token, plain(last.node))


def _silent_loss_title(finding: Finding) -> str:
    long, key = span(finding.length_ns), lock_name(finding.key)
    return f"{guilty(finding)} had lost {key} and was not told for {long}"


def _double_run_title(finding: Finding) -> str:
    runs = [f"on {plain(o.node)}" for o in finding.operations if o.f == F.RUN]
    return f"T{_job(finding)[1:]} ran twice: {listed(runs)}"


def _double_run_last(finding: Finding) -> Last:
    return plain(finding.operations[-1].node), f"{_job(finding)} ran once more"


def _stuck_title(finding: Finding) -> str:
    tried = names(sorted({o.node for o in finding.operations}), NAMED_AT_MOST)
    key = lock_name(finding.key)
    named = f"{key[:1].upper()}{key[1:]}" if not finding.key else key
    return f"{named} could not be acquired any more by {tried}"


def _deadlock_title(finding: Finding) -> str:
    nodes = dict.fromkeys(o.node for o in finding.operations)
    circle = "" if len(nodes) == 2 else " in a circle"
    return f"{names(nodes, NAMED_AT_MOST)} wait for each other{circle}: nobody can go on"


def _passed(finding: Finding) -> tuple[str, str]:
    """By when they asked: the earlier request is the one that was passed."""
    asked = sorted(finding.operations, key=lambda o: o.start_ns)
    return plain(asked[0].node), plain(asked[-1].node)


def _unfair_title(finding: Finding) -> str:
    waiting, passing = _passed(finding)
    return f"{passing} was granted {lock_name(finding.key)} before {waiting}, which asked earlier"


def _unfair_last(finding: Finding) -> Last:
    waiting, passing = _passed(finding)
    return waiting, f"had asked earlier and was passed by {passing}"


def _no_order_title(finding: Finding) -> str:
    on = f" on {plain(finding.key)}" if finding.key else ""
    return f"No order of the operations{on} explains the answers"


CODES = {
    Code.OVERLAP: Words(one="overlap", many="overlaps", note=notes.overlap),
    Code.STALE_WRITE: Words(one="stale write", many="stale writes", note=notes.stale_write),
    Code.LOST_UPDATE: Words(one="lost write", many="lost writes"),
    Code.FOREIGN_RELEASE: Words(one="blind release", many="blind releases"),
    Code.DOUBLE_RUN: Words(
        one="double run",
        many="double runs",
        did="it ran {job} although that had run already",
        cure=(
            "Let the job itself see to it: write down, under the job's name and in the same "
            "transaction as its effect, that it has run, and refuse a second time. A lock with a "
            "lease cannot prevent this alone."
        ),
        title=_double_run_title,
        last=_double_run_last,
    ),
    Code.UNLOCKED_SECTION: Words(
        one="unlocked section",
        many="unlocked sections",
        did="it went on although {key} had not been granted to it",
        cure=(
            "Mend the client: enter the critical section only after the answer that grants the "
            "lock. An error, a time-out or no answer at all is not a grant."
        ),
        title=lambda f: (
            f"{guilty(f)} went into the critical section of {lock_name(f.key)} without having been "
            "granted it"
        ),
        last=lambda f: (guilty(f), "worked on without having been granted the lock"),
    ),
    Code.TOKEN_REGRESSION: Words(
        one="token regression",
        many="token regressions",
        did="it gave out a fencing token that was not greater than one given out before",
        cure=(
            "Take tokens from a counter that never goes back: on a majority before it is answered, "
            "kept over restarts and failovers (a revision of etcd, a zxid of ZooKeeper, a sequence "
            "of a database), and one counter for all who can be granted the lock."
        ),
        title=_token_title,
        last=_token_last,
        note=notes.token_regression,
    ),
    Code.REVIVED: Words(
        one="revived lease",
        many="revived leases",
        did="it renewed the lease of {who} although {other} had held {key} meanwhile",
        cure=(
            "Renew only what is still one's own: compare the owner and extend in one atomic step, "
            "and refuse a renewal of a lease that has ended, so that the client learns that it "
            "lost the lock.{guard}"
        ),
        title=lambda f: (
            f"{guilty(f)} renewed its lease on {lock_name(f.key)} after {_other(f)} had held it"
        ),
        last=lambda f: (guilty(f), f"its renewal was granted, and {_other(f)} had held the lock"),
        note=notes.revived,
    ),
    Code.SILENT_LOSS: Words(
        one="silent loss",
        many="silent losses",
        did="it let {who} lose {key} and did not tell it",
        cure=(
            "The client must learn of it: renew or ask well before the lease ends, count the lease "
            "by its own monotonic clock from before it asked, and stop when it is over, whatever "
            "it is told or not told.{guard}"
        ),
        title=_silent_loss_title,
        last=lambda f: (guilty(f), "had lost the lock a whole lease ago, and nobody had told it"),
        note=notes.silent_loss,
    ),
    Code.DEADLOCK: Words(
        one="deadlock",
        many="deadlocks",
        did="each of them holds one lock and waits for another",
        cure=(
            "Take locks in one order, the same everywhere (by their names, say); or ask for a "
            "further one only with a time limit, and give back what is held when it strikes."
        ),
        title=_deadlock_title,
        last=lambda _: ("clients", "from here on each waits for the next one in the circle"),
        note=notes.deadlock,
        in_full=notes.deadlock_in_full,
    ),
    Code.STUCK: Words(
        one="stuck lock",
        many="stuck locks",
        did="nobody had a right to {key} any more, and still it granted it to nobody",
        cure=(
            "What a client leaves behind must end without it: a lease or a session for the lock, "
            "for its place in the queue, and for whatever the servers remember of both. Look at "
            "what is still stored for this lock."
        ),
        title=_stuck_title,
        last=lambda f: ("lock server", f"granted {lock_name(f.key)} to nobody from here on"),
    ),
    Code.UNFAIR: Words(
        one="unfair grant",
        many="unfair grants",
        did="it promises first come, first served, and granted {key} to a later request",
        cure=(
            "Let the lock server keep the queue and order it by one counter (sequence numbers, "
            "revisions), and let each client wait for the one before it; or do not promise first "
            "come, first served."
        ),
        title=_unfair_title,
        last=_unfair_last,
    ),
    Code.NOT_LINEARIZABLE: Words(
        one="answer that fits no order",
        many="answers that fit no order",
        did=(
            "its answers fit no order in which each operation takes effect at one moment between "
            "its invocation and its answer"
        ),
        cure=(
            "Every grant and every release must be decided in one order that a majority agrees on "
            "before it is answered; a server that was cut off, restarted or promoted must not "
            "answer from memory."
        ),
        title=_no_order_title,
        last=lambda _: ("lockcheck", "no order of the operations explains this"),
        note=notes.no_order,
        in_full=notes.no_order_in_full,
    ),
}
# Told by who held the lock when. Where others are part of one incident, these tell its cause.
BY_HOLDS = frozenset({Code.OVERLAP, Code.STALE_WRITE, Code.LOST_UPDATE, Code.FOREIGN_RELEASE})
# Of the others the one that says most about the cause comes first.
BY_EVIDENCE = tuple(code for code in CODES if code not in BY_HOLDS)
CURE_OF_AN_OBJECT = (
    "Every read and every write must go through one order that a majority agrees on before it is "
    "answered: no reads from replicas or caches that may lag, no write that is acknowledged before "
    "it is on a majority, no update without comparing what it was based on."
)
