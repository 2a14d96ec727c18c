"""The simulated storage decides as the real one: its table is that of `tests/storage`."""

from __future__ import annotations

import pytest

from lockcheck.errors import InternalError
from lockcheck.history import EventType
from lockcheck.storage.base import Ask, Guard
from tests.simulation.storage import Storage
from tests.simulation.world import Ask as SimulatedAsk
from tests.simulation.world import Reply
from tests.storage.test_storage import TABLE, read, write


def served(storage: Storage, ask: Ask) -> Reply:
    return storage.handle(
        SimulatedAsk(
            ask.f,
            ask.key,
            process=ask.of,
            token=ask.token,
            value=ask.value,
            base=ask.base,
            shared=ask.shared,
        ),
        wall_ns=0,
    )


@pytest.mark.parametrize(("guard", "asked"), TABLE)
def test_guards(guard: Guard, asked: list[tuple[Ask, str]]) -> None:
    storage = Storage(guard.value)
    for number, (ask, refusal) in enumerate(asked, 1):
        reply = served(storage, ask)
        assert reply.seq == number
        assert refusal in reply.why
        assert reply.ok is not bool(refusal)


def test_a_refused_write_changes_nothing() -> None:
    storage = Storage("cas")
    served(storage, write("a"))
    served(storage, write("b", base="x"))
    assert served(storage, read()).value == "a"


def test_each_key_has_its_own_fence_and_value() -> None:
    storage = Storage("fence")
    served(storage, write("a", token=5))
    other = SimulatedAsk("write", "k2", token=1, value="b")
    assert storage.handle(other, wall_ns=0).ok
    assert served(storage, read(token=5)).value == "a"


def test_its_ledger_has_what_it_accepted_and_what_it_refused() -> None:
    storage = Storage("fence")
    served(storage, read(token=2, of=7))
    served(storage, write("c8-1", token=2, of=7))
    served(storage, write("c9-1", token=1, base="c8-1", of=8))
    first, second, third = storage.ledger(time_ns=99)
    assert (first.type, first.f, first.value, first.of, first.seq) == (
        EventType.OK, "read", None, 7, 1,
    )  # fmt: skip
    assert (second.type, second.value, second.base) == (EventType.OK, "c8-1", None)
    assert (third.type, third.value, third.base, third.token) == (
        EventType.FAIL, "c9-1", "c8-1", 1,
    )  # fmt: skip
    assert third.error == "fenced: token 1 is below 2"
    assert {event.time for event in (first, second, third)} == {99}


def test_nobody_makes_it_forget() -> None:
    with pytest.raises(InternalError):
        Storage("none").forget()
