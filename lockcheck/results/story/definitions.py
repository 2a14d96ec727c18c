"""Two definitions, side by side: overlaps of certain holds, and linearizability of the object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lockcheck.checker.finding import Definition, Verdict
from lockcheck.checker.words import amount, listed, plain, sentence

NAMED_AT_MOST = 3
_ANSWERS = {
    Verdict.OK: "linearizable",
    Verdict.VIOLATION: "not linearizable",
    Verdict.UNKNOWN: "could not be told",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """What both definitions say of one object, in words."""

    key: str
    model: str
    engine: str
    overlaps: str
    linearizable: str
    sentence: str
    disagree: bool


@dataclass(frozen=True, slots=True)
class SideBySide:
    shown: tuple[Compared, ...]
    summary: str  # of those that are not shown
    locks: bool  # there is a lock among them, so that there are two definitions


def side_by_side(definitions: Iterable[Definition], most: int) -> SideBySide:
    """Those that are worth a look, the disagreements first; the others are only counted."""
    every = tuple(definitions)
    interesting = sorted((d for d in every if _rank(d) < _NOTHING), key=_rank)
    fine = [d for d in every if _rank(d) == _NOTHING]
    return SideBySide(
        shown=tuple(map(_compared, interesting[:most])),
        summary=_summary(fine, len(interesting[most:])),
        locks=any(d.overlaps is not None for d in every),
    )


_NOTHING = 3


def _rank(definition: Definition) -> int:
    if disagree(definition):
        return 0
    return {Verdict.VIOLATION: 1, Verdict.UNKNOWN: 2}.get(definition.linearizable, _NOTHING)


def disagree(definition: Definition) -> bool:
    if definition.overlaps is None or definition.linearizable is Verdict.UNKNOWN:
        return False
    return (definition.overlaps > 0) != (definition.linearizable is Verdict.VIOLATION)


def _compared(definition: Definition) -> Compared:
    overlaps = definition.overlaps
    return Compared(
        key=_name(definition),
        model=plain(definition.model),
        engine=plain(definition.engine),
        overlaps="no lock" if overlaps is None else amount(overlaps, "overlap"),
        linearizable=_ANSWERS[definition.linearizable],
        sentence=sentence(definition.sentence),
        disagree=disagree(definition),
    )


def _summary(fine: list[Definition], unfit: int) -> str:
    """Of those that are not shown: what no longer fitted, and what is as it should be."""
    parts = [f"{amount(unfit, 'more object')} like these"] if unfit else []
    if fine:
        which = listed((_named(d) for d in fine), NAMED_AT_MOST)
        locks = any(d.overlaps is not None for d in fine)
        agree = "an order explains all answers"
        parts.append(f"{which}: {f'no overlap, and {agree}' if locks else agree}")
    return "; ".join(parts)


def _named(definition: Definition) -> str:
    model = f" ({plain(definition.model)})" if definition.model else ""
    return f"{_name(definition)}{model}"


def _name(definition: Definition) -> str:
    what = "the only object" if definition.overlaps is None else "the lock"
    return plain(definition.key) or what
