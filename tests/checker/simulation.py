"""A lock with leases, its clients and the storage, simulated: the same seed, the same history.

Clients run as generators that yield how long the next step takes; a pause makes a step longer.
What the clients are told is recorded exactly as a worker would record it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from lockcheck.history import Event, EventType, History, Terms
from lockcheck.history.event import NEMESIS, NS_PER_MS, STORAGE
from tests.checker.dsl import terms_event

OK, FAIL, INFO, INVOKE = EventType.OK, EventType.FAIL, EventType.INFO, EventType.INVOKE


@dataclass
class World:
    seed: int
    terms: Terms
    clients: int = 4
    until_ms: int = 3_000
    pause_ms: tuple[int, int] = (0, 0)  # how long a client stands still, at any one step of a hold
    forgets: bool = False  # the service sometimes forgets a lock before its lease is over
    blind: bool = False  # a release removes whatever lock is there
    events: list[Event] = field(default_factory=list)
    memories: list[Event] = field(default_factory=list)
    now_ns: int = 0
    owner: tuple[int, int, int] | None = None  # (client, when it runs out, token)
    token: int = 0
    fence: int = 0
    value: str | None = None

    def __post_init__(self) -> None:
        self.choices = random.Random(self.seed)
        self.faults = count(1)

    def run(self) -> History:
        turns = count()
        queue = [(n, next(turns), self.client(n)) for n in range(self.clients)]
        while queue:
            self.now_ns, _, client = heapq.heappop(queue)
            step_ns = next(client, None)
            if step_ns is not None:
                heapq.heappush(queue, (self.now_ns + step_ns, next(turns), client))
        told = sorted(self.events, key=lambda event: event.time)
        end_ns = told[-1].time
        told += [msgspec.structs.replace(memory, time=end_ns) for memory in self.memories]
        return History.of([terms_event(**msgspec.structs.asdict(self.terms)), *told])

    # --- a client ----------------------------------------------------------------------------

    def client(self, n: int) -> Iterator[int]:
        while self.now_ns < self.until_ms * NS_PER_MS:
            self.say(n, INVOKE, "acquire", ttl_ms=self.terms.ttl_ms)
            yield self.little()
            token = self.grant(n)
            yield self.little()
            if token is None:
                self.say(n, FAIL, "acquire", error="held")
            else:
                self.say(n, OK, "acquire", token=token)
                yield from self.section(n, token)
            yield self.little() * 5

    def section(self, n: int, token: int) -> Iterator[int]:
        pause_at = self.choices.randrange(6)
        shown = {"token": token}
        base: str | None = None
        for step, f in enumerate(("read", "write")):
            yield from self.maybe_pause(n, pause_at == step * 2)
            value = None if f == "read" else f"n{n}-{self.now_ns}"
            self.say(n, INVOKE, f, value=value, base=base, **shown)
            yield from self.maybe_pause(n, pause_at == step * 2 + 1)
            yield self.little()
            memory = self.serve(n, f, value, base, token)
            yield self.little()
            self.say(n, memory.type, f, value=memory.value, seq=memory.seq, error=memory.error)
            base = self.value_of(memory)
            yield self.little() * 10
        yield from self.maybe_pause(n, pause_at == 4)
        self.say(n, INVOKE, "release")
        yield self.little()
        removed = self.remove(n)
        yield self.little()
        if removed or self.blind:
            self.say(n, OK, "release", value={"removed": int(removed), "blind": self.blind})
        else:
            self.say(n, FAIL, "release", error="not-owner")

    def maybe_pause(self, n: int, due: bool) -> Iterator[int]:
        if not due or not self.pause_ms[1]:
            return
        number, length_ns = next(self.faults), self.choices.randint(*self.pause_ms) * NS_PER_MS
        common: dict[str, Any] = {"process": NEMESIS, "node": f"n{n}", "fault": number}
        for kind in (INVOKE, OK):
            self.events.append(Event(time=self.now_ns, type=kind, f="pause", **common))
        yield length_ns
        self.events.append(Event(time=self.now_ns, type=OK, f="heal", **common))

    # --- the service and the storage -----------------------------------------------------------

    def grant(self, n: int) -> int | None:
        forgotten = self.forgets and self.choices.random() < 0.05
        if self.owner is not None and self.now_ns <= self.owner[1] and not forgotten:
            return None
        self.token += 1
        lease_ns = (self.terms.ttl_ms or 0) * NS_PER_MS
        self.owner = (n, self.now_ns + lease_ns, self.token)
        return self.token

    def remove(self, n: int) -> bool:
        there = self.owner is not None and self.now_ns <= self.owner[1]
        mine = there and self.owner is not None and self.owner[0] == n
        if not (mine or (there and self.blind)):
            return False
        self.owner = None
        return True

    def serve(self, n: int, f: str, value: str | None, base: str | None, token: int) -> Event:
        refusal = None
        if self.terms.guard == "fence":
            refusal = f"fenced: {token} is below {self.fence}" if token < self.fence else None
            self.fence = max(self.fence, token)
        elif self.terms.guard == "cas" and f == "write" and base != self.value:
            refusal = "cas: the value has changed"
        if f == "write" and refusal is None:
            self.value = value
        memory = Event(
            time=0, process=STORAGE, type=FAIL if refusal else OK, f=f, key="k",
            value=self.value if f == "read" else value, base=base, token=token,
            seq=len(self.memories) + 1, of=n, error=refusal,
        )  # fmt: skip
        self.memories.append(memory)
        return memory

    def value_of(self, memory: Event) -> str | None:
        return memory.value if isinstance(memory.value, str) else None

    def say(self, n: int, kind: EventType, f: str, **more: Any) -> None:
        self.events.append(
            Event(time=self.now_ns, process=n, type=kind, f=f, key="k", node=f"n{n}", **more)
        )

    def little(self) -> int:
        return self.choices.randint(1, NS_PER_MS)
