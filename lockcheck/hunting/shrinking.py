"""The smallest configuration of a run that still breaks: a search by real runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec import structs

from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.nemesis import NO_FAULT
from lockcheck.run.resolve import resolve

SHORTEST_MS = 1_000
FEWEST_CLIENTS = 2
THEN = " then "

Breaks = Callable[[RunConfig], bool]


@dataclass
class Shrinking:
    """`smallest` is the smallest configuration so far that broke."""

    smallest: RunConfig
    breaks: Breaks
    _tried: set[RunConfig] = field(default_factory=set)

    def shrink(self) -> None:
        """Until nothing that is one step smaller breaks."""
        before = None
        while before != self.smallest:
            before = self.smallest
            for smaller in (shorter, without_a_fault, with_fewer_keys, with_fewer_clients):
                while (found := self._first(smaller)) is not None:
                    self.smallest = found

    def _first(self, smaller: Callable[[RunConfig], Iterator[RunConfig]]) -> RunConfig | None:
        for config in smaller(self.smallest):
            if config not in self._tried and fits(config):
                self._tried.add(config)
                if self.breaks(config):
                    return config
        return None


def fits(config: RunConfig) -> bool:
    """Whether such a run makes sense: each of its faults needs its time, for example."""
    try:
        resolve(config)
    except UserError:
        return False
    return True


def shorter(config: RunConfig) -> Iterator[RunConfig]:
    """One second, two, four ...: to find the exact length takes longer than it saves."""
    length_ms = SHORTEST_MS
    while length_ms < config.time_limit_ms:
        yield structs.replace(config, time_limit_ms=length_ms)
        length_ms *= 2


def without_a_fault(config: RunConfig) -> Iterator[RunConfig]:
    """Without all of them; without each sequence; without each of its steps."""
    if config.nemesis != (NO_FAULT,):
        yield structs.replace(config, nemesis=(NO_FAULT,))
    for at, text in enumerate(config.nemesis):
        before, after = config.nemesis[:at], config.nemesis[at + 1 :]
        if before or after:
            yield structs.replace(config, nemesis=(*before, *after))
        steps = text.split(THEN)
        for step in range(len(steps)) if len(steps) > 1 else ():
            fewer = THEN.join(steps[:step] + steps[step + 1 :])
            yield structs.replace(config, nemesis=(*before, fewer, *after))


def with_fewer_keys(config: RunConfig) -> Iterator[RunConfig]:
    for number in _below(1, config.keys):
        yield structs.replace(config, keys=number)


def with_fewer_clients(config: RunConfig) -> Iterator[RunConfig]:
    for number in _below(FEWEST_CLIENTS, config.clients):
        yield structs.replace(config, clients=number)


def _below(least: int, present: int) -> Iterator[int]:
    """The least, then twice as many each time; from the last of these half the way, and so on."""
    number = least
    while 2 * number < present:
        yield number
        number *= 2
    while number < present:
        yield number
        number += max(1, (present - number) // 2)
