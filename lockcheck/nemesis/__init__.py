"""The faults, by name: what `--nemesis` takes, with an optional `:TARGET`."""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.errors import UserError
from lockcheck.nemesis import pause
from lockcheck.nemesis.base import FaultKind, Target

FAULTS: dict[str, FaultKind] = {kind.name: kind for kind in (pause.KIND,)}
NO_FAULT = "none"


@dataclass(frozen=True, slots=True)
class NemesisSpec:
    fault: str
    target: Target

    def __str__(self) -> str:
        return f"{self.fault}:{self.target}"


def nemesis_choices() -> list[str]:
    """Everything that `parse_nemesis` takes, the short forms first."""
    aimed = [f"{kind.name}:{target}" for kind in FAULTS.values() for target in kind.targets]
    return [NO_FAULT, *FAULTS, *aimed]


def parse_nemesis(text: str) -> NemesisSpec | None:
    """`pause` or `pause:server`; None for `none`, the control run."""
    if text == NO_FAULT:
        return None
    name, colon, target = text.partition(":")
    kind = FAULTS.get(name)
    if kind is None or (colon and target not in kind.targets):
        raise UserError(
            f"there is no nemesis {text!r}", cure=f"choose from: {', '.join(nemesis_choices())}"
        )
    return NemesisSpec(name, Target(target) if target else kind.targets[0])


__all__ = ["FAULTS", "FaultKind", "NemesisSpec", "Target", "nemesis_choices", "parse_nemesis"]
