"""A lock that nobody gets any more, and those that are only busy."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Case, Culprit, Finding, Verdict, judge
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.judges.stuck import find
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import history, ns


def found(*lines: str, **terms: Any) -> list[Finding]:
    values: dict[str, Any] = {"ttl_ms": 100, "backend": "redis"} | terms
    return list(find(Case(history(*lines, **values))))


def refusals(
    since: int = 1000, until: int = 3000, every: int = 100, mark: str = "!", more: str = ""
) -> str:
    """Clients 2 to 4 ask in turn, alone."""
    return "\n".join(
        f"{2 + n % 3} acquire {at}-{at + 5}{mark} {more}"
        for n, at in enumerate(range(since, until, every))
    )


def pairs(since: int = 1000, until: int = 3000, every: int = 100, after: int = 1) -> str:
    """Clients 2 and 3 ask beside each other: each attempt takes 9 ms."""
    return "\n".join(
        f"2 acquire {at}-{at + 9}! \n 3 acquire {at + after}-{at + after + 9}!"
        for at in range(since, until, every)
    )


STUCK = {
    "its holder died": "1 acquire 0-1",
    "its holder died after renewing": "1 acquire 0-1 \n 1 renew 50-51",
    "nobody was ever granted it": "",
    "released": "1 acquire 0-1 \n 1 release 5-6",
    "the release failed": "1 acquire 0-1 \n 1 release 5-6!",
    "nobody knows whether it was granted": "1 acquire 0-90?",
    "never answered": "1 acquire 0-",
    "told that it lost it": "1 acquire 0-1 \n 1 lost 50",
    "healed in time": "1 acquire 0-1 \n fault pause r1 5-900",
    "a permit of two": "1 acquire 0-1",
    "one is under way when the history ends": "1 acquire 0-1 \n 5 acquire 2900-",
    "one that was never answered asked when it was stuck": "1 acquire 0- \n 5 acquire 2500-",
    "all are": "1 acquire 0-1 \n" + "\n".join(f"{n} acquire {2890 + n}-" for n in range(5, 12)),
}
FREE = {
    "granted in the end": "1 acquire 0-1 \n 2 acquire 3001-3002",
    "nobody knows whether it was granted in the end": "1 acquire 0-1 \n 2 acquire 3001-3002?",
    "its holder renews": "1 acquire 0-1 \n" + "\n".join(
        f"1 renew {at}-{at + 1}" for at in range(50, 3000, 50)
    ),
    "a fault that was never healed": "1 acquire 0-1 \n fault pause r1 5-",
    "a fault that was healed at the end": "1 acquire 0-1 \n fault pause r1 5-2600",
    "a fault that was not proven, and may go on": "1 acquire 0-1 \n fault pause r1 5-!",
    "its holder held it long, and failed to release it": "1 acquire 0-1 \n 1 release 2500-2501!",
    "a long lease": "1 acquire 0-1 ttl_ms=2000",
    "a renewal that took its time": "1 acquire 0-1 \n 1 renew 50-2500?",
    "a renewal that asked for a long lease": "1 acquire 0-1 \n 1 renew 50-51 ttl_ms=2000",
    "one of two faults was healed late": "fault pause r1 5-900 \n fault pause r2 5-2600",
    "one of two that were never answered asked amid it": "1 acquire 0- \n 5 acquire 1500-",
    "one that was never answered may have it for two leases": "1 acquire 0-1 \n 5 acquire 1850-",
}  # fmt: skip


@pytest.mark.parametrize("lines", STUCK.values(), ids=STUCK)
def test_rejects(lines: str) -> None:
    (finding,) = found(lines, refusals())
    assert finding.code == "stuck"
    assert finding.blame.who is Culprit.SERVICE
    assert len(finding.operations) == 5
    assert all(operation.failed for operation in finding.operations)


@pytest.mark.parametrize("lines", FREE.values(), ids=FREE)
def test_accepts(lines: str) -> None:
    assert found(lines, refusals()) == []


ATTEMPTS = {
    "too few": (refusals(every=600), 0),
    "five": (refusals(every=400), 1),
    "for too short a time": (refusals(until=1900, every=50), 0),
    "long enough": (refusals(until=2100, every=50), 1),
    "by its own words": (refusals(more="error=held"), 1),
    "in other words": (refusals(more="error=locked-by-n1"), 1),
    "no majority was reached": (refusals(more="error=no-quorum:held"), 0),
    "not reached": (refusals(more="error=connection-refused"), 0),
    "no word about the lock": (refusals(more="error=oops"), 0),
    "by its code": (refusals(more="refused=held error=no-quorum"), 1),
    "by its code, whatever the words": (refusals(more="refused=unavailable error=held"), 0),
    "its client's own session was gone": (refusals(more="refused=gone"), 0),
    "nobody knows": (refusals(mark="?"), 0),
    "all at once, as those who keep each other from a majority": (
        "\n".join(f"{n} acquire {1000 + n}-{1400 + 400 * (n // 3)}!" for n in range(2, 17)),
        0,
    ),
    "two by two": (pairs(), 0),
    "two by two, one when the other was just refused": (pairs(after=9), 0),
    "two by two, once alone": (pairs() + "\n 4 acquire 1050-1059!", 0),
    "two by two, twice alone": (pairs() + "\n 4 acquire 1050-1059! \n 4 acquire 2950-2959!", 1),
    "beside those who waited": (
        "5 acquire 1000-1990! \n 5 acquire 2000-2990! \n" + refusals(1100, 1900), 0
    ),
    "six, but four one after the other": (
        pairs(1500, 2500, 500, after=9) + "\n 4 acquire 1000-1009! \n 4 acquire 2950-2959!", 0
    ),
    "waited as long as is needed": (
        pairs(2100) + "\n 4 acquire 1000-2000! \n 5 acquire 1001-2001!", 0
    ),
    "waited longer": (pairs(2100) + "\n 4 acquire 1000-2000.1! \n 5 acquire 1001-2001.1!", 1),
    "all at once, but each waited long": (
        "\n".join(f"{n} acquire {1000 + n % 2}-{2100 + n % 2}!" for n in range(2, 8))
        + "\n"
        + "\n".join(f"2 acquire {at}-{at + 9}! \n 3 acquire {at + 1}-{at + 9}!"
                    for at in range(2200, 3000, 50)),
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "told"), ATTEMPTS.values(), ids=ATTEMPTS)
def test_what_counts_as_being_refused(lines: str, told: int) -> None:
    assert len(found("1 acquire 0-1", lines)) == told


def test_a_queue_of_the_dead_is_waited_for() -> None:
    """Each that was never answered may be granted it once, and lapse: thirty of them for 3 s."""
    dead = "\n".join(f"{n} acquire 0-" for n in range(100, 130))
    assert found(dead, refusals()) == []
    assert len(found(dead, refusals(until=5300))) == 1


def test_without_a_lease_only_a_release_frees_it() -> None:
    assert found("1 acquire 0-1", refusals(), ttl_ms=None) == []
    assert found("1 acquire 0-9?", refusals(), ttl_ms=None) == []
    assert found("1 acquire 0-1 \n 1 release 5-6!", refusals(), ttl_ms=None) == []
    assert len(found("1 acquire 0-1 \n 1 release 5-6", refusals(), ttl_ms=None)) == 1


def test_somebody_elses_holder_may_renew_without_saying_so() -> None:
    assert found("1 acquire 0-1", refusals(), backend="") == []
    assert len(found("1 acquire 0-1 \n 1 renew 50-51", refusals(), backend="")) == 1
    assert len(found("1 acquire 0-1 \n 1 release 5-6!", refusals(), backend="")) == 1


def test_each_key_by_itself() -> None:
    other = "5 acquire:other 0-1 \n 7 acquire:other 2990-2991"
    (finding,) = found("1 acquire 0-1", other, refusals())
    assert finding.key == "k"


def test_what_is_said() -> None:
    (finding,) = found("1 acquire 0-1", "fault restart r1 50-60", refusals())
    assert [hold.process for hold in finding.holds] == [1]
    assert finding.time_ns == ns(201)  # its answer and two leases
    assert finding.length_ns == finding.blame.by_ns == ns(2905 - 201)
    assert finding.operations[-1].end_ns == ns(2905)
    assert finding.blame.fault
    assert finding.blame.fault.name == "restart"
    assert "20 requests were refused" in note(finding)
    assert "for 2.704 s" in note(finding)


def test_what_the_machine_explains_is_unknown() -> None:
    lines = ("1 acquire 0-1", refusals(until=2100))
    (finding,) = found(*lines, "stall n2 1000-1900")
    assert (finding.blame.who, finding.effect) == (Culprit.MACHINE, Verdict.UNKNOWN)
    (finding,) = found(*lines, "stall n2 1000-1050")
    assert finding.effect is Verdict.VIOLATION


@pytest.mark.parametrize(
    ("until", "who"), [("1804", Culprit.SERVICE), ("1804.000001", Culprit.MACHINE)]
)
def test_what_is_left_without_the_stalls_counts(until: str, who: Culprit) -> None:
    """It was refused for 1804 ms, and a second is needed."""
    (finding,) = found("1 acquire 0-1", refusals(until=2100), f"stall n2 1000-{until}")
    assert (finding.blame.who, finding.blame.by_ns) == (who, ns(1804))


def test_a_doubt_names_it_even_where_nobody_ever_held_it() -> None:
    told = history(refusals(until=2100), "stall n2 0-2000", "1 acquire:j 0-1", ttl_ms=100)
    doubts = judge(told).doubts
    assert Doubt(DoubtCode.MACHINE_STALLED, "k", check="stuck", length_ns=ns(2000)) in doubts


@pytest.mark.parametrize("guard", ["none", "fence", "cas"])
def test_no_guard_makes_up_for_it(guard: str) -> None:
    (finding,) = found("1 acquire 0-1", refusals(), guard=guard)
    assert finding.effect is Verdict.VIOLATION


def test_a_client_that_is_silent_in_a_production_log_may_have_been_granted_it() -> None:
    """Its row would have been written when the request was done."""
    released = "1 acquire 0-1 \n 1 release 5-6"
    terms: dict[str, Any] = {"backend": "", "partial": True}
    for silent, lease, effect in (
        ("", 100, Verdict.VIOLATION),
        ("", None, Verdict.UNKNOWN),  # it may be the one that released it
        ("1 read 2500-2501", None, Verdict.VIOLATION),
        ("1 read 2500-2501 \n 5 acquire:j 0-3", None, Verdict.UNKNOWN),
        ("5 acquire:j 0-3", 100, Verdict.VIOLATION),  # it would have lapsed
    ):
        (finding,) = found(released, silent, refusals(), ttl_ms=lease, **terms)
        assert finding.effect is effect
    doubts = judge(history(released, refusals(), partial=True)).doubts
    assert Doubt(DoubtCode.MAYBE_UNSEEN, "k", length_ns=ns(2899)) in doubts
