"""The witness: what it accepts under each guard, and that it remembers all it served."""

from __future__ import annotations

import pytest

from lockcheck.history import EventType
from lockcheck.storage import Ask, Guard, Storage, read_memory, witness_events
from lockcheck.wire import Address


def write(value: str, *, base: str | None = None, token: int | None = None, of: int = 0) -> Ask:
    return Ask("write", "k1", of, value=value, base=base, token=token)


def read(*, token: int | None = None, of: int = 0) -> Ask:
    return Ask("read", "k1", of, token=token)


# Each: guard, what is asked in turn, and for each whether it is refused (and for a read, its value)
TABLE: list[tuple[Guard, list[tuple[Ask, str]]]] = [
    (Guard.NONE, [(write("a"), ""), (write("b"), ""), (write("c", token=1), "")]),
    (
        Guard.FENCE,
        [
            (write("a", token=33), ""),
            (write("b", token=34), ""),
            (write("c", token=33), "33 is below 34"),
        ],
    ),
    (Guard.FENCE, [(write("a", token=33), ""), (write("b", token=33), "")]),
    (Guard.FENCE, [(write("a"), "no token")]),
    # A holder who has read is safe from whoever held before: reads raise the fence.
    (Guard.FENCE, [(read(token=34), ""), (write("a", token=33), "33 is below 34")]),
    (Guard.FENCE, [(write("a", token=34), ""), (read(token=33), "33 is below 34")]),
    (
        Guard.CAS,
        [
            (write("a"), ""),
            (write("b", base="a"), ""),
            (write("c", base="a"), "based on a, but the value is b"),
        ],
    ),
    (Guard.CAS, [(write("a"), ""), (write("b"), "based on nothing, but the value is a")]),
    (Guard.CAS, [(write("a", base="x"), "based on x, but the value is nothing")]),
    (Guard.CAS, [(read(), ""), (write("a"), ""), (read(), "")]),
]


@pytest.mark.parametrize(("guard", "asked"), TABLE)
def test_guards(guard: Guard, asked: list[tuple[Ask, str]], redis_address: Address) -> None:
    storage = Storage(redis_address, guard)
    for number, (ask, refusal) in enumerate(asked, 1):
        served = storage.serve(ask)
        assert served.seq == number
        assert refusal in served.refusal
        assert bool(refusal) == bool(served.refusal)


def test_a_refused_write_changes_nothing(redis_address: Address) -> None:
    storage = Storage(redis_address, Guard.CAS)
    storage.serve(write("a"))
    storage.serve(write("b", base="x"))
    assert storage.serve(read()).value == "a"


def test_it_remembers_what_it_accepted_and_what_it_refused(redis_address: Address) -> None:
    storage = Storage(redis_address, Guard.FENCE)
    storage.serve(read(token=1, of=7))
    storage.serve(write("c8-1", token=1, of=7))
    storage.serve(read(token=2, of=8))
    storage.serve(write("c8-2", base="c8-1", token=1, of=7))
    events = list(witness_events(read_memory(redis_address), 99))
    assert [(e.seq, e.type, e.f, e.value, e.of, e.token) for e in events] == [
        (1, EventType.OK, "read", None, 7, 1),
        (2, EventType.OK, "write", "c8-1", 7, 1),
        (3, EventType.OK, "read", "c8-1", 8, 2),
        (4, EventType.FAIL, "write", "c8-2", 7, 1),
    ]
    assert events[3].base == "c8-1"
    assert "below 2" in (events[3].error or "")
    assert {e.time for e in events} == {99}


def test_keys_do_not_mix(redis_address: Address) -> None:
    storage = Storage(redis_address, Guard.CAS)
    storage.serve(write("a"))
    assert storage.serve(Ask("read", "k2", 0)).value is None
