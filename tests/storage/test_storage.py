"""What a storage accepts under each guard, and that its ledger has all it served."""

from __future__ import annotations

import pytest

from lockcheck.history import EventType
from lockcheck.servers.wire import Address
from lockcheck.storage import open_storage
from lockcheck.storage.base import Ask, Guard, ledger_events


def write(value: str, *, base: str | None = None, token: int | None = None, of: int = 0) -> Ask:
    return Ask("write", "k1", of, value=value, base=base, token=token)


def read(*, token: int | None = None, of: int = 0, shared: bool = False) -> Ask:
    return Ask("read", "k1", of, token=token, shared=shared)


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
    # Readers come in any order, but none after a writer that was let in because it was late, and
    # no writer after readers that were.
    (Guard.FENCE, [(read(token=t, shared=True), "") for t in (34, 33, 35)]),
    (
        Guard.FENCE,
        [
            (write("a", token=33), ""),
            (read(token=35, shared=True), ""),
            (read(token=34, shared=True), ""),
            (read(token=32, shared=True), "32 is below 33"),
            (write("b", token=33), "33 is below 35"),
            (write("c", token=36), ""),
            (read(token=35, shared=True), "35 is below 36"),
        ],
    ),
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
    storage = open_storage("redis", redis_address, guard)
    for number, (ask, refusal) in enumerate(asked, 1):
        served = storage.serve(ask)
        assert served.seq == number
        assert refusal in served.refusal
        assert bool(refusal) == bool(served.refusal)


def test_a_refused_write_changes_nothing(redis_address: Address) -> None:
    storage = open_storage("redis", redis_address, Guard.CAS)
    storage.serve(write("a"))
    storage.serve(write("b", base="x"))
    assert storage.serve(read()).value == "a"


def test_it_remembers_what_it_accepted_and_what_it_refused(redis_address: Address) -> None:
    storage = open_storage("redis", redis_address, Guard.FENCE)
    storage.serve(read(token=1, of=7))
    storage.serve(write("c8-1", token=1, of=7))
    storage.serve(read(token=2, of=8))
    storage.serve(write("c8-2", base="c8-1", token=1, of=7))
    events = list(ledger_events(storage.ledger(), 99))
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
    storage = open_storage("redis", redis_address, Guard.CAS)
    storage.serve(write("a"))
    assert storage.serve(Ask("read", "k2", 0)).value is None


@pytest.mark.parametrize(
    ("guard", "refusal"),
    [(Guard.NONE, ""), (Guard.CAS, "based on job-1"), (Guard.FENCE, "5 is below 6")],
)
def test_a_job_that_was_done_is_looked_at_and_guarded_like_a_write(
    guard: Guard, refusal: str, redis_address: Address
) -> None:
    def run(base: str | None, token: int) -> Ask:
        return Ask("run", "k1", 0, value="job-2", base=base, token=token)

    storage = open_storage("redis", redis_address, guard)
    storage.serve(Ask("run", "k1", 0, value="job-1", token=5))
    assert storage.serve(Ask("look", "k1", 0, token=5)).value == "job-1"
    assert not storage.serve(run("job-1", token=6)).refusal
    late = storage.serve(run("job-1", token=5)).refusal
    assert refusal in late
    assert bool(refusal) == bool(late)
