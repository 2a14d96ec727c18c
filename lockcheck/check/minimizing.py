"""The smallest part of a history that still is the violation: judged by the same judges."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from lockcheck.check.pieces import Piece, name_of, pieces_of
from lockcheck.checker import Patience, judge
from lockcheck.checker.finding import Finding, Judgement, Verdict
from lockcheck.errors import UserError
from lockcheck.files import writing
from lockcheck.formats.opening import STANDARD_INPUT, plain_name
from lockcheck.formats.read_options import opening_terms
from lockcheck.history import History, Operation
from lockcheck.history.event import encode_event
from lockcheck.results.story.grouping import incidents, worst_first
from lockcheck.results.story.smallest import Smallest

LIMIT_S = 60.0
UNASKED_S = 2.0  # for the page of a long log
ADDED_FIRST = 8  # pieces, where the incident's own operations do not suffice; then twice as many

Shown = Callable[[int, int], object]  # how many operations are left, after how many attempts


def silent(_left: int, _tried: int) -> None: ...


def minimized(
    judgement: Judgement, limit_s: float = LIMIT_S, show: Shown = silent
) -> Smallest | None:
    """None: there is no violation, or the time was over before a part was found that has it."""
    main = main_finding(judgement)
    if main is None:
        return None
    until = time.monotonic() + limit_s
    for past in _pasts(judgement):
        search = _Search(past, main, lambda: time.monotonic() < until, show)
        found = search.first()
        if found is not None:
            part = search.part(search.smaller(found))
            return Smallest(part, judgement.counts.operations, search.cut_short)
    return None


@dataclass(frozen=True, slots=True)
class Minimize:
    """That the smallest part of a history is asked for, and is to be written."""

    to: Path | None = None  # None: beside the report
    show: Shown = silent

    def path_beside(self, source: str, report: Path | None) -> Path:
        if self.to is None and report is None and source == STANDARD_INPUT:
            raise UserError(
                "standard input has no folder to write to", cure="name a file: --minimized FILE"
            )
        name = f"{Path(plain_name(source)).stem}.min.jsonl"
        to = self.to or (report or Path(source)).with_name(name)
        if to.exists() and Path(source).exists() and to.samefile(source):
            raise UserError("--minimized names the history file itself", cure="choose another file")
        return to


def smallest_of(
    judgement: Judgement, asked: Minimize | None, to: Path | None, *, unasked: bool
) -> Smallest | None:
    """Of a long log it is also found `unasked`, if that is quick."""
    if asked is not None and to is not None:
        found = minimized(judgement, show=asked.show)
        return save(found, to) if found else None
    if not unasked or judgement.scan is None:
        return None
    found = minimized(judgement, UNASKED_S)
    return None if found is None or found.cut_short else found


def why_none(judgement: Judgement) -> str:
    if main_finding(judgement) is None:
        return "nothing was minimized: there is no violation"
    return f"nothing was minimized: no part of it was found within {LIMIT_S:.0f} s"


def save(smallest: Smallest, to: Path) -> Smallest:
    """Writes it as JSON Lines, which are judged the same."""
    try:
        with writing(to) as out:
            out.writelines(encode_event(event) + b"\n" for event in smallest.history.events)
    except OSError as error:
        raise UserError(
            f"{to} cannot be written: {error.strerror}", cure="name another file: --minimized FILE"
        ) from error
    return replace(smallest, path=str(to.absolute()))


def _pasts(judgement: Judgement) -> Iterator[History]:
    """What was looked at, and, where that was only a part, the whole history."""
    yield judgement.case.history
    if judgement.scan is not None:
        yield judgement.scan.rows()


def main_finding(judgement: Judgement) -> Finding | None:
    """The main finding of the worst incident, if that is a violation."""
    if judgement.verdict is not Verdict.VIOLATION:
        return None
    worst = next(iter(worst_first(incidents(judgement.findings))), None)
    return worst.main if worst and worst.effect is Verdict.VIOLATION else None


@dataclass(slots=True)
class _Search:
    past: History
    main: Finding
    may_go_on: Callable[[], bool]
    show: Shown
    tried: int = 0
    cut_short: bool = True
    pieces: list[Piece] = field(init=False)

    def __post_init__(self) -> None:
        self.pieces = pieces_of(self.past, strict=self.main.proof is not None)

    def first(self) -> list[Piece] | None:
        """The pieces of the incident, and as many of those around it as it takes."""
        wanted = {name_of(operation) for operation in _operations(self.main)}
        own = [p for p in self.pieces if any(name_of(o) in wanted for o in p.operations)]
        start_ns = min((p.start_ns for p in own), default=self.main.time_ns)
        end_ns = max((p.end_ns for p in own), default=self.main.time_ns)

        def distance(piece: Piece) -> tuple[bool, bool, int]:
            apart_ns = max(0, start_ns - piece.end_ns, piece.start_ns - end_ns)
            return bool(piece.operations), piece.key != self.main.key, apart_ns

        chosen = [*own, *(p for p in self.pieces if not p.operations and not distance(p)[2])]
        taken = set(chosen)
        others = sorted((p for p in self.pieces if p not in taken), key=distance)
        more = ADDED_FIRST
        while self.may_go_on():
            if self.shows_it(_closed(chosen)):
                return _closed(chosen)
            if not others:
                return None
            chosen, others, more = chosen + others[:more], others[more:], 2 * more
        return None

    def smaller(self, pieces: list[Piece]) -> list[Piece]:
        """Delta debugging: without the first half, the second, each quarter ... each piece; until
        none of them can be left out."""
        left = sorted(pieces, key=lambda piece: (not piece.operations, piece.start_ns))
        size = max(1, len(left) // 2)
        while self.may_go_on():
            at, before = 0, len(left)
            while at < len(left):
                if not self.may_go_on():
                    return left
                rest = _supported(left[:at] + left[at + size :])
                if self.shows_it(rest):
                    left = rest
                else:
                    at += size
            if size == 1 and len(left) == before:
                self.cut_short = False
                break
            size = max(1, min(size // 2, len(left) // 2))
        return left

    def shows_it(self, pieces: list[Piece]) -> bool:
        self.tried += 1
        self.show(sum(len(piece.operations) for piece in pieces), self.tried)
        found = main_finding(judge(self.part(pieces), Patience(self.may_go_on)))
        return found is not None and is_same(found, self.main)

    def part(self, pieces: Iterable[Piece]) -> History:
        places = sorted(place for piece in pieces for place in piece.places)
        events = [self.past.events[place] for place in places]
        terms = self.past.terms
        opening = [opening_terms(terms, event) for event in events[:1]]
        return History.of([*opening, *events], terms=terms)


def _closed(pieces: Iterable[Piece]) -> list[Piece]:
    """With all that they need."""
    found, waiting = dict.fromkeys(pieces), list(pieces)
    while waiting:
        new = [piece for piece in waiting.pop().needs if piece not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return list(found)


def _supported(pieces: list[Piece]) -> list[Piece]:
    """Without those of which something is missing that they need."""
    while True:
        there = set(pieces)
        kept = [piece for piece in pieces if piece.needs <= there]
        if len(kept) == len(pieces):
            return kept
        pieces = kept


def _operations(finding: Finding) -> Iterator[Operation]:
    """All that it is about."""
    for hold in (
        *finding.holds,
        *([finding.blame.released_by] if finding.blame.released_by else []),
    ):
        yield hold.acquire
        yield from (hold.release,) if hold.release else ()
        yield from hold.renewals
    yield from finding.operations
    yield from (finding.blame.release,) if finding.blame.release else ()
    yield from finding.proof.operations.values() if finding.proof else ()


def is_same(found: Finding, main: Finding) -> bool:
    """Whether it is the same violation, with the same blame: of the same holds and some of the same
    operations, and of no more."""
    if (found.code, found.key, found.blame.who) != (main.code, main.key, main.blame.who):
        return False
    if main.proof is not None or found.proof is not None:  # an engine may name others
        return (main.proof is None) == (found.proof is None)
    return _blamed(found) == _blamed(main) and _covered(found, main)


def _blamed(finding: Finding) -> tuple[object, ...]:
    blame = finding.blame
    fault, ended_by = (each.id if each else None for each in (blame.fault, blame.ended_by))
    release = name_of(blame.release) if blame.release else None
    return fault, ended_by, release, blame.promised_until_ns, blame.stalls


def _covered(found: Finding, main: Finding) -> bool:
    """Whether it claims nothing that the main finding does not claim."""
    ends_ns = {name_of(hold.acquire): hold.end_ns for hold in main.holds}
    holds = {name_of(hold.acquire): hold.end_ns for hold in found.holds}
    if holds.keys() != ends_ns.keys() or found.length_ns > main.length_ns:
        return False
    known = {name_of(operation) for operation in main.operations}
    operations = {name_of(operation) for operation in found.operations}
    last = {name_of(operation) for operation in main.operations[-1:]}
    return all(holds[hold] <= ends_ns[hold] for hold in holds) and last <= operations <= known
