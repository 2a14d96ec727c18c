"""A fencing token was not greater than one issued before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.evidence.blame import Attribution
from lockcheck.checker.evidence.guard import effect_of
from lockcheck.checker.evidence.order import by_key
from lockcheck.checker.evidence.rivals import exclude
from lockcheck.checker.finding import Blame, Code, Culprit, Finding
from lockcheck.history import Hold, Terms


def find(case: Case) -> Iterator[Finding]:
    """Only holds are looked at: who enters a reentrant lock again is told its own token again."""
    told = [hold for hold in case.holds if hold.token is not None]
    pairs = [
        pair
        for holds in by_key(told).values()
        if not _grows(holds)
        for pair in _not_greater(holds, case.terms)
    ]
    yield from (_finding(case.terms, case.attribution, *pair) for pair in pairs)


def _grows(holds: list[Hold]) -> bool:
    """From answer to answer, and so from each grant to any that was asked for later."""
    return all(_token(before) < _token(after) for before, after in pairwise(holds))


def _not_greater(holds: list[Hold], terms: Terms) -> Iterable[tuple[Hold, Hold]]:
    """Each of the later ones once."""
    again = {id(later): (earlier, later) for earlier, later in repeated(holds, terms)}
    lower = {id(later): (earlier, later) for earlier, later in going_back(holds)}
    return (again | lower).values()


def going_back(holds: list[Hold]) -> Iterator[tuple[Hold, Hold]]:
    """Each that got a lower token than one who had been granted it before this one even asked.

    Compared with the highest of those: who is not below it, is below none of them.
    """
    known = sorted(holds, key=lambda hold: hold.start_ns)
    highest: Hold | None = None
    position = 0
    for hold in sorted(holds, key=lambda hold: hold.acquire.start_ns):
        while position < len(known) and known[position].start_ns < hold.acquire.start_ns:
            if highest is None or _token(known[position]) > _token(highest):
                highest = known[position]
            position += 1
        if highest is not None and _token(hold) < _token(highest):
            yield highest, hold


def repeated(holds: list[Hold], terms: Terms) -> Iterator[tuple[Hold, Hold]]:
    """Each that got the token of another grant, in whatever order the two were granted.

    Those who may hold it at once may be told the same. And a client that never gave its lock back
    may be told of the same grant once more.
    """
    groups: defaultdict[int, _SameToken] = defaultdict(_SameToken)
    for hold in holds:
        group = groups[_token(hold)]
        for other in group.worth_comparing():
            if not _same_grant(terms, other, hold) and exclude(terms, other, hold):
                yield other, hold
                break
        group.add(hold)


@dataclass(slots=True)
class _SameToken:
    told: list[Hold] = field(default_factory=list)
    told_alone: list[Hold] = field(default_factory=list)

    def add(self, hold: Hold) -> None:
        self.told.append(hold)
        if not hold.shared:
            self.told_alone.append(hold)

    def worth_comparing(self) -> tuple[Hold, ...]:
        """Of each kind the last two: if they are one grant, so were all before, or are reported."""
        return (*reversed(self.told_alone[-2:]), *reversed(self.told[-2:]), *self.told[:1])


def _same_grant(terms: Terms, one: Hold, other: Hold) -> bool:
    """In a log of somebody's day it may have been inside on more levels than the log tells of,
    where nobody said that there are none; then what no order explains is told all the same."""
    gave_back = one.release is not None and one.release.ok
    gave_back &= not (terms.partial and (terms.reentrant or not terms.model))
    return one.process == other.process and not gave_back


def _token(hold: Hold) -> int:
    token = hold.token
    return 0 if token is None else token


def _finding(terms: Terms, attribution: Attribution, earlier: Hold, later: Hold) -> Finding:
    fault = attribution.fault_anywhere(earlier.acquire.start_ns, later.start_ns)
    blame = Blame(Culprit.SERVICE, 0, None, fault)
    return Finding(
        code=Code.TOKEN_REGRESSION,
        key=later.key,
        time_ns=later.start_ns,
        effect=effect_of(terms, Code.TOKEN_REGRESSION, blame),
        holds=(earlier, later),
        operations=(earlier.acquire, later.acquire),
        length_ns=0,
        blame=blame,
    )


CHECK = Check(
    code=Code.TOKEN_REGRESSION,
    meaning="a fencing token was not greater than one issued before it",
    explanation="""\
A fencing token is a number that grows with every grant. The storage refuses a number below the
highest that it has seen, and so keeps out a holder that was overtaken. If a later holder is told a
lower number, the storage refuses the right one; if two grants have the same number, it cannot tell
them apart.

It is reported where a client was told a token below that of somebody whose `acquire` had been
answered before this client asked. That two grants have the same token is wrong in whatever order
they came, unless they may hold the lock at once (shared, or a semaphore's). A client that never
released its lock and asks again may be told of the same grant, and is told the same token.

It counts under every guard: the guard `fence` relies on it. The usual causes are a server that
restarted without its data, a failover to a replica that lagged behind, or a counter that lives
somewhere else than the lock.""",
    find=find,
)
