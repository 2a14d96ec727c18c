"""What a fault is: something that strikes nodes, takes effect, is proven, and is healed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Protocol

import msgspec

from lockcheck.durations import DurationRange, longest_ms
from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis.parameters import FOR, GAP, GENERAL, WHEN, Parameter, ParameterValue
from lockcheck.nemesis.triggers import Trigger
from lockcheck.servers.kind import Kind

if TYPE_CHECKING:
    from lockcheck.nemesis.network.links import Link
    from lockcheck.nemesis.scene import Scene


class Fleet(Protocol):
    """Ends nodes and starts them again."""

    async def end(self, name: str) -> None:
        """SIGKILL to all its processes; returns when they are gone."""

    async def start(self, name: str, *, data: bool = True) -> None:
        """With the same name and address, in the same network; returns when it is ready."""

    async def ready(self, name: str) -> None:
        """Returns when one that runs serves, too; raises ClusterError where it does not in time."""

    async def leader(self) -> str | None:
        """The server that leads now."""


class DidNotLastError(FaultError):
    """The fault was over before it was healed: what was proven held no longer."""


class Strike(Protocol):
    """One fault against some nodes. Whatever it raises makes it unproven."""

    async def inject(self) -> int | None:
        """Returns when it has taken effect. If a node may have felt it sooner: the last moment, by
        the history's clock, at which none had."""

    async def prove(self) -> str:
        """What was seen of its effect, in a few words; raises FaultError if nothing was."""

    async def heal(self) -> None:
        """Undoes it, and checks that it is undone. Harmless when repeated or not needed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a fault is not possible, and what to ask for instead."""

    reason: str
    cure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a fault may ask of a run before it starts."""

    backend: str
    ttl_ms: int
    time_limit_ms: int
    clients: int
    servers: int
    stores: bool = False  # there is a storage, on a node of its own
    leads: bool = False  # one of its servers leads the others
    independent: bool = False  # its servers know nothing of each other
    seed: int = 0
    lapses_after: float = 1.0  # in TTLs: when the servers let go of what is not renewed
    kinds: tuple[Kind, ...] = ()  # of the lock's servers
    writes: bool = False  # clients write something under the lock
    patience_ttls: float = 0.0  # how long an acquire waits before it gives up
    keys: tuple[str, ...] = ()  # of all locks
    elsewhere: str = ""  # servers that are there already, in words: they are never struck
    faketime: bool = True  # servers whose clocks cannot be moved else run under libfaketime


@dataclass(frozen=True, slots=True)
class Aim:
    """What a fault strikes."""

    name: str
    meaning: str
    # The nodes to strike now: none while no node fits and is free.
    choose: Callable[[Scene, Random], Awaitable[tuple[str, ...]]]
    why_not: Callable[[Plan], Refusal | None] = lambda _plan: None
    at_holders: bool = False  # a holder is waited for, not chosen
    at_clients: bool = False  # at clients only
    also: str = ""  # a synonym

    def words(self) -> str:
        return f"{self.name} (or {self.also})" if self.also else self.name


class StepOrders(msgspec.Struct, frozen=True):
    """A step as data, for the pipe to the agent: nothing is parsed there."""

    fault: str
    aim: str
    given: tuple[tuple[str, ParameterValue], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One fault as it was asked for. Its text is canonical, and reads back as itself."""

    kind: FaultKind
    aim: Aim
    given: tuple[tuple[str, ParameterValue], ...] = ()  # in the order of the kind's parameters
    drawn_from: Step | None = None  # as it was asked for, if that has ranges

    @property
    def asked(self) -> str:
        return str(self.drawn_from or self)

    def drawn(self, choices: Random) -> Step:
        """For one strike: with a duration in the place of each range."""
        if not any(isinstance(value, DurationRange) for _, value in self.given):
            return self
        given = tuple(
            (name, value.drawn(choices) if isinstance(value, DurationRange) else value)
            for name, value in self.given
        )
        return replace(self, given=given, drawn_from=self)

    def __str__(self) -> str:
        known = {p.name: p for p in self.kind.all_parameters}
        words = [
            name if known[name].is_flag else f"{name}={known[name].write(value)}"
            for name, value in self.given
        ]
        return f"{self.kind.name}:{','.join((self.aim.name, *words))}"

    def orders(self) -> StepOrders:
        """Its aim has to be one of its kind's."""
        return StepOrders(self.kind.name, self.aim.name, self.given)

    def setting(self, name: str) -> ParameterValue | None:
        """What was given, or else the parameter's default."""
        defaults = {p.name: p.default for p in self.kind.all_parameters}
        return dict(self.given).get(name, defaults[name])

    def duration_ms(self, name: str) -> int | None:
        """Of a range the longest, by which all is planned."""
        value = self.setting(name)
        return longest_ms(value) if isinstance(value, int | DurationRange) else None

    @property
    def for_ms(self) -> int | None:
        return self.duration_ms(FOR.name)

    @property
    def gap_ms(self) -> int | None:
        return self.duration_ms(GAP.name)

    def trigger(self, plan: Plan) -> Trigger:
        given = self.setting(WHEN.name)
        return self.kind.when(self, plan) if given is None else Trigger(str(given))

    def lasts_ms(self, plan: Plan) -> int | None:
        """None: to the end of the run."""
        return self.for_ms or self.kind.lasts_ms(self, plan)


def outlasting_the_lease(_step: Step, plan: Plan) -> int:
    """Until the lease has run out, and another client has had time to get in and write."""
    return int(plan.ttl_ms * (plan.lapses_after + 0.5)) + 500


def hurting_most(step: Step, plan: Plan) -> Trigger:
    """A client that stops between checking its lease and writing cannot help writing late. Other
    faults do most harm to a holder that goes on working; servers have no such moment."""
    if not step.aim.at_holders:
        return Trigger.SCHEDULE
    at_write = step.kind.effect is Effect.STOPS and plan.writes
    return Trigger.WRITE if at_write else Trigger.ACQUIRE


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    name: str
    summary: str
    effect: Effect
    aims: tuple[Aim, ...]  # the first is the default
    strike: Callable[[Step, tuple[str, ...], Scene], Strike]  # at the nodes that were chosen
    # That it cuts.
    links: Callable[[Step, tuple[str, ...], Scene], tuple[Link, ...]] = lambda *_: ()
    parameters: tuple[Parameter, ...] = ()
    lasts_ms: Callable[[Step, Plan], int | None] = outlasting_the_lease
    when: Callable[[Step, Plan], Trigger] = hurting_most  # where nothing else is asked for
    why_not: Callable[[Step, Plan], Refusal | None] = lambda _step, _plan: None
    # What it needs and the host of the nodes lacks: asked there, before the clients start.
    lacks: Callable[[Step], Refusal | None] = lambda _step: None
    needs: str = ""  # of the machine
    variants: tuple[str, ...] = ("",)  # in which words `all` and the mixes draw it
    # Servers whose clocks cannot be moved otherwise have to run under libfaketime.
    wants_faketime: Callable[[Step], bool] = lambda _step: False

    @property
    def all_parameters(self) -> tuple[Parameter, ...]:
        return (*self.parameters, *GENERAL)


Kinds = Mapping[str, FaultKind]


async def each_of(steps: Iterable[Coroutine[None, None, None]]) -> None:
    """Runs them concurrently, each to its end, even if others fail: a step that went on after this
    has returned would undo what is done next, such as healing."""
    done = await asyncio.gather(*steps, return_exceptions=True)
    for error in done:
        if error is not None:
            raise error
