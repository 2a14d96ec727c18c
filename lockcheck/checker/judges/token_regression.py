"""A fencing token was not greater than one issued before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from lockcheck.checker.case import Case
from lockcheck.checker.check import Check
from lockcheck.checker.columns.screen import MOST_PLACES, Screen
from lockcheck.checker.evidence.order import by_key
from lockcheck.checker.evidence.rivals import exclude
from lockcheck.checker.evidence.same_grant import same_grant
from lockcheck.checker.finding import Blame, Code, Culprit, Finding
from lockcheck.checker.wording import Last, Words
from lockcheck.history import Hold, Terms
from lockcheck.history.ordering import order_by
from lockcheck.history.scan import Scan
from lockcheck.history.table import NO_TOKEN, Ints, Op
from lockcheck.words import lock_name, plain


def find(case: Case) -> Iterator[Finding]:
    """Of holds only: a client that enters a reentrant lock again gets its own token once more."""
    with_token = [hold for hold in case.holds if hold.token is not None]
    for holds in by_key(with_token).values():
        if not _grows(holds):
            yield from (_finding(case, *pair) for pair in _not_greater(holds, case.terms))


def _grows(holds: list[Hold]) -> bool:
    """From answer to answer, and so from each grant to any that was asked for later."""
    return all(_token(before) < _token(after) for before, after in pairwise(holds))


def _not_greater(holds: list[Hold], terms: Terms) -> Iterable[tuple[Hold, Hold]]:
    """Each of the later ones once."""
    again = {id(later): (earlier, later) for earlier, later in repeated(holds, terms)}
    lower = {id(later): (earlier, later) for earlier, later in going_back(holds)}
    return (again | lower).values()


def going_back(holds: list[Hold]) -> Iterator[tuple[Hold, Hold]]:
    """Each with a lower token than a hold that was granted before this client even asked: than the
    highest of those, since a token that is not below it is below none of them."""
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
    """Each that got the token of another grant, in whatever order. Clients that may hold it at once
    may; and one that never gave its lock back may get the same grant once more."""
    groups: defaultdict[int, _SameToken] = defaultdict(_SameToken)
    for hold in holds:
        group = groups[_token(hold)]
        for other in group.worth_comparing():
            if not same_grant(terms, other, hold) and exclude(terms, other, hold):
                yield other, hold
                break
        group.add(hold)


@dataclass(slots=True)
class _SameToken:
    holds: list[Hold] = field(default_factory=list)
    not_shared: list[Hold] = field(default_factory=list)

    def add(self, hold: Hold) -> None:
        self.holds.append(hold)
        if not hold.shared:
            self.not_shared.append(hold)

    def worth_comparing(self) -> tuple[Hold, ...]:
        """Of each kind the last two: if they are one grant, so were all before, or are reported."""
        return (*reversed(self.not_shared[-2:]), *reversed(self.holds[-2:]), *self.holds[:1])


def _token(hold: Hold) -> int:
    return hold.token or 0


def _finding(case: Case, earlier: Hold, later: Hold) -> Finding:
    fault = case.attribution.fault_anywhere(earlier.acquire.start_ns, later.start_ns)
    blame = Blame(Culprit.SERVICE, fault=fault)
    return Finding(
        code=Code.TOKEN_REGRESSION,
        key=later.key,
        time_ns=later.start_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=(earlier, later),
        operations=(earlier.acquire, later.acquire),
        length_ns=0,
        blame=blame,
    )


def _regressions_in_columns(scan: Scan) -> Iterator[Ints]:
    """Grants whose token is not above those of all that were granted before."""
    table = scan.table
    granted = np.flatnonzero((table.f == Op.ACQUIRE) & (table.token != NO_TOKEN))
    if len(granted) < 2:
        return
    by_end = granted[order_by(table.key[granted], table.end[granted])]
    key, token = table.key[by_end], table.token[by_end]
    same = key[1:] == key[:-1]
    if not (same & (token[1:] <= token[:-1])).any():
        return  # tokens grow from answer to answer, so from any grant to any later one
    # Against the highest of the same key so far, however many answers came in between.
    rank = np.unique(token, return_inverse=True)[1].astype(np.int64)
    place = np.cumsum(np.append(False, ~same)) * (len(rank) + 1) + rank
    suspected = np.flatnonzero(same & (place[1:] <= np.maximum.accumulate(place)[:-1])) + 1
    for at in suspected[:MOST_PLACES].tolist():
        first = int(np.searchsorted(key[: at + 1], key[at], "left"))
        above = first + np.flatnonzero(token[first:at] >= token[at])
        yield by_end[np.append(above[-MOST_PLACES:], at)]


def _tokens(finding: Finding) -> tuple[tuple[int | None, str], tuple[int | None, str]]:
    """The greater token and its client, then the later one that was not greater."""
    first, last = finding.holds[0], finding.holds[-1]
    return (first.token, plain(first.node)), (last.token, plain(last.node))


def _title(finding: Finding) -> str:
    (before, older), (token, node) = _tokens(finding)
    after = f"the same as {older} before it" if token == before else ""
    after = after or f"although {older} had been given {before} before"
    return f"{node} was given the token {token} of {lock_name(finding.key)}, {after}"


def _last(finding: Finding) -> Last:
    (before, older), (token, node) = _tokens(finding)
    return node, f"its token {token} is not greater than {before}, which {older} had been given"


def _note(finding: Finding) -> Iterator[str]:
    earlier, later = finding.holds
    if earlier.token == later.token:
        yield "Two grants carry the same token."


WORDS = Words(
    one="token regression",
    many="token regressions",
    kept="tokens only grow",
    precedence=8,
    title=_title,
    last=_last,
    did=lambda _: "it gave out a fencing token that was not greater than one given out before",
    cure=(
        "Take tokens from a counter that never goes back: on a majority before it is answered, "
        "kept over restarts and failovers (a revision of etcd, a zxid of ZooKeeper, a sequence "
        "of a database), and one counter for all who can be granted the lock."
    ),
    note=_note,
)
CHECK = Check(
    code=Code.TOKEN_REGRESSION,
    meaning="a fencing token was not greater than one issued before it",
    explanation="""\
A fencing token is a number that grows with every grant. The storage refuses a number below the
highest that it has seen, and so keeps out a holder that was overtaken. If a later holder gets a
lower number, the storage refuses the right one; if two grants have the same number, it cannot tell
them apart.

It is reported where a client got a token below that of an `acquire` that had been answered before
this client asked. That two grants have the same token is wrong in whatever order they came, unless
they may hold the lock at once (shared, or a semaphore's). A client that never released its lock and
asks again may get the same grant once more, with the same token: a request that is repeated, or the
lock of a session. After a release it is a new grant, and its token has to be higher.

It counts under every guard: the guard `fence` relies on it. The usual causes are a server that
restarted without its data, a failover to a replica that lagged behind, or a counter that lives
somewhere else than the lock.""",
    find=find,
    words=WORDS,
    screen=Screen(places=_regressions_in_columns),
    despite_guards=True,
    endangers_data=True,
)
