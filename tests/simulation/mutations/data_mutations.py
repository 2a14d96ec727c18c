"""Ways of spoiling what was done under the lock in a good history."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from msgspec.structs import replace

from lockcheck.checker import Code
from lockcheck.history import EventType, F, History, Operation
from lockcheck.history.event import STORAGE
from tests.simulation.mutations.tape import (
    RETIRED,
    SOMEBODY,
    Mutation,
    Spoil,
    Tape,
    Told,
    own,
    told_writes,
)


def a_write_is_delayed(history: History) -> Iterator[Spoil]:
    """Effective: the later holder's token is greater, so its hold came later for certain."""
    writes = told_writes(history)
    for one, other in pairwise(writes):
        if (one.hold.token or 0) < (other.hold.token or 0):
            yield partial(_served_behind, history, one, other)


def _served_behind(history: History, late: Told, early: Told) -> History:
    """Its client was told nothing: it goes on as another process, and leaves the lock alone."""
    tape, answer = Tape(history), late.write.answer
    assert answer
    _swap_numbers(tape, late, early, answered=False)
    tape.put(answer, replace(answer, type=EventType.INFO, value=None, seq=None, error="timeout"))
    release, since_ns = late.hold.release, answer.time
    released_ns = since_ns if release is None or release.answer is None else release.answer.time
    old, new = late.write.process, RETIRED
    for event in list(tape.events):
        if event.process == old and since_ns < event.time <= released_ns:
            tape.put(event)
        elif event.process == old and event.time > released_ns:
            tape.put(event, replace(event, process=new))
        elif event.of == old and (event.token or 0) > (late.hold.token or 0):
            tape.put(event, replace(event, of=new))
    return tape.done()


def two_writes_are_swapped(history: History) -> Iterator[Spoil]:
    """Effective: as above; both were acknowledged, in the wrong order."""
    writes = told_writes(history)
    for n, other in enumerate(writes):
        for one in writes[:n]:
            if (one.hold.token or 0) < (other.hold.token or 0):
                yield partial(_swapped, history, one, other)


def _swapped(history: History, one: Told, other: Told) -> History:
    tape = Tape(history)
    _swap_numbers(tape, one, other, answered=True)
    return tape.done()


def _swap_numbers(tape: Tape, one: Told, other: Told, *, answered: bool) -> None:
    for told, seq in ((one, other.entry.seq), (other, one.entry.seq)):
        tape.put(told.entry, replace(told.entry, seq=seq))
        answer = told.write.answer
        if answer is not None and (answered or told is other):
            tape.put(answer, replace(answer, seq=seq))


def a_base_is_rewritten(history: History) -> Iterator[Spoil]:
    """Effective: two accepted writes are based on the same value, and the first is acknowledged."""
    for before, write in pairwise(told_writes(history)):
        yield partial(_based_on, history, write, before.write.invoke.base)


def _based_on(history: History, told: Told, base: object) -> History:
    """It says so, the storage says so, and it had read that value."""
    tape, write = Tape(history), told.write
    assert write.answer
    for event in (write.invoke, write.answer, told.entry):
        tape.put(event, replace(event, base=base))
    (read,) = own(history, told.hold, F.READ)
    assert read.answer
    tape.put(read.answer, replace(read.answer, value=base))
    return tape.done()


def a_job_runs_twice(history: History) -> Iterator[Spoil]:
    """Effective: it had run before, and was seen to."""
    last_ns = history.end_ns
    for run in (o for o in history.operations if o.f == F.RUN and o.ok):
        yield partial(_again, history, run, last_ns)


def _again(history: History, run: Operation, at_ns: int) -> History:
    assert run.answer
    tape = Tape(history)
    first = next(e for e in history.events if e.process == STORAGE)
    again = [replace(e, process=SOMEBODY, time=at_ns) for e in (run.invoke, run.answer)]
    tape.put(first, *again, first)
    return tape.done()


DATA_MUTATIONS: dict[Mutation, Code] = {
    a_write_is_delayed: Code.STALE_WRITE,
    two_writes_are_swapped: Code.STALE_WRITE,
    a_base_is_rewritten: Code.LOST_UPDATE,
    a_job_runs_twice: Code.DOUBLE_RUN,
}
