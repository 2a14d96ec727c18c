"""What is concluded from histories that leave it out."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.history import Effect, Terms
from lockcheck.history.older import completed, effect_of_name
from tests.checker.dsl import history, ns


@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("pause", Effect.STOPS),
        ("stop", Effect.STOPS),
        ("kill", Effect.ENDS),
        ("crash", Effect.ENDS),
        ("restart", Effect.ENDS),
        ("amnesia", Effect.ENDS),
        ("kill-primary", Effect.ENDS),
        ("partition", Effect.CUTS),
        ("Partition_Halves", Effect.CUTS),
        ("loss", Effect.CUTS),
        ("clock-jump", Effect.SKEWS),
        ("skew", Effect.SKEWS),
        ("slow", Effect.SLOWS),
        ("slow-disk", Effect.SLOWS),
        ("disk-full", Effect.STARVES),
        ("stop-partition", Effect.STOPS),  # what excuses a client comes first
        ("odd", None),
        ("clockwork", None),
        ("", None),
    ],
)
def test_what_a_fault_does_by_its_name(name: str, effect: Effect | None) -> None:
    assert effect_of_name(name) is effect


@pytest.mark.parametrize(
    ("recorded", "known"),
    [
        ({"workload": "register"}, {"stores": True}),
        ({"workload": "mutex", "guard": "fence"}, {"guard": "none"}),
        ({"workload": "queue", "guard": "fence", "stores": True}, {}),
        ({"workload": "elections"}, {}),
        ({"faults": ("pause:holder", "kill:server")}, {"at_holders": ("pause:holder",)}),
        (
            {"faults": ("pause:holder", "cut:holder,for=2s"), "at_holders": ("cut:holder,for=2s",)},
            {},
        ),
    ],
)
def test_terms(recorded: dict[str, Any], known: dict[str, Any]) -> None:
    assert completed(Terms(**recorded)) == Terms(**(recorded | known))
    assert history(**recorded).terms == Terms(**(recorded | known))


def test_a_fault_that_records_everything() -> None:
    (fault,) = history(
        "fault pause n1,n2,n1 10-50 effect=cuts asked=pause:any since=12 proven=15"
    ).faults
    assert (fault.name, fault.nodes, fault.where) == ("pause", ("n1", "n2"), "n1, n2")
    assert (fault.effect, fault.asked) == (Effect.CUTS, "pause:any")
    assert (fault.start_ns, fault.since_ns, fault.proven_ns) == (ns(10), ns(12), ns(15))
    assert (fault.worked_from_ns, fault.worked_by_ns) == (ns(12), ns(12))


@pytest.mark.parametrize(
    ("line", "since", "from_ns", "by_ns"),
    [
        ("10-50 proven=15", None, 10, 15),
        ("10-50!", None, 10, None),
        ("10-50 proven=15 since=9", 10, 10, 10),
        ("10-50 proven=15 since=16", 15, 15, 15),
    ],
)
def test_when_it_took_effect(line: str, since: int | None, from_ns: int, by_ns: int | None) -> None:
    (fault,) = history(f"fault odd n1 {line}").faults
    assert fault.since_ns == (None if since is None else ns(since))
    assert fault.worked_from_ns == ns(from_ns)
    assert fault.worked_by_ns == (None if by_ns is None else ns(by_ns))


def test_one_of_no_node_in_particular() -> None:
    (fault,) = history("fault odd - 10-50").faults
    assert (fault.nodes, fault.where, fault.effect) == ((), "", None)
    assert not fault.may_have_stopped("n1", ns(10), ns(20))
