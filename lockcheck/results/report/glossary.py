"""What the page's words mean."""

from __future__ import annotations

from lockcheck.results.story.narrative import Narrative

Rows = tuple[tuple[str, str], ...]

_OF_LOCKS = {
    "Hold": (
        "What a client believes: from the answer that granted it the lock to its own release, "
        "or until it was told that it had lost it."
    ),
    "Lease": (
        "A lock for a limited time. Its promise is counted from the moment the client asked, "
        "not from the answer: the server may have begun to count then."
    ),
    "Overlap": (
        "Two clients held the same exclusive lock for certain at the same time: from the answer "
        "that granted it to the sending of the release, whatever the network did."
    ),
    "Stale write": (
        "A write of an earlier holder that the storage was sent after one of a later holder."
    ),
    "Lost write": ("An acknowledged write that somebody overwrote without having seen it."),
    "Blind release": (
        "One that does not check whose lock it removes, and so can remove somebody else's."
    ),
    "Fencing token": (
        "A number that grows with every grant, so that the storage can refuse who was overtaken."
    ),
    "Whose fault": (
        "If the next client was let in before the lease's promise ran out, it was the lock "
        "server's. If after, the holder outlived its lease, and only a guard at the storage "
        "helps."
    ),
    "Guard": (
        "What the storage checks at each write: none takes all, fence refuses a token below the "
        "highest seen, cas refuses a write whose version is not current."
    ),
}
_OF_OPERATIONS = {
    "Linearizable": (
        "There is an order of the operations that explains every answer, and in which no "
        "operation comes before another that had been answered before it was sent."
    ),
    "In evidence": (
        "The operations that a finding stands on, drawn from invocation to answer; dashed where "
        "none came."
    ),
}
_OPERATION = {
    "Operation": (
        "From its invocation to its answer. Somewhere in between it takes effect, at one "
        "moment. Without an answer nobody knows whether, and when, it did."
    ),
}
_OF_ALL = {
    "Confirmed": (
        "What was injected is confirmed when it was seen to have taken, for example all threads "
        "of a process stopped. What was not never counts as tested."
    ),
    "Verdict": (
        "Violation (exit code 1) beats unknown (3) beats ok (0). Unknown is never ok: it says "
        "what the run could not show."
    ),
}


def glossary(narrative: Narrative) -> Rows:
    locks = narrative.about_locks
    fits = bool(narrative.judgement.definitions) or not locks
    words = (_OF_LOCKS if locks else _OPERATION) | (_OF_OPERATIONS if fits else {}) | _OF_ALL
    return tuple(words.items())
