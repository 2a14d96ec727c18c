"""What lockcheck expects of its own locks, as rows of a campaign."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lockcheck.backends import BACKENDS
from lockcheck.backends.expected import Expected
from lockcheck.storage.base import Guard

SOURCE = "the expectations of lockcheck's own locks"


def own_table(backends: Iterable[str]) -> dict[str, Any]:
    """As [matrix] of a file would have it."""
    rows = [
        row_of(name, expected)
        for name in backends or BACKENDS
        for expected in BACKENDS[name].expected
    ]
    return {"row": rows}


def row_of(backend: str, expected: Expected) -> dict[str, Any]:
    guard = {"guard": str(expected.guard)} if expected.guard != Guard.NONE else {}
    return {
        "backend": backend,
        "nemesis": expected.nemesis,
        **guard,
        **dict(_settings(expected.options)),
        "expect": expected.verdict,
        "findings": list(expected.findings),
        "blame": expected.blame,
    }


def _settings(options: Iterable[str]) -> Iterator[tuple[str, object]]:
    """`--ttl 3s --no-stop-on-violation` as names and values."""
    words = list(options)
    while words:
        name = words.pop(0).removeprefix("--")
        if words and not words[0].startswith("--"):
            yield name, words.pop(0)
        elif name.startswith("no-"):
            yield name.removeprefix("no-"), False
        else:
            yield name, True
