"""One server with leases and a queue: first come, first served.

Who waits asks again and again, and that keeps its place; who has not been heard of for a while
loses it, and is told so. The lease begins with the question that is answered with a grant.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from lockcheck.history.event import NS_PER_MS
from tests.simulation.locks.base import Acquired, Grant, LockKind, Refused, Unsure
from tests.simulation.locks.single import NO_ANSWER, FencedLock, Lease, LeaseServer
from tests.simulation.world import Ask, Call, Reply, Steps, World

STAND, POLL, LEAVE = "stand", "poll", "leave"
POLL_NS = 4 * NS_PER_MS
POLL_TIMEOUT_NS = 8 * NS_PER_MS
FORGOTTEN_NS = 60 * NS_PER_MS  # without a sign of life
NO_PLACE = "no place in the queue"


@dataclass(slots=True)
class Place:
    secret: str
    heard_ns: int


class QueueServer(LeaseServer):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.queues: dict[str, list[Place]] = {}

    def handle(self, ask: Ask, wall_ns: int) -> Reply:
        if ask.f in (STAND, POLL):
            return self._stand(ask, wall_ns)
        if ask.f == LEAVE:
            return self._leave(ask, wall_ns)
        return super().handle(ask, wall_ns)

    def _stand(self, ask: Ask, wall_ns: int) -> Reply:
        lease = self.held(ask.key, wall_ns)
        if lease is not None and lease.secret == ask.secret:  # its grant was not heard
            lease.until_ns = self.end_of(ask, wall_ns)
            return Reply(ok=True, token=self.tokens[ask.key])
        queue = self._living(ask, wall_ns)
        mine = next((place for place in queue if place.secret == ask.secret), None)
        if mine is None:
            if ask.f == POLL:
                return Reply(ok=False, why=NO_PLACE)
            mine = Place(ask.secret, wall_ns)
            queue.append(mine)
        mine.heard_ns = wall_ns
        if lease is not None or self.next_of(queue) is not mine:
            return Reply(ok=False, why="queued")
        queue.remove(mine)
        self.leases[ask.key] = Lease(ask.secret, self.end_of(ask, wall_ns))
        return Reply(ok=True, token=self.next_token(ask.key))

    def _living(self, ask: Ask, wall_ns: int) -> list[Place]:
        queue = self.queues.get(ask.key, [])
        living = [place for place in queue if wall_ns - place.heard_ns <= FORGOTTEN_NS]
        self.queues[ask.key] = living
        return living

    def next_of(self, queue: list[Place]) -> Place:
        return queue[0]

    def _leave(self, ask: Ask, wall_ns: int) -> Reply:
        queue = self._living(ask, wall_ns)
        self.queues[ask.key] = [place for place in queue if place.secret != ask.secret]
        self.release(ask, wall_ns)  # it may have been granted without hearing of it
        return Reply(ok=True)

    def forget(self) -> None:
        super().forget()
        self.queues.clear()


class QueueLock(FencedLock):
    patience = 1.0  # how many leases it waits at most

    def acquire(self, key: str) -> Steps[Acquired]:
        caller = self._caller
        began_ns, secret, f = caller.clock_ns(), caller.secret(), STAND
        while True:
            since_ns = caller.clock_ns()
            reply = yield self._ask(f, key, secret)
            if reply is not None and reply.ok:
                return Grant(key, secret, since_ns, reply.token)
            if reply is not None and reply.why == NO_PLACE:
                return Refused(reply.why)
            if f == STAND and reply is None:
                return Unsure(NO_ANSWER)
            if f == STAND:
                caller.queued(key)
                f = POLL
            if caller.clock_ns() - began_ns > self.patience * caller.ttl_ns:
                return (yield from self._leave(key, secret))
            yield POLL_NS

    def _leave(self, key: str, secret: str) -> Steps[Acquired]:
        reply = yield self._ask(LEAVE, key, secret)
        return Unsure(NO_ANSWER) if reply is None else Refused("waited too long")

    def _ask(self, f: str, key: str, secret: str) -> Call:
        return Call(self._server, Ask(f, key, secret, self._caller.ttl_ms), POLL_TIMEOUT_NS)


QUEUE = LockKind("queue", "one server, a queue", QueueLock, QueueServer, fencing=True, fair=True)


class PatientLock(QueueLock):
    patience = inf


class EternalQueueServer(QueueServer):
    def held(self, key: str, wall_ns: int) -> Lease | None:
        return self.leases.get(key)


PATIENT = LockKind(
    "patient",
    "a queue without a time limit, for a lock without one",
    PatientLock,
    EternalQueueServer,
    fencing=True,
    caught_by=("deadlock",),
)


class PushyServer(QueueServer):
    def next_of(self, queue: list[Place]) -> Place:
        return queue[-1]


UNFAIR = LockKind(
    "unfair",
    "who comes last is served first",
    QueueLock,
    PushyServer,
    fencing=True,
    fair=True,
    caught_by=("unfair",),
)
