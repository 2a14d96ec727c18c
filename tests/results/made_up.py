"""Findings of the codes that are told by their evidence, made by hand: their words are tested here,
and not who finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from lockcheck import checker
from lockcheck.checker.finding import (
    Blame,
    Code,
    Counts,
    Culprit,
    Definition,
    Finding,
    Judgement,
    Proof,
    Reason,
    Verdict,
)
from lockcheck.checker.judges.denied import REFUSED as DENIED
from lockcheck.checker.judges.stuck import REFUSED
from lockcheck.checker.judges.unfair import QUEUED
from lockcheck.checker.linearizability import Answer, Because
from lockcheck.checker.linearizability.models import register
from lockcheck.history import F, History
from tests.checker.dsl import history, ns

BY = {who: Blame(who, 0, None) for who in Culprit}


@dataclass(frozen=True, slots=True)
class Case:
    history: History
    finding: Finding


def found(
    code: Code,
    of: History,
    who: Culprit = Culprit.SERVICE,
    *,
    holds: tuple[int, ...] = (),
    operations: tuple[int, ...] = (),
    **more: object,
) -> Case:
    """`holds` and `operations`: which of the history's."""
    evidence = tuple(of.operations[number] for number in operations)
    parties = tuple(of.holds[number] for number in holds)
    ends = [o.answer.time if o.answer else o.start_ns for o in evidence]
    values: dict[str, Any] = {
        "code": code,
        "key": evidence[0].key if evidence else parties[0].key,
        "time_ns": max([*ends, *(hold.start_ns for hold in parties)]),
        "effect": Verdict.VIOLATION,
        "holds": parties,
        "operations": evidence,
        "length_ns": 0,
        "blame": BY[who],
        **more,
    }
    return Case(of, Finding(**values))


def judgement(
    of: History, *findings: Finding, definitions: tuple[Definition, ...] = ()
) -> Judgement:
    counts = Counts(
        operations=len(of.operations),
        acquisitions=len(of.holds),
        holders=len({hold.node for hold in of.holds}),
        faults=len(of.faults),
        writes_accepted=sum(o.f == F.WRITE and o.ok for o in of.operations),
        writes_refused=0,
        stale_writes_refused=0,
    )
    verdict = Verdict.merge(finding.effect for finding in findings)
    return Judgement(verdict, findings, (), counts, definitions, case=checker.Case(of))


def somebody_elses(of: History) -> History:
    """Without the terms of a run, and without nodes."""
    return History.of(msgspec.structs.replace(event, node=None) for event in of.events[1:])


def token_regression() -> Case:
    told = history("""
        1 acquire 0-1 token=34
        1 release 2-3
        fault failover r1 4-5
        2 acquire 6-7 token=33
        2 release 8-9""")
    return found(Code.TOKEN_REGRESSION, told, holds=(0, 1), operations=(0, 2))


def unlocked_section() -> Case:
    told = history("1 acquire 0-1! error=held", "1 write 2-3 x seq=1")
    return found(Code.UNLOCKED_SECTION, told, Culprit.CLIENT, operations=(0, 1))


def silent_loss() -> Case:
    told = history("""
        1 acquire 0-1 ttl_ms=100
        2 acquire 150-151 ttl_ms=100
        2 release 160-161
        1 release 900-901""")
    return found(Code.SILENT_LOSS, told, holds=(0, 1), length_ns=ns(749), time_ns=ns(251))


def revived() -> Case:
    told = history("""
        1 acquire 0-1 ttl_ms=100
        2 acquire 150-151 ttl_ms=100
        2 release 160-161
        1 renew 170-171 ttl_ms=100
        1 release 180-181""")
    return found(Code.REVIVED, told, holds=(0, 1), operations=(3,))


def double_run() -> Case:
    told = history("""
        1 acquire 0-1
        1 run 2-3 invoice-7
        1 release 4-5
        2 acquire 6-7
        2 run 8-9 invoice-7
        2 release 10-11""")
    return found(Code.DOUBLE_RUN, told, Culprit.CLIENT, holds=(0, 1), operations=(1, 4))


def stuck() -> Case:
    attempts = [
        f"{2 + n % 2} acquire {2000 + 50 * n}-{2001 + 50 * n}! error=held" for n in range(9)
    ]
    told = history("1 acquire 0-1 ttl_ms=100", *attempts)
    reasons = (Reason(REFUSED, number=9),)
    refused = tuple(range(1, 10))
    return found(
        Code.STUCK, told, holds=(0,), operations=refused, time_ns=ns(1000), reasons=reasons
    )


def stale_read() -> Case:
    told = history("""
        1 acquire 0-1
        1 write 2-3 v1 seq=1 base=v0
        1 release 4-5
        2 read 8-9 seq=2 = v0""")
    return found(Code.STALE_READ, told, Culprit.STORAGE, operations=(1, 3), time_ns=ns(9))


def denied() -> Case:
    told = history(
        "1 acquire 0-1 ttl_ms=100 \n 1 release 2-3",
        *(f"{2 + n % 2} acquire {300 * n + 10}-{300 * n + 11}! error=held" for n in range(9)),
        "2 acquire 3000-3001",
    )
    refused = tuple(range(2, 7))
    reasons = (Reason(DENIED, number=9),)
    return found(Code.DENIED, told, holds=(0,), operations=refused, time_ns=ns(3), reasons=reasons)


def deadlock() -> Case:
    told = history("""
        1 acquire:k1 0-1
        2 acquire:k2 1-2
        3 acquire:k3 2-3
        1 acquire:k2 10-
        2 acquire:k3 11-
        3 acquire:k1 12-""")
    return found(Code.DEADLOCK, told, Culprit.CLIENT, holds=(0, 1, 2), operations=(3, 4, 5))


def unfair() -> Case:
    told = history("""
        2 acquire 0-60
        3 acquire 20-31
        3 release 55-56
        2 release 70-71""")
    reasons = (Reason(QUEUED, number=ns(5)),)
    return found(
        Code.UNFAIR, told, holds=(0, 1), operations=(0, 1), time_ns=ns(60), reasons=reasons
    )


def not_linearizable() -> Case:
    told = history("""
        0 write:x 0-10 1
        1 write:x 12-30 2
        2 read:x 14-20 = 2
        3 read:x 22-26 = 1
        4 cas:x 40-41! [7,8]
        4 add:x 42-43? 9
        2 write:x 50- 3""")
    cycle = Because(1, 2, "it was read"), Because(2, 3, "it ended before")
    answer = Answer(False, "zones", "1 was read after 2", cycle=cycle)
    proof = Proof(register(), answer, dict(enumerate(told.operations)))
    return found(
        Code.NOT_LINEARIZABLE, somebody_elses(told), operations=(0, 1, 2, 3),
        proof=proof,
    )  # fmt: skip


CASES = {
    Code.TOKEN_REGRESSION: token_regression,
    Code.UNLOCKED_SECTION: unlocked_section,
    Code.SILENT_LOSS: silent_loss,
    Code.REVIVED: revived,
    Code.DOUBLE_RUN: double_run,
    Code.STALE_READ: stale_read,
    Code.STUCK: stuck,
    Code.DENIED: denied,
    Code.DEADLOCK: deadlock,
    Code.UNFAIR: unfair,
    Code.NOT_LINEARIZABLE: not_linearizable,
}
