"""A simulated keeper: what renews a client's lease beside it, while the client thinks or writes.

Its renewals are operations of a process of its own; those that keep a session alive nobody records.
"""

from __future__ import annotations

from lockcheck.client.recorder import Recorder
from lockcheck.history import EventType
from lockcheck.history.event import NS_PER_MS
from tests.simulation.client import MOMENT_NS, Client, Held
from tests.simulation.locks.base import Acquired, Grant, Lock, Refused
from tests.simulation.plan import Plan
from tests.simulation.world import Steps, World


class Keeper:
    def __init__(
        self, plan: Plan, world: World, lock: Lock, client: Client, recorder: Recorder
    ) -> None:
        self._plan = plan
        self._world = world
        self._lock = lock
        self._client = client
        self._recorder = recorder

    def life(self) -> Steps[None]:
        end_ns = self._plan.until_ms * NS_PER_MS
        while self._world.now_ns < end_ns or self._client.kept is not None:
            yield self._plan.keeper_ms * NS_PER_MS
            held = self._client.kept
            if held is not None and held.grant is not None and not held.is_lost:
                yield from self._renew(held, held.grant)

    def _renew(self, held: Held, grant: Grant) -> Steps[None]:
        recorder, plan = self._recorder, self._plan
        if plan.session:
            self._renewed(held, (yield from self._lock.renew(grant)))
            return
        pending = recorder.keeper_renews(held.key, plan.ttl_ms, of=self._client.process)
        yield self._world.between(0, MOMENT_NS)
        result = yield from self._lock.renew(grant)
        if isinstance(result, Grant):
            valid_ms = self._client.valid_ms(self._client.valid_until_ns(result))
            recorder.answer(pending, EventType.OK, valid_ms=valid_ms)
        else:
            outcome = EventType.FAIL if isinstance(result, Refused) else EventType.INFO
            recorder.answer(pending, outcome, result.why or None)
        self._renewed(held, result)

    def _renewed(self, held: Held, result: Acquired) -> None:
        """A renewal that is answered when the validity is over extends nothing."""
        if isinstance(result, Refused):
            held.is_lost = True
        elif isinstance(result, Grant) and self._client.valid_ms(held.until_ns) > 0:
            held.until_ns = self._client.valid_until_ns(result)
