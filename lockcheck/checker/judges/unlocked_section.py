"""The critical section ran although the lock was never granted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.evidence.guard import effect_of
from lockcheck.checker.evidence.order import Spans
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Reason, Rule, Verdict
from lockcheck.history import Ending, F, Hold, Operation, Terms

CHANGING = frozenset({F.WRITE, F.CAS, F.ADD, F.RUN})  # a reader may well do without the lock


@dataclass(slots=True)
class _Key:
    """What there is to know of one lock, and of what it protects."""

    granted_nodes: set[str] = field(default_factory=set)
    granted_ns: int | None = None  # when somebody first was
    locked: bool = False  # somebody changed something while it held the lock
    unlocked: list[tuple[Operation | None, Operation]] = field(default_factory=list)

    def grant(self, acquire: Operation) -> None:
        self.granted_nodes.add(acquire.node)
        times = (self.granted_ns, acquire.end_ns)
        self.granted_ns = min((time_ns for time_ns in times if time_ns is not None), default=None)

    def gone_by(self, time_ns: int) -> bool:
        """What somebody held before the log began: another one was granted it since."""
        return self.granted_ns is not None and self.granted_ns < time_ns

    @property
    def accused(self) -> list[tuple[Operation | None, Operation]]:
        """Whoever never asked is accused only where others work under the lock."""
        return [pair for pair in self.unlocked if pair[0] is not None or self.locked]


def find(case: Case) -> Iterator[Finding]:
    accused = {name: key.accused for name, key in _read(case).items() if key.accused}
    for name, sections in accused.items():
        holds = case.holds_by_key.get(name, [])
        spans = Spans((hold.start_ns, hold.end_ns, hold) for hold in holds)
        for refused, change in sections:
            yield _finding(case.terms, refused, change, _holder(spans, change))


def _read(case: Case) -> dict[str, _Key]:
    keys: dict[str, _Key] = {}
    asked: dict[tuple[int | str, str], Operation] = {}  # what each process asked for last
    for operation in case.operations:  # in the order of their invocations
        name, who = operation.key, (operation.owner, operation.key)
        if operation.f == F.ACQUIRE:
            key = keys.setdefault(name, _Key())
            asked[who] = operation
            if operation.ok:
                key.grant(operation)
        elif operation.f in CHANGING and operation.ok and name in keys:
            hold, acquire = case.index.of(operation), asked.get(who)
            _look_at(keys[name], operation, hold, acquire, partial=case.terms.partial)
    return keys


def _look_at(
    key: _Key, change: Operation, hold: Hold | None, asked: Operation | None, *, partial: bool
) -> None:
    if hold is not None and change.start_ns <= hold.end_ns:
        key.locked = True
    elif asked is not None:
        # Granted, it is late at worst, which is for others to judge. And what nobody knows may
        # have been granted: the client may have found that out in its own way.
        # So may one that asked again for what it had never released.
        if asked.failed and (hold is None or hold.ending is not Ending.LAST_SEEN):
            key.unlocked.append((asked, change))
    elif change.node not in key.granted_nodes and (not partial or key.gone_by(change.start_ns)):
        # A client whose process was retired goes on as another process of the same node.
        key.unlocked.append((None, change))


def _holder(spans: Spans[Hold], change: Operation) -> Hold | None:
    others = spans.touching(change.start_ns, change.start_ns)
    return next((hold for hold in others if hold.process != change.owner), None)


def _finding(
    terms: Terms, refused: Operation | None, change: Operation, holder: Hold | None
) -> Finding:
    blame = Blame(Culprit.CLIENT, 0, None)
    asked = () if refused is None else (refused,)
    never = () if asked else (Reason(Rule.NEVER_ASKED),)
    held = () if holder is None else (Reason(Rule.HELD_BY_ANOTHER, holder),)
    return Finding(
        code=Code.UNLOCKED_SECTION,
        key=change.key,
        time_ns=change.start_ns,
        effect=_effect(terms, change, blame),
        holds=(),
        operations=(*asked, change),
        length_ns=0,
        blame=blame,
        reasons=(*never, *held),
    )


def _effect(terms: Terms, change: Operation, blame: Blame) -> Verdict:
    """The guard `fence` must refuse whoever has no token to show."""
    if terms.guard == "fence" and change.f == F.WRITE and change.invoke.token is None:
        return Verdict.VIOLATION
    return effect_of(terms, Code.UNLOCKED_SECTION, blame)


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
