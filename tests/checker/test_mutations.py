"""Good histories, each spoilt in one way, and the judge that it is meant for says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from lockcheck.checker import CHECKS, Case
from lockcheck.history import Event, EventType, History
from tests.checker.test_properties import RELEASING, _retire, pick
from tests.checker.turns import TTL_NS, World, good_worlds


def findings(code: str, events: Iterable[Event]) -> list[str]:
    """The nodes that it is about."""
    told = History.of(sorted(events, key=lambda event: event.time))
    found = CHECKS[code].find(Case(told))
    return [(f.holds[0].node if f.holds else f.operations[-1].node) for f in found]


def changed(events: list[Event], at: int, **fields: object) -> list[Event]:
    return [msgspec.structs.replace(e, **fields) if n == at else e for n, e in enumerate(events)]


def granted(events: list[Event]) -> list[int]:
    return [n for n, e in enumerate(events) if e.f == "acquire" and e.type is EventType.OK]


def with_tokens(world: World) -> list[Event]:
    events = world.events()
    for token, at in enumerate(granted(events)):
        events = changed(events, at, token=token)
    return events


# --- tokens --------------------------------------------------------------------------------------


@given(good_worlds())
def test_tokens_that_grow_are_never_accused(world: World) -> None:
    assert findings("token-regression", with_tokens(world)) == []


@given(good_worlds(endings=("ok",)), st.data())
def test_a_token_that_is_repeated_or_lowered(world: World, data: st.DataObject) -> None:
    events = with_tokens(world)
    number = data.draw(st.integers(1, len(world.turns) - 1))
    token = data.draw(st.integers(-3, number - 1))
    assume(world.turns[number - 1].granted < world.turns[number].asked)
    spoilt = changed(events, granted(events)[number], token=token)
    assert findings("token-regression", spoilt)


# --- who holds it -------------------------------------------------------------------------------


@given(RELEASING, st.data())
def test_a_grant_that_was_none(world: World, data: st.DataObject) -> None:
    world = replace(world, extra=())
    number = data.draw(st.integers(0, len(world.turns) - 1))
    turn, events = world.turns[number], world.events()
    assert findings("unlocked-section", events) == []
    at = next(n for n in granted(events) if events[n].process == turn.process
              and events[n].time == turn.granted)  # fmt: skip
    spoilt = changed(events, at, type=EventType.FAIL)
    assert set(findings("unlocked-section", spoilt)) == {events[at].node}


def outlived(world: World, number: int, end: int) -> World:
    """The client of that turn holds on until then, and the next one was let in all the same."""
    turn, after = world.turns[number : number + 2]
    assume(turn.granted < after.asked)
    late = replace(world, extra=()).spoilt(number, ended=end, answered=end, ending="ok")
    return _retire(late, number)


@given(RELEASING, st.data(), st.integers(1, 10**7))
def test_a_holder_that_is_not_told(world: World, data: st.DataObject, late: int) -> None:
    number = pick(world, data)
    lost = world.turns[number + 1].granted
    terms = msgspec.structs.replace(world.terms, backend="turns")  # so it notes when it stalls
    world = replace(world, terms=terms)
    assert findings("silent-loss", world.events()) == []
    assert findings("silent-loss", outlived(world, number, lost + TTL_NS).events()) == []
    found = findings("silent-loss", outlived(world, number, lost + TTL_NS + late).events())
    assert len(found) == 1


@given(RELEASING, st.data(), st.integers(1, 50))
def test_a_renewal_that_should_have_been_refused(
    world: World, data: st.DataObject, late: int
) -> None:
    number = pick(world, data)
    turn, lost = world.turns[number], world.turns[number + 1].granted
    assume(turn.accesses[-1].end < lost + late)
    events = outlived(world, number, lost + late + 2).events()
    assert findings("revived", events) == []
    common: dict[str, Any] = {"process": turn.process, "f": "renew", "key": "k", "node": "n"}
    renewal = [
        Event(time=lost + late, type=EventType.INVOKE, **common),
        Event(time=lost + late + 1, type=EventType.OK, **common),
    ]
    assert len(findings("revived", events + renewal)) == 1


# --- jobs, and locks that nobody gets -------------------------------------------------------------


@given(RELEASING, st.data())
def test_a_job_that_is_done_again(world: World, data: st.DataObject) -> None:
    told = [e for e in replace(world, ledger=False).events() if e.f != "read"]
    events = [msgspec.structs.replace(e, f="run") if e.f == "write" else e for e in told]
    assert findings("double-run", events) == []
    begun = [n for n, e in enumerate(events) if e.f == "run" and e.type is EventType.INVOKE]
    one, other = data.draw(st.lists(st.sampled_from(begun), min_size=2, max_size=2, unique=True))
    spoilt = changed(events, one, value=events[other].value)
    assert len(findings("double-run", spoilt)) == 1


@given(good_worlds(endings=("ok", "fail", "lost")), st.integers(5, 12), st.booleans())
def test_a_lock_that_nobody_gets_any_more(world: World, attempts: int, recovers: bool) -> None:
    events = replace(world, extra=()).events()
    assert findings("stuck", events) == []
    free = events[-1].time + 3 * TTL_NS
    every = 10**9 // (attempts - 1)  # a second in all
    for n in range(attempts):
        asks = Event(
            time=free + n * every, process=500 + n, type=EventType.INVOKE, f="acquire", key="k"
        )
        last = recovers and n == attempts - 1
        kind = EventType.OK if last else EventType.FAIL
        events += [asks, msgspec.structs.replace(asks, time=asks.time + 10, type=kind)]
    assert len(findings("stuck", events)) == (0 if recovers else 1)
