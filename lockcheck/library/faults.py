"""Faults that last as long as a `with` block: proven when it begins, healed when it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count

import msgspec
from msgspec import structs

from lockcheck.agent.link import AgentLink
from lockcheck.agent.orders import StrikeOrders, Struck
from lockcheck.errors import ClusterError, FaultError, UserError
from lockcheck.history import Event, EventType, Notice
from lockcheck.history.event import NEMESIS
from lockcheck.library.given import check_text
from lockcheck.library.log import Log
from lockcheck.nemesis import FAULTS, Plan, parse_nemesis
from lockcheck.nemesis.aims import at_nodes
from lockcheck.nemesis.base import Step
from lockcheck.nemesis.fitting import not_ours
from lockcheck.nemesis.parameters import GENERAL

# Beyond what a strike, and all tries to heal it, may take in the agent.
LONGEST_S = 300.0


class Faults:
    """`faults.pause("c1")`, `faults.partition("leader", one_way="in")`: a fault by its name, with
    the nodes that it strikes, or one of its aims, and its parameters: `lockcheck list faults`."""

    def __init__(
        self, link: AgentLink, log: Log, plan: Plan, nodes: Sequence[str], clients: Sequence[str]
    ) -> None:
        self._link = link
        self._log = log
        self._plan = plan
        self._nodes = nodes
        self._clients = clients
        self._numbers = count(1)

    def __getattr__(self, name: str) -> Callable[..., Fault]:
        kind = _dashed(name)
        if kind not in FAULTS:
            raise AttributeError(f"unknown fault {kind!r}: choose from {', '.join(FAULTS)}")

        def fault(*whom: str, **settings: object) -> Fault:
            known = [word for aim in FAULTS[kind].aims for word in (aim.name, aim.also)]
            aims = [who for who in whom if who in known]
            words = aims + [word for pair in settings.items() for word in _written(*pair)]
            text = f"{kind}:{','.join(words)}" if words else kind
            return self.of(text, *(who for who in whom if who not in aims))

        return fault

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name.replace("-", "_") for name in FAULTS)]

    def of(self, text: str, *nodes: str) -> Fault:
        """A fault as for `--nemesis`, at the named nodes if there are any."""
        check_text(text, "a fault")
        sequence = parse_nemesis(text)
        if len(sequence) != 1:
            raise UserError(
                f"{text!r} is not one fault", cure="use one fault per with block, and nest them"
            )
        step = self._at(sequence[0], nodes)
        refusal = not_ours(step, self._plan) or (
            step.aim.why_not(self._plan) or step.kind.why_not(step, self._plan)
        )
        if refusal:
            raise UserError(f"{text} is not possible: {refusal.reason}", cure=refusal.cure)
        orders = StrikeOrders(0, sequence[0].orders(), nodes)
        return Fault(self._link, self._log, step, orders, self._numbers)

    def _at(self, step: Step, nodes: tuple[str, ...]) -> Step:
        if given := [p.name for p in GENERAL if step.setting(p.name) is not None]:
            raise UserError(
                f"{given[0]}= has no meaning here: the fault lasts as long as the with block",
                cure="leave it out",
            )
        if lists := [each for each in nodes if not isinstance(each, str)]:
            raise UserError(
                f"a node is given by its name, and {lists[0]!r} is none",
                cure=f"several nodes one by one: {step.kind.name}(*cluster.clients)",
            )
        if unknown := [name for name in nodes if name not in self._nodes]:
            raise UserError(
                f"unknown node {unknown[0]!r}", cure=f"choose from: {', '.join(self._nodes)}"
            )
        if nodes:
            return at_nodes(step, nodes, at_clients={*nodes} <= {*self._clients})
        if step.aim.at_holders:
            raise UserError(
                f"{step}: it is not known here who holds the lock", cure="name the node that does"
            )
        return step


def _dashed(name: str) -> str:
    """`one_way` for `one-way`, and `from_` for `from`, which is a keyword of Python."""
    return name.rstrip("_").replace("_", "-")


def _written(name: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return [_dashed(name)] if value else []
    return [f"{_dashed(name)}={value}"]


class Fault:
    """`nodes` and `proof` are set within the `with` block.

    Its times in the log are of this process's clock, as all others: it began no later and was
    healed no earlier than they say, so that no client or service is blamed for its effects.
    """

    def __init__(
        self, link: AgentLink, log: Log, step: Step, orders: StrikeOrders, numbers: Iterator[int]
    ) -> None:
        self._link = link
        self._log = log
        self._step = step
        self._orders = orders
        self._numbers = numbers
        self._entered = threading.Lock()
        self.nodes = orders.nodes
        self.proof = ""

    def __str__(self) -> str:
        return str(self._step)

    def __enter__(self) -> Fault:
        """Injects the fault and proves it; raises FaultError, after healing, if it cannot."""
        if not self._entered.acquire(blocking=False):
            raise UserError(f"{self} is under way already", cure="make another one for this block")
        try:
            return self._strike()
        except BaseException:
            self._entered.release()
            raise

    def _strike(self) -> Fault:
        began_ns = time.monotonic_ns()
        self._orders = structs.replace(self._orders, number=next(self._numbers))
        try:
            reply = self._ask("strike", self._orders)
        except ClusterError as error:
            raise FaultError(error.message, cure=error.cure) from error
        except BaseException:  # Ctrl-C: at any stage
            self._ask("heal", self._orders.number)
            raise
        struck = msgspec.convert(reply, Struck)
        self.nodes, self.proof = struck.begun.struck, str(struck.proven.value)
        self._log.note(struck.begun, began_ns)
        self._log.note(struck.proven)
        return self

    def __exit__(self, *_: object) -> None:
        """Heals the fault; raises FaultError if it was not healed, or was over too early."""
        self._note_heal(EventType.INVOKE)
        try:
            self._ask("heal", self._orders.number)
        except ClusterError as failed:
            self._note_heal(EventType.INFO, failed.message)
            raise FaultError(failed.message, cure=failed.cure) from failed
        finally:
            self._entered.release()
        self._note_heal(EventType.OK)

    def _ask(self, do: str, body: object) -> object:
        return self._link.ask(do, body, timeout_s=LONGEST_S)

    def _note_heal(self, kind: EventType, error: str | None = None) -> None:
        number, now_ns = self._orders.number, time.monotonic_ns()
        healed = Event(now_ns, NEMESIS, kind, Notice.HEAL, error=error, fault=number)
        self._log.add(structs.replace(healed, nodes=self.nodes or None))
