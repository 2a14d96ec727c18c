"""Small words: times, numbers, names. Everything from a history passes through `plain`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from lockcheck.history import FaultSpan, Hold
from lockcheck.history.event import NS_PER_MS

_OPENINGS = {"A", "The", "No", "Stale", "Lost"}  # the words of ours that a title begins with
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def plain(value: object, limit: int = 60) -> str:
    """Text from a history, made harmless for a terminal and cut to a length worth reading."""
    text = value if isinstance(value, str) else repr(value)
    clipped = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if clipped.isprintable():
        return clipped
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in clipped)


def span(ns: int) -> str:
    """A length of time with as many digits as somebody wants to read: 1.2 ms, 312 ms, 2.013 s."""
    ms = abs(ns) / NS_PER_MS
    if ms < 0.095:
        return f"{ms:.2f} ms" if ms >= 0.005 else "0 ms"
    if ms < 9.95:
        return f"{ms:.1f} ms"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    return f"{ms / 1000:.3f} s" if ms < 10_000 else f"{ms / 1000:.1f} s"


def spans(lengths_ns: Sequence[int]) -> str:
    """Of several lengths the shortest and the longest: 5.6 to 15 ms each."""
    shortest, longest = span(min(lengths_ns)), span(max(lengths_ns))
    if shortest == longest:
        return longest if len(lengths_ns) == 1 else f"{longest} each"
    if shortest.rpartition(" ")[2] == longest.rpartition(" ")[2]:
        shortest = shortest.rpartition(" ")[0]
    return f"{shortest} to {longest} each"


def moment(ns: int) -> str:
    """A point in time, counted from the start of the run."""
    return f"{ns / NS_PER_MS / 1000:.3f} s"


def by_its_clock(began_ns: int, ns: int) -> str:
    """The same as date and time, where the log began then by its own clock."""
    seconds, rest_ns = divmod(began_ns + ns, 1000 * NS_PER_MS)
    date = datetime.fromtimestamp(seconds, UTC)
    return f"{date:%Y-%m-%d %H:%M:%S}.{rest_ns // NS_PER_MS:03} UTC"


def amount(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def lock_name(key: str) -> str:
    """A history with only one lock, or object, need not name it."""
    return plain(key) or "the lock"


def in_letters(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def upper_first(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def lower_first(text: str) -> str:
    """In the middle of a sentence; a name at its start stays as it is."""
    return f"{text[:1].lower()}{text[1:]}" if text.partition(" ")[0] in _OPENINGS else text


def full_stop(text: str) -> str:
    """A judge's sentence: what it begins with may be a name, which stays as it is."""
    shown = plain(text, 400)
    shown = upper_first(shown) if shown.startswith("process ") else shown
    return f"{shown}{'' if not shown or shown.endswith(('.', '!', '?', ':')) else '.'}"


def sentence(text: str) -> str:
    """A doubt or a note as a whole sentence, whoever wrote it."""
    shown = plain(text, 400)
    if not shown:
        return ""
    return f"{upper_first(shown)}{'' if shown.endswith(('.', '!', '?')) else '.'}"


def listed(parts: Iterable[str], most: int = 0) -> str:
    """`most`: beyond this many, the others are counted."""
    every = list(parts)
    if most and len(every) > most:
        every = [*every[:most], f"{len(every) - most:,} more"]
    *others, last = every or [""]
    return f"{', '.join(others)} and {last}" if others else last


def names(nodes: Iterable[str], most: int = 6) -> str:
    """Each once, in the order of its first appearance."""
    return listed((plain(node) for node in dict.fromkeys(nodes)), most)


def names_with_counts(nodes: Iterable[str], most: int = 6) -> str:
    counted = sorted(Counter(nodes).items(), key=lambda item: natural(item[0]))
    if len(counted) == 1:
        return plain(counted[0][0])
    return listed(
        (f"{plain(node)} ({number:,})" if number > 1 else plain(node) for node, number in counted),
        most,
    )


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts c2 before c10."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]


def numbers(seqs: Iterable[int | None]) -> str:
    """Numbers that the storage gave: #5; #5 and #8; #5 to #17."""
    known = sorted(seq for seq in seqs if seq is not None)
    if len(known) < 3:
        return " and ".join(f"#{seq}" for seq in known)
    return f"#{known[0]} to #{known[-1]}"


def fault_name(fault: FaultSpan) -> str:
    where = f" of {names(fault.nodes)}" if fault.nodes else ""
    return f"{plain(fault.name)}{where}"


def node_of(holds: Sequence[Hold], index: int, otherwise: str) -> str:
    return plain(holds[index].node) if len(holds) > index else otherwise
