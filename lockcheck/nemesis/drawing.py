"""What `all` stands for: faults that apply to a run, drawn by its seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

from lockcheck.errors import UserError
from lockcheck.nemesis.base import FaultKind, Kinds, Plan, Step
from lockcheck.nemesis.fitting import GAP_MS, objection
from lockcheck.nemesis.grammar import ALL, parse, sequence_words
from lockcheck.nemesis.parameters import WHEN
from lockcheck.nemesis.triggers import Trigger

WAITS_MS = 600  # for somebody to strike
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
    """As many as fit into the time, of all kinds in turn."""
    chosen: list[Step] = []
    left_ms = plan.time_limit_ms
    for step in _by_turns(kinds, plan, choices):
        takes_ms = GAP_MS[1] + WAITS_MS + (step.lasts_ms(plan) or 0)
        if takes_ms <= left_ms:
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


def applicable(kind: FaultKind, plan: Plan) -> Iterator[Step]:
    """With all its aims and variants: those that make sense in this run and on this machine."""
    for variant in kind.variants:
        words = [",".join(filter(None, (aim.name, variant))) for aim in kind.aims]
        steps = [parse(f"{kind.name}:{each}", {kind.name: kind})[0] for each in words]
        fitting = [s for s in steps if not objection(s, plan) and s.lasts_ms(plan) is not None]
        if fitting and not kind.lacks(fitting[0]):  # whoever it is aimed at
            yield from fitting


def with_a_trigger(step: Step, plan: Plan, choices: random.Random) -> Step:
    """With its usual trigger, or any other one that can occur."""
    triggers = (f"{step},{WHEN.name}={trigger}" for trigger in Trigger)
    kinds = {step.kind.name: step.kind}
    others = [parse(text, kinds)[0] for text in triggers if step.setting(WHEN.name) is None]
    able = [other for other in others if not objection(other, plan)]
    return step if not able or choices.random() < USUAL else choices.choice(able)
