"""Times, names, numbers and operations in words: one notation for judges, pages and terminals.

What comes from a history passes through `plain`, so that it spoils neither terminal nor page.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from lockcheck.history import F, FaultSpan, Hold, Operation, Terms
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.model import name_of

NS_PER_S = 1000 * NS_PER_MS
LONGEST_VALUE = 40
LOCKING = frozenset({F.ACQUIRE, F.RELEASE, F.RENEW})
_OPENINGS = {"A", "In", "The", "No", "Stale", "Lost"}  # first words of our titles
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def plain(value: object, limit: int = 60) -> str:
    """Text from a history, made harmless for a terminal and cut to a readable length."""
    text = value if isinstance(value, str) else repr(value)
    clipped = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if clipped.isprintable():
        return clipped
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in clipped)


def shown(value: object) -> str:
    """A value as JSON: strings in quotes, so that they are not read as words of the sentence."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


# --- times ---------------------------------------------------------------------------------------


def span(ns: int) -> str:
    """A duration, rounded for a reader: 1.2 ms, 312 ms, 1.204 s, 20.1 s."""
    seconds = abs(ns) / NS_PER_S
    if seconds >= 0.9995:
        return f"{seconds:.1f} s" if seconds >= 9.9995 else f"{seconds:.3f} s"
    milliseconds = 1000 * seconds
    digits = 0 if milliseconds >= 9.95 else 1 if milliseconds >= 0.95 else 2
    return f"{milliseconds:.{digits}f} ms" if milliseconds >= 0.005 else "0 s"


def spans(lengths_ns: Sequence[int]) -> str:
    """The shortest and the longest of several durations: 5.6 to 15 ms each."""
    long = stretch(min(lengths_ns), max(lengths_ns))
    return long if len(lengths_ns) == 1 else f"{long} each"


def stretch(least_ns: int, most_ns: int) -> str:
    """5.6 to 15 ms; 9.0 ms to 1.200 s; one of them if they read the same."""
    least, most = span(least_ns), span(most_ns)
    return most if least == most else f"{least.removesuffix(most[most.index(' ') :])} to {most}"


def moment(ns: int) -> str:
    """A time since the start of the run, in milliseconds."""
    return f"{ns / NS_PER_S:.3f} s"


def exactly(ns: int) -> str:
    """A time since the start of the run, to the microsecond."""
    whole, _, digits = f"{ns / NS_PER_S:.6f}".partition(".")
    return f"{whole}.{digits.rstrip('0'):0<3} s"


def at(ns: int) -> str:
    return f"at {exactly(ns)}"


def by_its_clock(began_ns: int, ns: int) -> str:
    """The time as date and time, for a log that began at `began_ns` by its own clock."""
    seconds, rest_ns = divmod(began_ns + ns, NS_PER_S)
    date = datetime.fromtimestamp(seconds, UTC)
    return f"{date:%Y-%m-%d %H:%M:%S}.{rest_ns // NS_PER_MS:03} UTC"


# --- numbers -------------------------------------------------------------------------------------


