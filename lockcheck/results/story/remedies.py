"""Whose fault the findings are that are told by their evidence, and what would prevent them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from lockcheck.checker.finding import Code, Culprit, Finding
from lockcheck.results.story.anomalies import (
    about_a_lock,
    everybody,
    guilty,
    job,
    the_anomalies,
)
from lockcheck.results.story.incidents import TOLD_BY_EVIDENCE, Incident
from lockcheck.results.story.words import listed, lock_name, node_of, plain, span

# Whose fault something is, where that is all there is to say.
WHOSE = {
    Culprit.SERVICE: "the service's",
    Culprit.HOLDER: "the holder's",
    Culprit.CLIENT: "a client's",
    Culprit.MACHINE: "the machine's",
}

# What each did who is to blame. Of a client and of a holder it is said by name.
_SERVICE_DID = {
    Code.TOKEN_REGRESSION: (
        "it gave out a fencing token that was not greater than one that it had given out before"
    ),
    Code.UNLOCKED_SECTION: "it let {who} go on without a grant",
    Code.SILENT_LOSS: "it let {who} lose {key} and did not tell it",
    Code.REVIVED: "it renewed the lease of {who} although {other} had held {key} meanwhile",
    Code.DOUBLE_RUN: "it was to let {job} run once, and let it run again",
    Code.STUCK: "nobody had a right to {key} any more, and still it granted it to nobody",
    Code.DEADLOCK: "it lets clients wait for each other in a circle for ever",
    Code.UNFAIR: "it promises first come, first served, and granted {key} to a later request",
    Code.NOT_LINEARIZABLE: (
        "its answers fit no order in which each operation takes effect at one moment between "
        "its invocation and its answer"
    ),
}
_CLIENT_DID = {
    Code.TOKEN_REGRESSION: "it used a token that was not its own",
    Code.UNLOCKED_SECTION: "it went on although {key} had not been granted to it",
    Code.SILENT_LOSS: "it did not look whether its lock was still its own",
    Code.REVIVED: "it renewed what it had lost",
    Code.DOUBLE_RUN: "it ran {job} although that had run already",
    Code.STUCK: "it never gave {key} back, and no lease ends that for it",
    Code.DEADLOCK: "each of them holds one lock and waits for another",
    Code.UNFAIR: "it passed somebody who had asked earlier",
    Code.NOT_LINEARIZABLE: "what it was told and what it did fit no order of the operations",
}

_CURES = {
    Code.TOKEN_REGRESSION: (
        "Take tokens from a counter that never goes back: on a majority before it is answered, "
        "kept over restarts and failovers (a revision of etcd, a zxid of ZooKeeper, a sequence of "
        "a database), and one counter for all who can be granted the lock."
    ),
    Code.UNLOCKED_SECTION: (
        "Mend the client: enter the critical section only after the answer that grants the lock. "
        "An error, a time-out or no answer at all is not a grant."
    ),
    Code.SILENT_LOSS: (
        "The client must learn of it: renew or ask well before the lease ends, count the lease by "
        "its own monotonic clock from before it asked, and stop when it is over, whatever the "
        "service says or does not say. {guard}"
    ),
    Code.REVIVED: (
        "Renew only what is still one's own: compare the owner and extend in one atomic step, and "
        "refuse a renewal of a lease that has ended, so that the client learns that it lost the "
        "lock. {guard}"
    ),
    Code.DOUBLE_RUN: (
        "Let the job itself see to it: write down, under the job's name and in the same "
        "transaction as its effect, that it has run, and refuse a second time. A lock with a lease "
        "cannot prevent this alone."
    ),
    Code.STUCK: (
        "What a client leaves behind must end without it: a lease or a session for the lock, for "
        "its place in the queue, and for whatever the servers remember of both. Look at what is "
        "still stored for this lock."
    ),
    Code.DEADLOCK: (
        "Take locks in one order, the same everywhere (by their names, say); or ask for a further "
        "one only with a time limit, and give back what is held when it strikes."
    ),
    Code.UNFAIR: (
        "Let the service keep the queue and order it by one counter (sequence numbers, revisions), "
        "and let each client wait for the one before it; or do not promise first come, first "
        "served."
    ),
    Code.NOT_LINEARIZABLE: (
        "Every grant and every release must be decided in one order that a majority agrees on "
        "before it is answered; a server that was cut off, restarted or promoted must not answer "
        "from memory."
    ),
}
_CURE_OF_AN_OBJECT = (
    "Every read and every write must go through one order that a majority agrees on before it is "
    "answered: no reads from replicas or caches that may lag, no write that is acknowledged before "
    "it is on a majority, no update without comparing what it was based on."
)


def deed(finding: Finding) -> str:
    """What the one to blame did, as half a sentence."""
    did = _CLIENT_DID if finding.blame.who is Culprit.CLIENT else _SERVICE_DID
    return did[finding.code].format(
        who=guilty(finding),
        other=node_of(finding.holds, 1, "somebody else"),
        key=lock_name(finding.key),
        job=job(finding),
    )


def culprit(finding: Finding) -> str:
    """A sentence for those that can be blamed; the machine is told elsewhere."""
    if finding.blame.who is Culprit.HOLDER:
        by = f" for {span(finding.blame.by_ns)}" if finding.blame.by_ns else ""
        return f"The holder, {guilty(finding)}: it went on{by} after its lease had run out."
    if finding.blame.who is Culprit.CLIENT:
        return f"{_clients(finding)}: {deed(finding)}. The lock service is not to blame."
    return f"{service(finding)}: {deed(finding)}."


def service(finding: Finding) -> str:
    return "The lock service" if about_a_lock(finding) else "The service that answered"


def _clients(finding: Finding) -> str:
    if finding.code is Code.DEADLOCK:
        return f"The clients {everybody(finding)}".rstrip()
    if finding.code is Code.DOUBLE_RUN and finding.operations:
        return f"The client {plain(finding.operations[-1].node)}"  # whoever ran it again
    return f"The client {guilty(finding, 'itself')}"


def fault(finding: Finding, because: str) -> str:
    """The same in short; `because`: the injected fault, in brackets."""
    if finding.blame.who is Culprit.CLIENT:
        whose = "The clients' fault" if finding.code is Code.DEADLOCK else "The client's fault"
        return f"{whose}: {deed(finding)}"
    return f"The service's fault: {deed(finding)}{because}"


def besides(incidents: Iterable[Incident]) -> tuple[Finding, ...]:
    """What was found with the main thing, and is somebody else's fault."""
    return tuple(
        finding
        for incident in incidents
        for finding in incident.findings
        if finding.code in TOLD_BY_EVIDENCE
        and finding.code is not incident.main.code
        and finding.blame.who is not incident.main.blame.who
        and finding.blame.release is None
    )


def whose_besides(incidents: Iterable[Incident]) -> str:
    """As a part of a sentence: `the token regression is the service's`."""
    found: dict[Culprit, Counter[Code]] = {}
    for finding in besides(incidents):
        found.setdefault(finding.blame.who, Counter())[finding.code] += 1
    parts = []
    for who, codes in found.items():
        what = listed(the_anomalies(code, number) for code, number in codes.items())
        are = "is" if codes.total() == 1 else "are"
        parts.append(f"{what} {are} {WHOSE[who]}")
    return listed(parts)


def matters_of_their_own(incident: Incident) -> Iterator[tuple[Finding, int]]:
    """One of each kind, and how many there are of it."""
    found = besides([incident])
    for code, number in Counter(finding.code for finding in found).items():
        yield next(f for f in found if f.code is code), number


def cure(finding: Finding, guard: str = "") -> str:
    """`guard`: what would guard the data, in the words that fit the run; empty: told already."""
    if not about_a_lock(finding):
        return _CURE_OF_AN_OBJECT
    text = _CURES[finding.code]
    protects = f" What protects the data is {guard}." if guard else ""
    return text.replace(" {guard}", protects)
