"""A worker: acquires a lock, uses what it protects, and releases it in time.

It logs before it sends and after it was answered. It may crash at any moment, and come back under
its name without any memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.history import F
from lockcheck.history.event import NS_PER_MS
from tests.production.day import AfterTimeout, Day, Renewing
from tests.production.log import Row
from tests.simulation.world import Ask, Call, Reply, Steps, World

LOCKS, DATA = "locks", "data"
MOMENT_NS = 300_000
REPEATED = 3  # times, without an answer
MARGIN_MS = 100  # of a lease: for what is under way when it is over


class CrashedError(Exception):
    """The process crashed; its last message may be under way."""


class LostError(Exception):
    """The worker was notified, or found out, that it no longer holds the lock."""


@dataclass(slots=True)
class Held:
    key: str
    secret: str  # of the lock: that of the first attempt
    level: str | None  # of this attempt, where it can be entered again
    asked_ns: int
    granted_ns: int
    until_ns: int | None  # None: it has no end
    token: int | None
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Belief:
    client: str
    key: str
    asked_ns: int
    since_ns: int
    until_ns: int
    let_go: bool  # of its own accord, by a release


class Worker:
    def __init__(self, name: str, day: Day, world: World, rows: list[Row], turns: int) -> None:
        self.name = name
        self._day, self._world, self._rows = day, world, rows
        self._turns = turns
        self._attempts = 0
        self.kept: Held | None = None
        self.done = False
        self.beliefs: list[Belief] = []

    def life(self) -> Steps[None]:
        while self._turns:
            self._turns -= 1
            yield self._between(1, 40)
            try:
                yield from self._turn(f"key-{self._world.between(1, self._day.keys)}")
            except CrashedError:
                self.kept = None
                yield self._between(50, 3 * max(self._day.ttl_ms, 100))
        self.done = True

    def _turn(self, key: str) -> Steps[None]:
        held = yield from self._acquire(key)
        if held is None:
            return
        self.kept = held
        try:
            yield from self._section(held)
        except LostError:
            self.kept = None
            self._believed(held, let_go=False)
            if self._day.notices:
                self._rows.append(Row(self.name, key, "lost", self._world.now_ns, outcome="ok"))
            return
        except CrashedError:
            self._believed(held, let_go=False)
            raise
        self.kept = None
        self._believed(held, let_go=True)
        yield from self._release(key, held.secret, held.level)

    def _believed(self, held: Held, *, let_go: bool) -> None:
        now_ns = self._world.now_ns
        self.beliefs.append(
            Belief(self.name, held.key, held.asked_ns, held.granted_ns, now_ns, let_go)
        )

    # --- the lock ----------------------------------------------------------------------------

    def _acquire(self, key: str, held: Held | None = None) -> Steps[Held | None]:
        """`held`: of one that enters again."""
        self._attempts += 1
        attempt = f"{self.name}:{self._attempts}"
        secret = attempt if held is None else held.secret
        level = attempt if self._day.levels > 1 else None
        again = self._day.after_timeout is AfterTimeout.AGAIN
        for _ in range(REPEATED if again else 1):
            began_ns = self._world.now_ns
            reply, row = yield from self._ask(F.ACQUIRE, key, secret, level=level)
            if reply is not None:
                break
        if reply is None and self._day.after_timeout is AfterTimeout.RELEASE:
            yield from self._release(key, secret, level)
        if reply is not None and not reply.ok and held is not None:
            raise LostError
        if reply is None or not reply.ok:
            return None
        row.token = reply.token
        until_ns = self._until_ns(began_ns)
        return Held(key, secret, level, began_ns, self._world.now_ns, until_ns, reply.token)

    def _until_ns(self, began_ns: int) -> int | None:
        ttl_ms = self._day.ttl_ms
        return began_ns + (ttl_ms - MARGIN_MS) * NS_PER_MS if ttl_ms else None

    def _release(self, key: str, secret: str, level: str | None) -> Steps[None]:
        for _ in range(REPEATED):
            reply, _ = yield from self._ask(F.RELEASE, key, secret, level=level)
            if reply is not None:
                return
            yield self._between(1, 20)

    def renew(self, held: Held, *, keeper: bool = False) -> Steps[None]:
        began_ns = self._world.now_ns
        reply, _ = yield from self._ask(F.RENEW, held.key, held.secret, keeper=keeper)
        if reply is None:
            return
        if not reply.ok:
            held.lost = True
        elif held.until_ns is not None and self._world.now_ns < held.until_ns:
            held.until_ns = max(held.until_ns, self._until_ns(began_ns) or 0)

    # --- what is done under it ---------------------------------------------------------------

    def _section(self, held: Held, level: int = 1) -> Steps[None]:
        long = self._world.random() < 0.1
        for _ in range(self._world.between(0, 8 if long else 2)):
            yield self._between(1, max(self._day.ttl_ms // 8, 3) if long else 8)
            self._look(held)
            if self._day.renewing is Renewing.CLIENT and self._world.random() < 0.5:
                yield from self.renew(held)
                self._look(held)
            if self._day.data:
                yield from self._update(held)
            if level < self._day.levels and self._world.random() < 0.3:
                yield from self._enter_again(held, level + 1)

    def _enter_again(self, held: Held, level: int) -> Steps[None]:
        inner = yield from self._acquire(held.key, held)
        if inner is not None:
            held.until_ns = inner.until_ns
            self._look(held)
            yield from self._section(held, level)
            yield from self._release(held.key, held.secret, inner.level)
        self._look(held)

    def _look(self, held: Held) -> None:
        over = held.until_ns is not None and self._world.now_ns >= held.until_ns
        if held.lost or over:
            raise LostError

    def _update(self, held: Held) -> Steps[None]:
        reply, row = yield from self._ask(F.READ, held.key, token=held.token)
        self._look(held)
        if reply is None or self._world.random() < 0.3:
            return
        base = row.result = reply.value
        row.seq = reply.seq
        value = str(int(base or "0") + 1)
        f = F.CAS if self._day.cas else F.WRITE
        reply, row = yield from self._ask(f, held.key, token=held.token, value=value, base=base)
        if reply is not None:
            row.seq = reply.seq
        self._look(held)

    # --- what is sent, and logged ------------------------------------------------------------

    def _ask(
        self,
        f: str,
        key: str,
        secret: str = "",
        *,
        token: int | None = None,
        value: str | None = None,
        base: str | None = None,
        level: str | None = None,
        keeper: bool = False,
    ) -> Steps[tuple[Reply | None, Row]]:
        day, world = self._day, self._world
        row = Row(self.name, key, f, world.now_ns, token=token, value=value, base=base)
        if f in (F.ACQUIRE, F.RENEW):
            row.ttl_ms = day.ttl_ms
        if keeper and day.renewing is Renewing.KEEPER:
            row.client, row.of = f"{self.name}-keeper", self.name
        self._rows.append(row)
        yield world.between(0, MOMENT_NS)
        sent = value if level is None else level
        ask = Ask(f, key, secret, day.ttl_ms, value=sent, base=base, owner=self.name)
        to = DATA if f in (F.READ, F.WRITE, F.CAS) else LOCKS
        crashes = not keeper and world.random() < day.crashes
        timeout_ns = world.between(1, NS_PER_MS) if crashes else day.timeout_ms * NS_PER_MS
        reply = yield Call(to, ask, timeout_ns)
        if crashes:
            raise CrashedError
        yield world.between(0, MOMENT_NS)
        self._answered(row, reply)
        return reply, row

    def _answered(self, row: Row, reply: Reply | None) -> None:
        now_ns = self._world.now_ns
        if reply is not None:
            row.end_ns, row.outcome = now_ns, "ok" if reply.ok else "fail"
            row.result = reply.value if row.op == F.READ else None
        elif self._day.ended:
            row.end_ns, row.outcome = now_ns, "info"

    def _between(self, least_ms: int, most_ms: int) -> int:
        return self._world.between(least_ms * NS_PER_MS, most_ms * NS_PER_MS)


class Keeper:
    """A thread of its worker, which ends with it."""

    def __init__(self, worker: Worker, day: Day) -> None:
        self._worker, self._day = worker, day

    def life(self) -> Steps[None]:
        while not self._worker.done:
            yield self._day.ttl_ms * NS_PER_MS // 5
            held = self._worker.kept
            if held is not None and not held.lost:
                yield from self._worker.renew(held, keeper=True)
