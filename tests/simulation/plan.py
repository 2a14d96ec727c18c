"""What is simulated: the lock, its clients, and the faults that strike while they use it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lockcheck.history import Terms


class FaultKind(StrEnum):
    PAUSE = "pause"  # nothing of a node runs
    CRASH = "crash"  # a server is gone, and comes back with what it knew
    AMNESIA = "amnesia"  # a server is gone, and comes back knowing nothing
    PARTITION = "partition"  # some nodes cannot speak to the others
    LOSS = "loss"  # some messages are lost
    SLOW = "slow"  # messages are late, each by its own, and overtake each other
    DUPLICATE = "duplicate"  # some messages arrive twice
    CLOCK_JUMP = "clock-jump"  # a server's wall clock is set forward


class Nesting(StrEnum):
    """Whether clients take a second lock while they hold the first."""

    NONE = "none"
    ORDERED = "ordered"  # all in the same order
    ANY = "any"  # each in its own: those who wait without end will wait for each other


class Target(StrEnum):
    HOLDER = "holder"  # the client that has just been granted the lock
    CLIENT = "client"
    SERVER = "server"
    ANY = "any"  # a client or a server
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class Fault:
    """Strikes again and again, `gap_ms` after the last time, for `length_ms` each time."""

    kind: FaultKind
    target: Target
    length_ms: tuple[int, int]
    gap_ms: tuple[int, int] = (20, 120)
    jump_ms: int = 0  # of a clock jump: how far
    share: float = 0.3  # of the messages that are lost or doubled

    @property
    def name(self) -> str:
        return str(self.kind) if self.target is Target.NETWORK else f"{self.kind}:{self.target}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Equal plans are equal histories, to the last nanosecond."""

    seed: int
    lock: str = "single"
    guard: str = "none"  # of the storage: none, fence, cas
    faults: tuple[Fault, ...] = ()
    clients: int = 4
    ttl_ms: int = 100
    until_ms: int = 700  # no client begins anything after that
    calm_ms: int = 250  # before the end: no fault any more, so that the lock can recover
    think_ms: tuple[int, int] = (1, 6)  # twice in each critical section
    rest_ms: tuple[int, int] = (8, 30)  # between two attempts
    check_validity: bool = False  # clients stop when their lease, as they know it, runs out
    reserve_ms: int = 0  # of the lease that must be left for a write to be begun
    drift_ppm: int = 0  # each clock is off by at most this much
    renews: bool = False
    # Of its own accord a keeper beside each client renews this often; 0: there is none.
    keeper_ms: int = 0
    session: bool = False  # what is kept is a session, so the history tells of no renewal
    jobs: bool = False  # each accepted write is the claim of a job, which is then run
    keys: int = 1
    nesting: Nesting = Nesting.NONE  # takes two keys at least

    def terms(self, *, fair: bool, permits: int = 1, reentrant: bool = False) -> Terms:
        return Terms(
            backend=f"simulated-{self.lock}",
            workload="register" if permits == 1 else "permits",
            guard=self.guard,
            ttl_ms=self.ttl_ms,
            faults=tuple(fault.name for fault in self.faults),
            clients=self.clients,
            seed=self.seed,
            check_validity=self.check_validity,
            fair=fair,
            permits=permits,
            model="reentrant" if reentrant else "",
            session=self.session,
        )
