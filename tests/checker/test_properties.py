"""What works is never accused, and each way of spoiling it is caught by the judge for it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lockcheck.checker import Case, Code, OverlapWatch, Verdict, judge
from lockcheck.checker.evidence.order import granted_before
from lockcheck.checker.judges.overlap import find as find_overlaps
from lockcheck.checker.judges.stale_write import find as find_stale
from lockcheck.history import Ending, Event, EventType, History, Hold, Terms
from tests.checker.dsl import codes
from tests.checker.turns import CLIENTS, Access, Turn, World, good_worlds

RELEASING = good_worlds(endings=("ok",), writes=(1, 2))


@settings(max_examples=400)
@given(good_worlds())
def test_a_lock_that_works_is_never_accused(world: World) -> None:
    judgement = judge(world.history())
    assert judgement.findings == ()
    assert judgement.verdict is Verdict.OK, judgement.doubts


def pick(world: World, data: st.DataObject) -> int:
    return data.draw(st.integers(0, len(world.turns) - 2))


@given(RELEASING, st.data())
def test_a_release_after_the_next_grant_is_an_overlap(world: World, data: st.DataObject) -> None:
    number = pick(world, data)
    turn, after = world.turns[number : number + 2]
    assume(after.ended > after.granted)
    late = data.draw(st.integers(after.granted + 1, after.ended))
    ending = data.draw(st.sampled_from(["never", "ok", "info"]))
    spoilt = world.spoilt(number, ended=late, answered=late, ending=ending)
    spoilt = _retire(spoilt, number)
    found = judge(spoilt.history())
    assert "overlap" in codes(found)
    pairs = [{hold.process for hold in finding.holds} for finding in found.of(Code.OVERLAP)]
    assert {turn.process, after.process} in pairs


def _retire(world: World, number: int) -> World:
    """The client of that turn goes on as another process, so that its later turns stand."""
    old = world.turns[number].process
    turns = [
        replace(turn, process=turn.process + 100 * CLIENTS) if n > number and turn.process == old
        else turn
        for n, turn in enumerate(world.turns)
    ]  # fmt: skip
    return replace(world, turns=tuple(turns))


@given(RELEASING, st.data())
def test_a_write_that_is_served_after_the_next_holders_is_stale(
    world: World, data: st.DataObject
) -> None:
    number = pick(world, data)
    turn, after = world.turns[number : number + 2]
    *before, last = turn.accesses
    unanswered = replace(last, outcome="info")
    spoilt = world.spoilt(number, accesses=(*before, unanswered), ending="dies")
    spoilt = replace(_retire(spoilt, number), ledger=True)
    swapped = _swap_seq(spoilt, last.seq, after.writes[-1].seq)
    assert "stale-write" in codes(judge(swapped.history()))


def _swap_seq(world: World, one: int, other: int) -> World:
    def swap(access: Access) -> Access:
        return replace(access, seq={one: other, other: one}.get(access.seq, access.seq))

    turns = [replace(t, accesses=tuple(swap(a) for a in t.accesses)) for t in world.turns]
    return replace(world, turns=tuple(turns))


@given(RELEASING, st.data())
def test_two_updates_of_one_version_lose_one(world: World, data: st.DataObject) -> None:
    """A write is based on what the write before it was based on, and its read says so too: that
    was overwritten by then, so no order explains the read either, unless their times touch."""
    number = pick(world, data) + 1
    turn = world.turns[number]
    read, write = turn.accesses[:2]
    before = world.turns[number - 1].writes[-1]
    stale = (replace(read, value=before.base), replace(write, base=before.base))
    spoilt = world.spoilt(number, accesses=(*stale, *turn.accesses[2:]))
    found = judge(spoilt.history())
    touching = read.start <= before.end
    assert {"lost-update", *([] if touching else ["not-linearizable"])} <= set(codes(found))
    assert set(codes(found)) <= {"lost-update", "not-linearizable", "stale-read"}
    lost = [o.invoke.value for f in found.findings for o in f.operations if o.f == "write"]
    assert before.value in lost
    assert write.value in lost


@given(RELEASING, st.data())
def test_a_write_that_the_storage_forgot_is_a_doubt(world: World, data: st.DataObject) -> None:
    events = replace(world, ledger=True).events()
    entries = [e for e in events if e.process == "storage" and e.f == "write"]
    assume(len(entries) > 1)
    forgotten = data.draw(st.sampled_from(entries))
    found = judge(History.of([event for event in events if event is not forgotten]))
    assert found.findings == ()
    assert found.verdict is Verdict.UNKNOWN


@given(RELEASING, st.data())
def test_an_acknowledged_write_that_the_storage_swapped_away_is_found(
    world: World, data: st.DataObject
) -> None:
    """Two accepted writes change places: somebody's base is not what was there."""
    number = pick(world, data)
    one, other = world.turns[number].writes[0], world.turns[number + 1].writes[0]
    found = judge(_swap_seq(world, one.seq, other.seq).history())
    assert found.verdict is Verdict.VIOLATION
    assert "stale-write" in codes(found)


# --- against the definitions, on histories of locks that do not work ----------------------------


