"""The lock service, and the storage that holds what its locks protect."""

from __future__ import annotations

from dataclasses import dataclass, field

from lockcheck.history import F
from lockcheck.history.event import NS_PER_MS
from tests.production.day import Day
from tests.simulation.locks.single import NOT_OWNER, LeaseServer
from tests.simulation.world import Ask, Reply, World

NO_END_NS = 1 << 60
WORTH_A_MISTAKE = 0.6  # of the lease that is left then


@dataclass(frozen=True, slots=True)
class Mistake:
    key: str
    holder: str
    intruder: str
    time_ns: int


class LockServer(LeaseServer):
    """Each grant has the secret of its attempt, or the name of its client; entering again takes
    that of the first one. A permit is a lock. After `errs_from_ns` it once grants a held lock."""

    def __init__(self, world: World, day: Day, errs_from_ns: int | None) -> None:
        super().__init__(world)
        self._day = day
        self._errs_from_ns = errs_from_ns
        self._clients: dict[str, str] = {}  # by the secret
        self._levels: dict[str, set[str | None]] = {}  # of its holder that are not released
        self._released: dict[str, tuple[str, str | None]] = {}  # by the key: the last one
        self.mistake: Mistake | None = None

    def handle(self, ask: Ask, wall_ns: int) -> Reply:
        self._clients[ask.secret] = ask.owner
        if self._day.by_name:
            ask = ask._replace(secret=ask.owner)
        return super().handle(ask._replace(key=self._permit(ask, wall_ns)), wall_ns)

    def _permit(self, ask: Ask, wall_ns: int) -> str:
        """Its own, or one that is free, or that which may be held for longest."""
        permits = {f"{ask.key}/{n}": 0 for n in range(self._day.permits)}
        for name in permits:
            lease = self.held(name, wall_ns)
            if lease is not None and lease.secret == ask.secret:
                return name
            permits[name] = NO_END_NS + 1 if lease is None else lease.until_ns
        return max(permits, key=permits.__getitem__)

    def acquire(self, ask: Ask, wall_ns: int) -> Reply:
        lease = self.held(ask.key, wall_ns)
        if lease is not None and lease.secret == ask.secret:
            lease.until_ns = self.end_of(ask, wall_ns)
            self._levels[ask.key].add(ask.value)
            same = (
                not self._day.by_name or self._day.levels > 1
            )  # otherwise it may be a client that comes back
            return Reply(ok=True, token=self.tokens[ask.key] if same else self.next_token(ask.key))
        if lease is not None and self._errs(ask, lease.secret, lease.until_ns - wall_ns, wall_ns):
            del self.leases[ask.key]
        reply = super().acquire(ask, wall_ns)
        if reply.ok:
            self._levels[ask.key] = {ask.value}
        return reply

    def _errs(self, ask: Ask, secret: str, left_ns: int, wall_ns: int) -> bool:
        holder = self._clients.get(secret, secret)
        if self._errs_from_ns is None or self.mistake is not None or holder == ask.owner:
            return False
        if wall_ns < self._errs_from_ns or left_ns < WORTH_A_MISTAKE * ask.ttl_ms * NS_PER_MS:
            return False
        self.mistake = Mistake(ask.key.rpartition("/")[0], holder, ask.owner, self.world.now_ns)
        return True

    def release(self, ask: Ask, wall_ns: int) -> Reply:
        lease, levels = self.held(ask.key, wall_ns), self._levels.get(ask.key, set())
        done = ask.secret, ask.value
        own = lease is not None and lease.secret == ask.secret and ask.value in levels
        if own:
            levels.remove(ask.value)
            self._released[ask.key] = done
            if not levels:
                del self.leases[ask.key]
        again = self._day.remembers and self._released.get(ask.key) == done
        return Reply(ok=True) if own or again else Reply(ok=False, why=NOT_OWNER)

    def end_of(self, ask: Ask, wall_ns: int) -> int:
        return super().end_of(ask, wall_ns) if ask.ttl_ms else NO_END_NS


@dataclass(slots=True)
class Data:
    values: dict[str, str] = field(default_factory=dict)
    served: int = 0

    def handle(self, ask: Ask, wall_ns: int) -> Reply:
        self.served += 1
        there = self.values.get(ask.key)
        if ask.f == F.CAS and ask.base != there:
            return Reply(ok=False, why="changed", seq=self.served)
        if ask.f != F.READ and ask.value is not None:
            self.values[ask.key] = ask.value
        return Reply(ok=True, value=there, seq=self.served)

    def forget(self) -> None:
        raise NotImplementedError
