"""Two definitions, side by side: overlaps of certain holds, and linearizability of the object."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lockcheck.checker.definitions import SHARED
from lockcheck.checker.finding import Definition, Verdict
from lockcheck.checker.linearizability import MODELS
from lockcheck.checker.modelling import SEMAPHORES
from lockcheck.words import amount, listed, plain, sentence

NAMED_AT_MOST = 3
SECOND_LOOK = "By the answers alone. That they fit together does not mean that no client was late."


@dataclass(frozen=True, slots=True)
class SideBySide:
    lines: tuple[str, ...]  # of each object that is worth a look
    summary: str  # of those that are not shown
    locks: bool  # there is a lock among them, so that there are two definitions


def side_by_side(definitions: Iterable[Definition], most: int) -> SideBySide:
    """Those that are worth a look, the disagreements first; the others are only counted."""
    every = tuple(definitions)
    locks = any(d.overlaps is not None for d in every)
    interesting = sorted((d for d in every if _rank(d) < _NOTHING), key=_rank)
    fine = [d for d in every if _rank(d) == _NOTHING]
    return SideBySide(
        lines=tuple(f"{_named(d)}: {sentence(comparison(d))}" for d in interesting[:most]),
        summary=_summary(fine, len(interesting[most:]), beside_locks=locks),
        locks=locks,
    )


def comparison(definition: Definition) -> str:
    """Whether the two definitions agree on one object, or why that could not be decided."""
    verdict, overlaps = definition.linearizable, definition.overlaps
    if verdict is Verdict.UNKNOWN:
        undecided = "It could not be decided whether an order explains the answers"
        return BY_HOLDS if definition.model == SHARED else f"{undecided}: {definition.reason}."
    explained = verdict is Verdict.OK
    if overlaps is None:
        return "An order of its operations explains all answers." if explained else NO_ORDER
    several = "more clients than it admits" if definition.model in SEMAPHORES else "two clients"
    together = f"{several} held it at once"
    if overlaps and explained:
        return f"The two checks disagree: {together}, yet {KEPT}"
    if overlaps:
        return f"Both checks agree: {together}. {NO_ORDER}"
    if explained:
        return f"Both checks agree: no {together}, and an order explains all answers."
    no_order = f"no order explains the answers: {definition.reason}."
    return f"The two checks disagree: no {together}, yet {no_order}"


BY_HOLDS = (
    "A lock that some share is judged by who certainly held it, and by no order of operations."
)
NO_ORDER = "No order of its operations explains the answers."
KEPT = "each grant came after the previous lease had ended or been released."
_NOTHING = 3


def _rank(definition: Definition) -> int:
    overlaps, linearizable = definition.overlaps, definition.linearizable
    decided = overlaps is not None and linearizable is not Verdict.UNKNOWN
    if decided and bool(overlaps) != (linearizable is Verdict.VIOLATION):
        return 0  # they disagree
    return {Verdict.VIOLATION: 1, Verdict.UNKNOWN: 2}.get(linearizable, _NOTHING)


def _summary(fine: list[Definition], unfit: int, *, beside_locks: bool) -> str:
    """Of those that are not shown: what no longer fitted, and what is as it should be."""
    parts = [f"{amount(unfit, 'more object')} like these"] if unfit else []
    if fine:
        which = listed((_named(d) for d in fine), NAMED_AT_MOST)
        locks = any(d.overlaps is not None for d in fine)
        agree = "all answers fit together"
        if beside_locks and not locks:
            agree = "all answers fit (lost writes do not show in them)"
        parts.append(f"{which}: {f'no overlap, and {agree}' if locks else agree}")
    return "; ".join(parts)


def _named(definition: Definition) -> str:
    what = "the only object" if definition.overlaps is None else "the lock"
    noun = MODELS[definition.model].noun if definition.model in MODELS else ""
    called = noun or plain(definition.model)
    return f"{plain(definition.key) or what}{f' ({called})' if called else ''}"
