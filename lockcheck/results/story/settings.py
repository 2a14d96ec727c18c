"""What was tested, in rows: for the terminal, the facts of a run and the page."""

from __future__ import annotations

from lockcheck.durations import duration_words
from lockcheck.history import Terms

Rows = tuple[tuple[str, str], ...]


def settings_of(terms: Terms) -> Rows:
    """By the options of the command line."""
    rows = (
        ("--backend", terms.backend),
        ("--workload", terms.workload),
        ("--model", terms.model),
        ("--permits", str(terms.permits) if terms.permits > 1 and terms.excludes else ""),
        ("--nemesis", ", ".join(terms.faults) or ("none" if terms.backend else "")),
        ("--guard", terms.guard if terms.stores else ""),
        ("--ttl", duration_words(terms.ttl_ms) if terms.ttl_ms else ""),
        ("--clients", str(terms.clients or "")),
        ("--seed", "" if terms.seed is None else str(terms.seed)),
    )
    return tuple((name, value) for name, value in rows if value)