def amount(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def in_letters(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


# --- names ---------------------------------------------------------------------------------------


def lock_name(key: str) -> str:
    """The key, or "the lock": a history with only one lock need not name it."""
    return plain(key) or "the lock"


def lock_server(terms: Terms) -> str:
    """What grants the lock, with its name if known."""
    if terms.accused:
        return plain(terms.accused)
    return f"the lock server ({plain(terms.server)})" if terms.server else "the lock server"


def names(nodes: Iterable[str], most: int = 6) -> str:
    """Each node once, in the order of first appearance."""
    return listed((plain(node) for node in dict.fromkeys(nodes)), most)


def names_with_counts(nodes: Iterable[str], most: int = 6) -> str:
    counted = sorted(Counter(nodes).items(), key=lambda item: natural(item[0]))
    if len(counted) == 1:
        return plain(counted[0][0])
    each = (f"{plain(node)} ({many:,})" if many > 1 else plain(node) for node, many in counted)
    return listed(each, most)


def natural(name: str) -> list[tuple[int, str]]:
    """A sort key that sorts c2 before c10."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def node_of(holds: Sequence[Hold], index: int, otherwise: str) -> str:
    return plain(holds[index].node) if len(holds) > index else otherwise


def fault_name(fault: FaultSpan) -> str:
    where = f" of {names(fault.nodes)}" if fault.nodes else ""
    return f"{fault_kind(fault)}{where}"


def fault_kind(fault: FaultSpan) -> str:
    """Of a clock, what it does."""
    if fault.name != "clock":
        return plain(fault.name)
    moves = (kind for kind in ("drift", "strobe") if f"{kind}=" in fault.asked)
    return f"clock {next(moves, 'jump')}"


# --- sentences -----------------------------------------------------------------------------------


def listed(parts: Iterable[str], most: int = 0) -> str:
    """`a, b and c`; beyond `most` parts, the others are only counted."""
    every = list(parts)
    if most and len(every) > most:
        every = [*every[:most], f"{len(every) - most:,} more"]
    *others, last = every or [""]
    return f"{', '.join(others)} and {last}" if others else last


def upper_first(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def lower_first(text: str) -> str:
    """The text for the middle of a sentence; a name at its start stays as it is."""
    return f"{text[:1].lower()}{text[1:]}" if text.partition(" ")[0] in _OPENINGS else text


def full_stop(text: str) -> str:
    """A judge's sentence with its full stop. It may begin with a name, which stays as it is."""
    clean = plain(text, 400)
    clean = upper_first(clean) if clean.startswith("process ") else clean
    return f"{clean}{'' if not clean or clean.endswith(('.', '!', '?', ':')) else '.'}"


def sentence(text: str) -> str:
    """The text as a sentence: capitalized, with a full stop."""
    return full_stop(upper_first(text))


# --- operations ----------------------------------------------------------------------------------


def operation_words(operation: Operation) -> str:
    """Client, operation, result and time: `c3 read x: 7 (0.0120 to 0.0135 s)`."""
    start, end = exactly(operation.start_ns), operation.end_ns
    when = f"{start.removesuffix(' s')} to {exactly(end)}" if end is not None else f"from {start}"
    return f"{plain(operation.node)} {label(operation)} ({when})"


def by_node(text: str, operations: Iterable[Operation]) -> str:
    """Replaces the processes in an engine's sentence by the nodes of these operations."""
    nodes = {str(o.process): plain(o.node) for o in operations}
    return re.sub(
        r"\bprocess (\w+)", lambda found: nodes.get(found[1], plain(name_of(found[1]))), text
    )


def label(operation: Operation) -> str:
    return f"{call(operation)}: {outcome(operation)}"


def call(operation: Operation) -> str:
    """The operation in a few words: `write 2 to x`, `cas 1 to 2 on x`, `acquire k1`."""
    f, key, value = plain(operation.f, 24), plain(operation.key), operation.invoke.value
    token = operation.invoke.token
    with_token = "" if token is None else f" with token {token}"
    if operation.f in LOCKING or operation.f == F.READ or value is None:
        return f"{f}{f' {key}' if key else ''}{with_token}"
    where = f" {'to' if operation.f == F.WRITE else 'on'} {key}" if key else ""
    return f"{f} {_argument(operation, value)}{where}{with_token}"


def _argument(operation: Operation, value: object) -> str:
    if operation.f == F.CAS and isinstance(value, list | tuple) and len(value) == 2:
        return f"{plain(value[0], 30)} to {plain(value[1], 30)}"
    return plain(value)


def outcome(operation: Operation) -> str:
    answer, granting = operation.answer, operation.f == F.ACQUIRE
    if answer is None:
        return "no answer came"
    if operation.failed:
        return "not granted" if granting else "did not happen"
    if operation.unknown:
        return "outcome unknown"
    if granting:
        return "granted" if answer.token is None else f"granted, token {answer.token}"
    if operation.f == F.READ:
        return "nothing" if answer.value is None else plain(answer.value)
    changed = answer.value is not None and answer.value != operation.invoke.value
    return f"done, {plain(answer.value)}" if changed and operation.f not in LOCKING else "done"