@st.composite
def wild_worlds(draw: st.DrawFn) -> World:
    """Each client in order, and no order among the clients."""
    turns, seqs = [], iter(draw(st.permutations(range(1, 60))))
    times = st.integers(0, 25)
    for client in range(draw(st.integers(2, 6))):
        now = draw(times)
        for _ in range(draw(st.integers(1, 4))):
            asked = now
            granted = asked + draw(times)
            start = granted + draw(times)
            end = start + draw(times)
            write = Access("write", start, end, f"{client}-{start}", None, next(seqs))
            ended = end + draw(times)
            now = ended + draw(times)
            ending = draw(st.sampled_from(["ok", "fail", "lost"]))
            turns.append(Turn(client, asked, granted, (write,), ending, ended, now))
            now += draw(times)
    return World(tuple(turns), ledger=draw(st.booleans()))


def _in_common(one: Hold, other: Hold) -> bool:
    """For some time; or a moment of the one lies within the other."""
    since_ns, until_ns = max(one.start_ns, other.start_ns), min(one.end_ns, other.end_ns)
    moments = [hold for hold in (one, other) if hold.start_ns == hold.end_ns]
    if not moments:
        return since_ns < until_ns
    [longer] = [hold for hold in (one, other) if hold not in moments] or moments[:1]
    believed = moments[0].ending is not Ending.LOST
    return believed and longer.start_ns < moments[0].start_ns < longer.end_ns


@settings(max_examples=300)
@given(wild_worlds())
def test_overlaps_by_definition(world: World) -> None:
    history = world.history()
    expected = {
        (one.start_ns, one.process, other.start_ns, other.process)
        for n, one in enumerate(history.holds)
        for other in history.holds[n + 1 :]
        if one.process != other.process and _in_common(one, other)
    }
    found = [
        sorted(((h.start_ns, h.process) for h in f.holds), key=lambda h: _rank(history, h))
        for f in find_overlaps(Case(history))
    ]
    assert {(*one, *other) for one, other in found} == expected
    assert len(found) == len(expected)


def _rank(history: History, hold: tuple[int, int | str]) -> int:
    return [(h.start_ns, h.process) for h in history.holds].index(hold)


@settings(max_examples=300)
@given(wild_worlds())
def test_stale_writes_by_definition(world: World) -> None:
    history = world.history()
    writes = Case(history).ledger.writes
    expected = {
        late.seq
        for n, late in enumerate(writes)
        if any(
            late.hold and early.hold and granted_before(late.hold, early.hold)
            for early in writes[:n]
        )
    }
    assert {
        f.operations[1].answer.seq for f in find_stale(Case(history)) if f.operations[1].answer
    } == (expected)


@settings(max_examples=300)
@given(wild_worlds(), st.randoms(use_true_random=False))
def test_the_watch_counts_what_the_judge_finds(world: World, choices: object) -> None:
    """Whatever the order in which the clients' files are read."""
    events = [event for event in world.events() if event.process != "storage"]
    expected = len(list(find_overlaps(Case(History.of(events)))))
    files: dict[object, list[Event]] = {}
    for event in events:
        files.setdefault(event.process, []).append(event)
    watch = OverlapWatch(Terms())
    queues = list(files.values())
    while queues:
        queue = choices.choice(queues)  # type: ignore[attr-defined]
        watch.feed(queue.pop(0))
        queues = [queue for queue in queues if queue]
    assert watch.overlaps == expected
    assert watch.holders() == {}


@given(wild_worlds())
def test_the_watch_forgets_what_is_settled_without_harm(world: World) -> None:
    events = [event for event in world.events() if event.process != "storage"]
    watch = OverlapWatch(Terms())
    for event in events:
        watch.feed(event)
        watch.settle(event.time)
    assert watch.overlaps == len(list(find_overlaps(Case(History.of(events)))))


@settings(max_examples=300)
@given(wild_worlds(), st.integers(1, 4), st.data())
def test_the_watch_agrees_on_locks_that_more_than_one_may_hold(
    world: World, permits: int, data: st.DataObject
) -> None:
    """Whatever the order in which the clients' files are read."""
    terms = Terms(permits=permits)
    events = []
    for event in replace(world, terms=terms).events():
        asks = event.f == "acquire" and event.type is EventType.INVOKE
        shared = asks and permits == 1 and data.draw(st.booleans())
        if event.process != "storage":
            events.append(msgspec.structs.replace(event, shared=shared))
    expected = len(list(find_overlaps(Case(History.of(events)))))
    watch = OverlapWatch(terms)
    order = data.draw(st.permutations(sorted({str(event.process) for event in events})))
    for event in sorted(events, key=lambda event: order.index(str(event.process))):
        watch.feed(event)
    assert watch.overlaps == expected


@settings(max_examples=300)
@given(wild_worlds(), st.integers(2, 4))
def test_crowds_by_definition(world: World, permits: int) -> None:
    history = replace(world, terms=Terms(permits=permits)).history()
    expected = [
        hold.start_ns
        for n, hold in enumerate(history.holds)
        if sum(_in_common(other, hold) for other in history.holds[:n]) >= permits
    ]
    assert [f.time_ns for f in find_overlaps(Case(history))] == expected
