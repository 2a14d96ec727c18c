"""A simulated client: takes the lock, reads, thinks, writes, releases, as the real worker does.

Between any two of its steps some time goes by, so that a pause can strike in between: after the
look at the clock and before the write, after the line in the history and before the message.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from lockcheck.client.recorder import Recorder
from lockcheck.errors import InternalError
from lockcheck.history import Event, EventType, F
from lockcheck.history.event import NS_PER_MS
from tests.simulation.locks.base import Acquired, Caller, Done, Grant, LockKind, Refused, Unsure
from tests.simulation.locks.company import CompanyLock
from tests.simulation.plan import Nesting, Plan
from tests.simulation.world import PPM, Ask, Call, Reply, Steps, World

STORAGE_NODE = "s1"
MOMENT_NS = 400_000  # the longest step of a client that does nothing
PRECISION_NS = NS_PER_MS  # of what it knows of its lease
READERS = 0.6  # of the turns, where the lock can be shared
DEEPER = 0.7  # how often it is entered once more, where it can be


class SectionOver(Exception):
    """The critical section cannot go on."""


@dataclass(slots=True)
class Held:
    grant: Grant | None  # None: it goes on although it was refused
    key: str
    until_ns: int  # by the client's own clock: when it has to stop, if it looks at all
    is_lost: bool = False  # its keeper was told so
    shared: bool = False

    @property
    def token(self) -> int | None:
        return None if self.grant is None else self.grant.token


class Client:
    def __init__(
        self,
        plan: Plan,
        world: World,
        kind: LockKind,
        caller: Caller,
        recorder: Recorder,
    ) -> None:
        self._plan = plan
        self._world = world
        self._kind = kind
        self._lock = kind.connect(caller)
        self._caller = caller
        self._recorder = recorder
        self._reckless = kind.goes_on_when_refused
        self._marks = 0
        self.kept: Held | None = None  # what its keeper renews
        # Both clocks, ours and the server's, may be off, and in opposite directions.
        drift_ns = caller.ttl_ns * 2 * plan.drift_ppm // PPM
        self._lease_ns = caller.ttl_ns - drift_ns - PRECISION_NS

    @property
    def process(self) -> int:
        return self._recorder.process

    def life(self) -> Steps[None]:
        end_ns = self._plan.until_ms * NS_PER_MS
        yield self._between(self._plan.rest_ms)
        while self._world.now_ns < end_ns:
            keys = self._choose_keys()
            held = yield from self._try_acquire(keys[0], shared=self._is_reader())
            if held is not None:
                yield from self._hold(held, keys[1:])
            yield self._between(self._plan.rest_ms)

    def _is_reader(self) -> bool:
        return self._kind.shared and self._world.random() < READERS

    def _choose_keys(self) -> list[str]:
        """One, or two different ones: the first to be taken first."""
        keys = self._plan.keys
        first = self._world.between(1, keys)
        if self._plan.nesting is Nesting.NONE or keys < 2:
            return [f"k{first}"]
        both = [first, (first + self._world.between(0, keys - 2)) % keys + 1]
        return [f"k{n}" for n in (sorted(both) if self._plan.nesting is Nesting.ORDERED else both)]

    def _hold(self, held: Held, more: list[str]) -> Steps[None]:
        process = self._recorder.process
        self.kept = held
        with suppress(SectionOver):  # the history says why
            if more:
                yield from self._hold_another(more[0])
            yield from self._section_on(held, level=1)
        self.kept = None
        if held.grant is not None and self._recorder.process == process:
            yield self._moment()
            yield from self._release(held.grant)

    def _hold_another(self, key: str) -> Steps[None]:
        """For a while, within the first: or not at all, if it is not to be had."""
        process = self._recorder.process
        inner = yield from self._try_acquire(key)
        if self._recorder.process != process:
            raise SectionOver
        if inner is not None and inner.grant is not None:
            yield self._between(self._plan.think_ms)
            yield from self._release(inner.grant)
        if self._recorder.process != process:
            raise SectionOver

    def _section_on(self, held: Held, level: int) -> Steps[None]:
        """On each level something may be done, and whoever holds it again does it again."""
        if level < self._kind.levels and self._world.random() < DEEPER:
            yield self._between(self._plan.think_ms)
            yield from self._hold_again(held, level + 1)
        if held.shared:
            yield from self._read(held)
            yield from self._think(held)
        elif self._kind.permits > 1:  # what it protects is no register
            yield from self._think(held)
        else:
            yield from self._section(held)

    def _hold_again(self, held: Held, level: int) -> Steps[None]:
        process = self._recorder.process
        again = yield from self._try_acquire(held.key)
        left = again is not None and again.grant is not None
        if again is not None and again.grant is not None:
            try:
                yield from self._section_on(again, level)
            except SectionOver:
                left = False
            if self._recorder.process == process:
                left &= yield from self._release(again.grant)
        if not left:
            if self._recorder.process == process:
                self._recorder.lost(held.key, "it could not enter, or leave, once more")
            raise SectionOver

    def _section(self, held: Held) -> Steps[None]:
        base = yield from self._read(held)
        yield from self._think(held)
        mark = self._mark(base)
        yield from self._serve(held, F.WRITE, mark, base)
        if self._plan.jobs:
            yield from self._run(held.key, mark)

    # --- the lock ----------------------------------------------------------------------------

    def _try_acquire(self, key: str, *, shared: bool = False) -> Steps[Held | None]:
        lock = self._lock
        pending = self._recorder.invoke(F.ACQUIRE, key, ttl_ms=self._plan.ttl_ms, shared=shared)
        yield self._moment()
        attempt = lock.acquire(key)
        if shared and isinstance(lock, CompanyLock):
            attempt = lock.acquire_shared(key)
        held = yield from self._granted(pending, attempt)
        if held is None and self._reckless:
            return Held(None, key, 0)
        return held

    def _granted(self, pending: Event, attempt: Steps[Acquired]) -> Steps[Held | None]:
        """What became of an attempt to acquire or to renew, written down."""
        result = yield from attempt
        if isinstance(result, Refused | Unsure):
            self._recorder.answer(pending, _outcome(result), result.why or None)
            return None
        until_ns = self.valid_until_ns(result)
        token = result.token if pending.f == F.ACQUIRE else None
        valid_ms = self.valid_ms(until_ns)
        self._recorder.answer(pending, EventType.OK, token=token, valid_ms=valid_ms)
        return Held(result, result.key, until_ns, shared=pending.shared)

    def valid_until_ns(self, grant: Grant) -> int:
        return grant.since_ns + self._lease_ns

    def valid_ms(self, until_ns: int) -> float:
        return round((until_ns - self._caller.clock_ns()) / NS_PER_MS, 3)

    def _renew(self, held: Held, grant: Grant) -> Steps[None]:
        self._stop_if_over(held)
        pending = self._recorder.invoke(F.RENEW, held.key, ttl_ms=self._plan.ttl_ms)
        yield self._moment()
        renewed = yield from self._granted(pending, self._lock.renew(grant))
        if renewed is None:
            self._give_up(pending, held.key)
        else:
            self._stop_if_over(held)  # a renewal that is answered too late extends nothing
            held.until_ns = renewed.until_ns

    def _give_up(self, pending: Event, key: str) -> None:
        if pending.process == self._recorder.process:
            self._recorder.lost(key, "it could not be renewed")
        raise SectionOver

    def _release(self, grant: Grant) -> Steps[bool]:
        """Whether it was confirmed."""
        pending = self._recorder.invoke(F.RELEASE, grant.key)
        yield self._moment()
        result = yield from self._lock.release(grant)
        if isinstance(result, Done):
            value = {"removed": result.removed}
            self._recorder.answer(pending, EventType.OK, value=value, blind=result.blind)
        else:
            self._recorder.answer(pending, _outcome(result), result.why or None)
        return isinstance(result, Done)

    def _stop_if_over(self, held: Held, reserve_ms: int = 0) -> None:
        if held.is_lost:
            if self._plan.session:  # else its renewal said so
                self._recorder.lost(held.key, "its session is over")
            raise SectionOver
        if not self._plan.check_validity or held.grant is None:
            return
        if self._caller.clock_ns() + reserve_ms * NS_PER_MS >= held.until_ns:
            self._recorder.lost(held.key, "its own clock says that the lease has run out")
            raise SectionOver

    # --- what it protects --------------------------------------------------------------------

    def _read(self, held: Held) -> Steps[str | None]:
        reply = yield from self._serve(held, F.READ, None, None)
        return reply.value

    def _serve(self, held: Held, f: str, value: str | None, base: str | None) -> Steps[Reply]:
        recorder = self._recorder
        self._stop_if_over(held, self._plan.reserve_ms)
        yield self._moment()
        pending = recorder.invoke(f, held.key, value=value, base=base, token=held.token)
        yield self._moment()
        ask = Ask(
            f,
            held.key,
            process=recorder.process,
            token=held.token,
            value=value,
            base=base,
            shared=held.shared,
        )
        reply = yield Call(STORAGE_NODE, ask, None)
        if reply is None:
            raise InternalError("the storage did not answer")
        outcome = EventType.OK if reply.ok else EventType.FAIL
        recorder.answer(pending, outcome, reply.why or None, value=reply.value, seq=reply.seq)
        if not reply.ok:
            recorder.lost(held.key, "the storage refused it")
            raise SectionOver
        return reply

    def _mark(self, base: str | None) -> str:
        """The number of the job that it claims, and a mark that nobody else writes."""
        self._marks += 1
        number = 1 if base is None else int(base.partition("/")[0]) + 1
        return f"{number}/{self._caller.node.name}-{self._marks}"

    def _run(self, key: str, mark: str) -> Steps[None]:
        """Only once its claim was stored: no lock could keep it from running twice otherwise."""
        pending = self._recorder.invoke(F.RUN, key, value=mark.partition("/")[0])
        yield self._moment()
        self._recorder.answer(pending, EventType.OK, value=pending.value)

    # --- time --------------------------------------------------------------------------------

    def _think(self, held: Held) -> Steps[None]:
        yield self._between(self._plan.think_ms)
        if self._plan.renews and held.grant is not None:
            yield from self._renew(held, held.grant)
        yield self._between(self._plan.think_ms)

    def _between(self, ms: tuple[int, int]) -> int:
        return self._world.between(ms[0] * NS_PER_MS, ms[1] * NS_PER_MS)

    def _moment(self) -> int:
        return self._world.between(0, MOMENT_NS)


def _outcome(result: Refused | Unsure) -> EventType:
    return EventType.FAIL if isinstance(result, Refused) else EventType.INFO
