"""The faults, by name, and what `--nemesis` takes: `grammar.py` says how it is written."""

from __future__ import annotations

from collections.abc import Iterable

from lockcheck.nemesis import drawing, fitting, grammar
from lockcheck.nemesis.base import FaultKind, Plan, Refusal, Step
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


def asked_for(texts: Iterable[str]) -> tuple[str, ...]:
    """Each single fault, as the history names it: every one of them has to be proven."""
    return tuple(map(str, _steps(texts)))


def at_holders(texts: Iterable[str]) -> tuple[str, ...]:
    """Those of `asked_for` that are aimed at the holder of the lock."""
    return tuple(str(step) for step in _steps(texts) if step.aim.at_holders)


def longest_ms(texts: Iterable[str], plan: Plan) -> int:
    """How long a fault may still last that is under way when the time is over."""
    return fitting.longest_ms(map(parse_nemesis, texts), plan)


def wants_faketime(texts: Iterable[str]) -> bool:
    """Whether servers whose clocks cannot be moved otherwise have to run under libfaketime."""
    return any(step.kind.wants_faketime(step) for step in _steps(texts))


def check_nemesis(texts: Iterable[str], plan: Plan) -> None:
    """Raises a UserError, with the cure, if a fault is misspelt, impossible, or does not fit."""
    fitting.check_fit(map(parse_nemesis, texts), plan)


def check_nemesis_here(texts: Iterable[str]) -> None:
    """Where the nodes are: raises a UserError, with the cure, if the machine lacks something."""
    fitting.check_machine(map(parse_nemesis, texts))


def drawn(texts: Iterable[str], plan: Plan, seed: int) -> tuple[str, ...]:
    """With what `all` stands for in this run."""
    return drawing.draw(texts, FAULTS, plan, seed)


def _steps(texts: Iterable[str]) -> list[Step]:
    return fitting.steps_of(map(parse_nemesis, texts))


__all__ = [
    "ALL",
    "FAULTS",
    "NO_FAULT",
    "FaultKind",
    "Plan",
    "Refusal",
    "Sequence",
    "Step",
    "asked_for",
    "at_holders",
    "check_nemesis",
    "check_nemesis_here",
    "drawn",
    "longest_ms",
    "nemesis_choices",
    "parse_nemesis",
    "wants_faketime",
]
