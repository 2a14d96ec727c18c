"""The faults, by name, and what `--nemesis` takes: `grammar.py` says how it is written."""

from __future__ import annotations

from collections.abc import Iterable

from lockcheck.nemesis import drawing, grammar
from lockcheck.nemesis.base import FaultKind, Plan, Refusal, Step, StepOrders
from lockcheck.nemesis.grammar import ALL, NO_FAULT, Sequence
from lockcheck.plugins import Registry

FAULTS = Registry(
    "lockcheck.faults",
    FaultKind,
    f"{__name__}.faults",
    {
        "pause": "pause:KIND",
        "partition": "partition:KIND",
        "swizzle": "swizzle:KIND",
        "slow": "slow:KIND",
        "kill": "kill:KIND",
        "failover": "failover:KIND",
        "clock": "clock:KIND",
        "disk": "disk:KIND",
    },
)


def parse_nemesis(text: str) -> Sequence:
    """`pause`, `partition:holder,for=3s then kill:leader`; () for `none`, the control run."""
    return grammar.parse(text, FAULTS)


def nemesis_choices() -> list[str]:
    """The plain forms of all that `parse_nemesis` takes, the short ones first."""
    return grammar.choices(FAULTS)


def step_of(orders: StepOrders) -> Step:
    """The reverse of `Step.orders`."""
    kind = FAULTS[orders.fault]
    aim = next(aim for aim in kind.aims if aim.name == orders.aim)
    return Step(kind, aim, orders.given)


def draw(texts: Iterable[str], plan: Plan) -> tuple[str, ...]:
    """The texts, with each `all` replaced by faults that this run and this host allow."""
    return drawing.draw(texts, FAULTS, plan)


__all__ = [
    "ALL",
    "FAULTS",
    "NO_FAULT",
    "FaultKind",
    "Plan",
    "Refusal",
    "Sequence",
    "Step",
    "draw",
    "nemesis_choices",
    "parse_nemesis",
    "step_of",
]
