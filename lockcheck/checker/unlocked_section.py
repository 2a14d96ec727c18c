"""The critical section ran although the lock was never granted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lockcheck.checker.check import Check
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Verdict
from lockcheck.checker.guard import effect_of, guard_of
from lockcheck.checker.order import HoldIndex, Spans, by_key
from lockcheck.checker.words import at
from lockcheck.history import Ending, F, History, Hold, Operation, Terms

CHANGING = frozenset({F.WRITE, F.CAS, F.ADD, F.RUN})  # a reader may well do without the lock


@dataclass(slots=True)
class _Key:
    """What there is to know of one lock, and of what it protects."""

    granted_nodes: set[str] = field(default_factory=set)
    locked: bool = False  # somebody changed something while it held the lock
    unlocked: list[tuple[Operation | None, Operation]] = field(default_factory=list)

    @property
    def accused(self) -> list[tuple[Operation | None, Operation]]:
        """Whoever never asked is accused only where others work under the lock."""
        return [pair for pair in self.unlocked if pair[0] is not None or self.locked]


def find(history: History) -> Iterator[Finding]:
    index = HoldIndex(history.holds)
    accused = {name: key.accused for name, key in _read(history, index).items() if key.accused}
    holds = by_key(history.holds) if accused else {}
    for name, sections in accused.items():
        spans = Spans((hold.start_ns, hold.end_ns, hold) for hold in holds.get(name, []))
        for refused, change in sections:
            yield _finding(history.terms, refused, change, _holder(spans, change))


def _read(history: History, index: HoldIndex) -> dict[str, _Key]:
    keys: dict[str, _Key] = {}
    asked: dict[tuple[int | str, str], Operation] = {}  # what each process asked for last
    for operation in history.operations:  # in the order of their invocations
        name, who = operation.key, (operation.process, operation.key)
        if operation.f == F.ACQUIRE:
            key = keys.setdefault(name, _Key())
            asked[who] = operation
            if operation.ok:
                key.granted_nodes.add(operation.node)
        elif operation.f in CHANGING and operation.ok and name in keys:
            _look_at(keys[name], operation, index.of(operation), asked.get(who))
    return keys


def _look_at(key: _Key, change: Operation, hold: Hold | None, asked: Operation | None) -> None:
    if hold is not None and change.start_ns <= hold.end_ns:
        key.locked = True
    elif asked is not None:
        # Granted, it is late at worst, which is for others to judge. And what nobody knows may
        # have been granted: the client may have found that out in its own way.
        # So may one that asked again for what it had never released.
        if asked.failed and (hold is None or hold.ending is not Ending.LAST_SEEN):
            key.unlocked.append((asked, change))
    elif change.node not in key.granted_nodes:
        # A client whose process was retired goes on as another process of the same node.
        key.unlocked.append((None, change))


def _holder(spans: Spans[Hold], change: Operation) -> Hold | None:
    others = spans.touching(change.start_ns, change.start_ns)
    return next((hold for hold in others if hold.process != change.process), None)


def _finding(
    terms: Terms, refused: Operation | None, change: Operation, holder: Hold | None
) -> Finding:
    blame = Blame(Culprit.CLIENT, 0, None)
    asked = () if refused is None else (refused,)
    return Finding(
        code=Code.UNLOCKED_SECTION,
        key=change.key,
        time_ns=change.start_ns,
        effect=_effect(terms, change, blame),
        holds=(),
        operations=(*asked, change),
        length_ns=0,
        blame=blame,
        note="" if holder is None else f"{holder.node} certainly held it at that moment.",
        otherwise=_otherwise(refused, change),
    )


def _effect(terms: Terms, change: Operation, blame: Blame) -> Verdict:
    """The guard `fence` must refuse whoever has no token to show."""
    if guard_of(terms) == "fence" and change.f == F.WRITE and change.invoke.token is None:
        return Verdict.VIOLATION
    return effect_of(terms, Code.UNLOCKED_SECTION, blame)


def _otherwise(refused: Operation | None, change: Operation) -> str:
    needed = f"{change.node} would have had to be granted {change.key!r} before its {change.f}"
    if refused is None or refused.end_ns is None:
        return f"{needed} {at(change.start_ns)}; it never asked."
    why = f" ({refused.answer.error})" if refused.answer and refused.answer.error else ""
    return f"{needed} {at(change.start_ns)}; it was refused{why} {at(refused.end_ns)}."


CHECK = Check(
    code=Code.UNLOCKED_SECTION,
    meaning="the critical section ran although the lock was never granted",
    explanation="""\
A client asked for the lock, was refused, and did its work all the same: it did not look at what
`acquire` returned, or went on after a timeout as if that were a grant. Or it never asked at all,
while others change the same thing under the lock.

It is reported for what changes something (write, cas, add, run) and was accepted, on a key that is
also a lock, by a process whose last `acquire` of that key was certainly refused and whose last hold
of it is over; or by a process, and a node, that never asked for it before, if others do their work
under it. It is not reported for what came before the first `acquire` of anybody (that sets things
up), for reads, or after an `acquire` of which nobody knows whether it was granted. Work that goes
on after one's own hold is over is a late write: see stale-write.

Behind a guard it is shown and does not fail the run, except where the guard `fence` accepted a
write without a token.""",
    find=find,
)
