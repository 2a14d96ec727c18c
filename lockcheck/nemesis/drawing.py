"""What `all` stands for: faults that apply to a run, drawn by its seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

from lockcheck.errors import UserError
from lockcheck.nemesis.base import FaultKind, Kinds, Plan, Step
from lockcheck.nemesis.fitting import GAP_MS, objection
from lockcheck.nemesis.grammar import ALL, parse, sequence_words
from lockcheck.nemesis.parameters import WHEN
from lockcheck.nemesis.triggers import Trigger

WAITS_MS = 600  # for a node to strike
SPARE = 0.25  # of the time: a busy machine takes longer over each
USUAL = 0.5  # how often the usual trigger is kept


def draw(texts: Iterable[str], kinds: Kinds, plan: Plan) -> tuple[str, ...]:
    """The same texts, with each `all` replaced by a sequence that can be written down."""
    return tuple(
        _sequence(kinds, plan, random.Random(f"{plan.seed}/{number}/{ALL}"))
        if text.strip() == ALL
        else text
        for number, text in enumerate(texts)
    )


def _sequence(kinds: Kinds, plan: Plan, choices: random.Random) -> str:
    """As many as fit well into the time, of all kinds in turn, and at least one if it just fits.
    What is left of the time is for those that were drawn: they strike again."""
    chosen: list[Step] = []
    left_ms = plan.time_limit_ms * (1 - SPARE)
    for step in _by_turns(kinds, plan, choices):
        takes_ms = GAP_MS[1] + WAITS_MS + (step.lasts_ms(plan) or 0)
        if takes_ms <= (left_ms if chosen else plan.time_limit_ms):
            chosen.append(with_a_trigger(step, plan, choices))
            left_ms -= takes_ms
    if not chosen:
        raise UserError(
            f"no fault fits into a run of {plan.time_limit_ms} ms on {plan.backend}",
            cure="a longer --time-limit, or a shorter --ttl",
        )
    return sequence_words(tuple(chosen))


def _by_turns(kinds: Kinds, plan: Plan, choices: random.Random) -> Iterator[Step]:
    """Each one that applies, once: one of each kind, then another one of each kind."""
    by_kind = [able for kind in kinds.values() if (able := list(applicable(kind, plan)))]
    choices.shuffle(by_kind)
    for able in by_kind:
        choices.shuffle(able)
    while by_kind:
        for able in by_kind:
            yield able.pop()
        by_kind = [able for able in by_kind if able]


def variants(kind: FaultKind) -> Iterator[Step]:
    """Each of its variants, with its usual aim."""
    for words in kind.variants:
        yield from parse(f"{kind.name}:{words or kind.aims[0].name}", {kind.name: kind})


def applicable(kind: FaultKind, plan: Plan) -> Iterator[Step]:
    """With all its aims and variants: those that make sense in this run and on this machine."""
    for variant in variants(kind):
        steps = [replace(variant, aim=aim) for aim in kind.aims]
        fitting = [s for s in steps if not objection(s, plan) and s.lasts_ms(plan) is not None]
        if fitting and not kind.lacks(fitting[0]):  # at any aim
            yield from fitting


def with_a_trigger(step: Step, plan: Plan, choices: random.Random) -> Step:
    """With its usual trigger, or any other one that can occur."""
    triggers = Trigger if step.setting(WHEN.name) is None else ()
    others = (replace(step, given=(*step.given, (WHEN.name, str(each)))) for each in triggers)
    able = [other for other in others if not objection(other, plan)]
    return step if not able or choices.random() < USUAL else choices.choice(able)
