"""What a run reports while it lasts."""

from __future__ import annotations

import pytest

from lockcheck.agent.link import Message
from lockcheck.history import Event, EventType, Terms
from lockcheck.history.event import NEMESIS
from lockcheck.run.monitor import Monitor


def event_of(kind: EventType, f: str, nodes: tuple[str, ...]) -> Message:
    one = nodes[0] if len(nodes) == 1 else None
    several = nodes if len(nodes) > 1 else None
    return Message(
        event=Event(time=1, process=NEMESIS, type=kind, f=f, fault=3, node=one, nodes=several)
    )


@pytest.mark.parametrize(
    ("nodes", "words"),
    [((), "partition"), (("c1",), "partition of c1"), (("r1", "r2"), "partition of r1 and r2")],
)
def test_a_fault_is_told_with_all_its_nodes_while_it_works(
    nodes: tuple[str, ...], words: str
) -> None:
    monitor = Monitor(Terms())
    monitor.hear(event_of(EventType.INVOKE, "partition", nodes))
    assert monitor.state().faults == ()
    monitor.hear(event_of(EventType.OK, "partition", nodes))
    assert monitor.state().faults == (words,)
    monitor.hear(event_of(EventType.INVOKE, "heal", nodes))
    assert monitor.state().faults == (words,)
    monitor.hear(event_of(EventType.OK, "heal", nodes))
    assert monitor.state().faults == ()
