"""Locks that are wrong, each in one way, and the judges that must notice: they test the tester."""

from __future__ import annotations

from lockcheck.history.event import NS_PER_MS
from tests.simulation.locks.base import LockKind
from tests.simulation.locks.single import (
    FencedLock,
    Lease,
    LeaseServer,
    SingleLock,
)
from tests.simulation.world import Ask, Reply

SOMETIMES = 0.2


class BlindServer(LeaseServer):
    def release(self, ask: Ask, wall_ns: int) -> Reply:
        lease = self.held(ask.key, wall_ns)
        self.leases.pop(ask.key, None)
        return Reply(ok=lease is not None)


class BlindLock(SingleLock):
    blind = True


class GenerousServer(LeaseServer):
    def held(self, key: str, wall_ns: int) -> Lease | None:
        lease = super().held(key, wall_ns)
        return None if lease is not None and self.world.random() < SOMETIMES else lease


class HastyServer(LeaseServer):
    def end_of(self, ask: Ask, wall_ns: int) -> int:
        return wall_ns + ask.ttl_ms * NS_PER_MS // 10


class RepeatingServer(LeaseServer):
    def next_token(self, key: str) -> int:
        again = self.tokens.get(key, 0) > 0 and self.world.random() < SOMETIMES
        return self.tokens[key] if again else super().next_token(key)


class LoweringServer(LeaseServer):
    def next_token(self, key: str) -> int:
        token = super().next_token(key)
        return token // 2 + 1 if self.world.random() < SOMETIMES else token


class RevivingServer(LeaseServer):
    """It takes any renewal, also of who lost the lock to somebody else."""

    def renew(self, ask: Ask, wall_ns: int) -> Reply:
        self.leases[ask.key] = Lease(ask.secret, self.end_of(ask, wall_ns))
        return Reply(ok=True)


class EternalServer(LeaseServer):
    """Its leases never run out: who goes without a release takes the lock along."""

    def held(self, key: str, wall_ns: int) -> Lease | None:
        return self.leases.get(key)


class LingeringServer(LeaseServer):
    """Now and then what it confirms to have released stays for many leases."""

    def release(self, ask: Ask, wall_ns: int) -> Reply:
        reply = super().release(ask, wall_ns)
        if reply.ok and self.world.random() < SOMETIMES / 2:
            self.leases[ask.key] = Lease("", wall_ns + 16 * ask.ttl_ms * NS_PER_MS)
        return reply


WRONG = (
    LockKind(
        "blind",
        "a release removes whatever lock is there",
        BlindLock,
        BlindServer,
        caught_by=("foreign-release",),
    ),
    LockKind(
        "generous",
        "now and then it is granted although somebody holds it",
        SingleLock,
        GenerousServer,
        caught_by=("overlap",),
    ),
    LockKind(
        "hasty",
        "a lease lasts a tenth of what was promised",
        SingleLock,
        HastyServer,
        caught_by=("overlap", "silent-loss"),
    ),
    LockKind(
        "repeating",
        "a token is sometimes given twice",
        FencedLock,
        RepeatingServer,
        fencing=True,
        caught_by=("token-regression",),
    ),
    LockKind(
        "lowering",
        "a token is sometimes lower than one before",
        FencedLock,
        LoweringServer,
        fencing=True,
        caught_by=("token-regression",),
    ),
    LockKind(
        "reviving",
        "a renewal is taken from whoever once held it",
        SingleLock,
        RevivingServer,
        caught_by=("revived",),
    ),
    LockKind(
        "eternal",
        "a lease never runs out",
        SingleLock,
        EternalServer,
        caught_by=("stuck",),
    ),
    LockKind(
        "lingering",
        "a release is confirmed, and nobody gets the lock for long",
        SingleLock,
        LingeringServer,
        caught_by=("denied",),
    ),
    LockKind(
        "ignored",
        "its clients go on when they are refused",
        SingleLock,
        LeaseServer,
        goes_on_when_refused=True,
        caught_by=("unlocked-section",),
    ),
)
