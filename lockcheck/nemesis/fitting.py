"""Whether the faults that were asked for make sense in a run: checked before it starts."""

from __future__ import annotations

from collections.abc import Iterable

from lockcheck.durations import duration_words
from lockcheck.errors import UserError
from lockcheck.nemesis.base import Plan, Refusal, Step
from lockcheck.nemesis.grammar import Sequence, sequence_words
from lockcheck.nemesis.parameters import FOR, WHEN
from lockcheck.nemesis.triggers import Trigger

# Between two faults: time for the lock to change hands a few times undisturbed.
GAP_MS = (300, 900)


def check_fit(sequences: Iterable[Sequence], plan: Plan) -> None:
    """Raises a UserError with the cure."""
    for sequence in sequences:
        for step in sequence:
            _refuse(str(step), objection(step, plan))
        _refuse(sequence_words(sequence), _too_long(sequence, plan))


def check_machine(sequences: Iterable[Sequence]) -> None:
    for step in steps_of(sequences):
        _refuse(str(step), step.kind.lacks(step))


def objection(step: Step, plan: Plan) -> Refusal | None:
    """Why it makes no sense in this run."""
    return not_ours(step, plan) or (
        step.aim.why_not(plan) or _never_comes(step, plan) or step.kind.why_not(step, plan)
    )


def not_ours(step: Step, plan: Plan) -> Refusal | None:
    """Servers that are there already serve others, too."""
    if not plan.elsewhere or step.aim.at_clients:
        return None
    aims = [f"{step.kind.name}:{aim.name}" for aim in step.kind.aims if aim.at_clients]
    return Refusal(
        f"{plan.elsewhere} is not lockcheck's, so faults strike clients only",
        f"{' or '.join(aims) or 'a fault of a client, as pause:holder'}; or leave the addresses "
        "out of --servers, and lockcheck starts its own",
    )


def _refuse(asked: str, refusal: Refusal | None) -> None:
    if refusal is not None:
        raise UserError(f"--nemesis {asked} is not possible: {refusal.reason}", cure=refusal.cure)


def _never_comes(step: Step, plan: Plan) -> Refusal | None:
    trigger = step.trigger(plan)
    if step.aim.at_holders and trigger is Trigger.SCHEDULE:
        return Refusal(
            "a schedule does not know who holds the lock", f"{WHEN.name}={Trigger.ACQUIRE}"
        )
    if trigger is Trigger.WRITE and not plan.writes:
        return Refusal("clients write nothing in this run", f"{WHEN.name}={Trigger.ACQUIRE}")
    return None


def _too_long(sequence: Sequence, plan: Plan) -> Refusal | None:
    needs_ms = sum(shortest_gap_ms(step) + (step.lasts_ms(plan) or 0) for step in sequence)
    if needs_ms <= plan.time_limit_ms:
        return None
    return Refusal(
        f"it takes {duration_words(needs_ms)} with the pause before it, and the run ends after"
        f" {duration_words(plan.time_limit_ms)}",
        f"--time-limit {-(-needs_ms * 2 // 1000)}s, a shorter --ttl, or a shorter {FOR.name}=",
    )


def shortest_gap_ms(step: Step) -> int:
    return GAP_MS[0] if step.gap_ms is None else step.gap_ms


def steps_of(sequences: Iterable[Sequence]) -> list[Step]:
    return [step for sequence in sequences for step in sequence]


def longest_ms(sequences: Iterable[Sequence], plan: Plan) -> int:
    """How long a fault may still last that is under way when the time is over."""
    return max((step.lasts_ms(plan) or 0 for step in steps_of(sequences)), default=0)
