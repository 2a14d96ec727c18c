"""Explanations of the words that occur on the page, and of no others."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lockcheck.history import History
from lockcheck.results.story.narrative import Narrative
from lockcheck.words import natural, plain

Rows = tuple[tuple[str, str], ...]

_OF_LOCKS = {
    "Backend": "The lock that is tested: its servers, its client's code, and what it promises.",
    "Workload": "What the clients do: read and write a value under a lock, run jobs, share it.",
    "Hold": (
        "The time in which a client believes that it has the lock: from the answer that granted "
        "it to its own release, or until it learned that it had lost it."
    ),
    "Lease": (
        "A lock for a limited time (its TTL). Its promise is counted from the moment the client "
        "asked, not from the answer: the server may have begun to count then."
    ),
    "Overlap": (
        "Two clients held the same exclusive lock for certain at the same time: from the answer "
        "that granted it to the sending of the release, whatever the network did. Each pair of "
        "holds counts once."
    ),
    "Late write": (
        "A write from a client whose lock had gone to another: it reached the storage after one of "
        "a later holder. Its code is stale-write."
    ),
    "Lost write": (
        "An acknowledged write of which nothing is left: the final value was not computed from it, "
        "since another client overwrote it without having seen it."
    ),
    "Blind release": (
        "One that does not check whose lock it removes, and so can remove another client's."
    ),
    "Fencing token": (
        "A number that grows with every grant, and that the client sends with each write: so the "
        "storage can refuse a client whose lock has gone to another."
    ),
    "Whose fault": (
        "If the next client was let in before the lease's promise ran out, it was the lock "
        "server's. If after, the holder outlived its lease, and only a guard at the storage "
        "helps."
    ),
    "Guard": (
        "What the storage checks at each write. --guard none: nothing; --guard fence: its fencing "
        "token, and a write is refused once a read or write came with a higher one; --guard cas: "
        "that it replaces the current version."
    ),
}
_OF_ALL = {
    "Nemesis": "All that a run breaks on purpose: clients paused, networks cut, servers killed.",
    "Register": "A value that clients read and overwrite.",
    "Linearizable": (
        "There is an order of the operations that explains every answer, and in which no "
        "operation comes before another that had been answered before it was sent."
    ),
    "In evidence": "The operations that a finding stands on, from invocation to answer.",
    "Incident": "Findings that have one cause, such as one pause.",
    "Operation": (
        "From its invocation to its answer. Somewhere in between it takes effect, at one "
        "moment. Without an answer it is unknown whether, and when, it did."
    ),
    "Confirmed": (
        "What was injected is confirmed when it was seen to have taken, for example all threads "
        "of a process stopped. What was not confirmed never counts as tested."
    ),
    "Verdict": (
        "Violation (exit code 1) beats unknown (3) beats ok (0). Unknown is never ok: it says "
        "what the run could not show."
    ),
}
# Patterns of words that occur on a page instead of the one explained.
_FORMS = {
    "Hold": "holds?|held|holders?",
    "Lease": "leases?",
    "Overlap": "overlap(s|ped)?|two holders",
    "Late write": "late writes?|stale",
    "Lost write": "lost writes?|writes? .{0,40}lost",
    "Blind release": "blind releases?",
    "Fencing token": "tokens?",
    "Linearizable": "linearizable|orders? of (the|its) operations|fits? (together|no order)",
    "Incident": "incidents?",
    "Operation": "operations?",
    "Verdict": "verdict|exit code",
}
VALUE = re.compile(r"(?<!\w)v([1-9]\d?)-(c\d+)(?!\w)")  # as the workload writes them
_NODES = {
    "c": "A client, by its name: a program that asks for the lock, works under it and writes.",
    "r": "A server of the lock, by its name.",
    "s": "The storage that the lock protects, by its name.",
}


def glossary(narrative: Narrative, text: str) -> Rows:
    """`text`: the page, or a part of it, without tags."""
    words = (_OF_LOCKS if narrative.about_locks else {}) | _OF_ALL
    found = (row for row in words.items() if _occurs(_FORMS.get(row[0], row[0]), text))
    return (*found, *_names(narrative.history, text))


def _occurs(pattern: str, text: str) -> bool:
    return re.search(rf"(?<!\w)({pattern})(?!\w)", text, re.IGNORECASE) is not None


def _names(history: History, text: str) -> Iterator[tuple[str, str]]:
    """Examples of the names that a run of lockcheck gives; a file from elsewhere has others."""
    if not history.terms.backend:
        return
    nodes = set(history.clients) | {stall.node for stall in history.stalls}
    for fault in history.faults:
        nodes.update(fault.nodes, *fault.links)
    for letter, meaning in _NODES.items():  # a folder may be called r2, too
        if found := nodes & set(re.findall(rf"(?<!\w){letter}\d+(?!\w)", text)):
            yield min(found, key=natural), meaning
    if value := VALUE.search(text):
        yield value[0], f"A value: of those that {value[2]} wrote, number {value[1]}."
    keys = sorted({o.key for o in history.operations if o.key}, key=natural)
    if named := next((k for k in map(plain, keys) if _occurs(re.escape(k), text)), ""):
        yield named, "A lock, by its name; what it protects bears the same name."
