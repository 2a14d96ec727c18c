"""Judging from columns finds what judging event by event finds."""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace as replaced

from lockcheck.checker import CHECKS, Code, Judgement, Verdict, judge, judge_scan
from lockcheck.checker.columns import screens
from lockcheck.checker.columns.screen import MOST_PLACES, WHOLE
from lockcheck.checker.columns.screens import places
from lockcheck.checker.columns.stored import stored
from lockcheck.history import Event, EventType, F, History, Notice, Terms
from lockcheck.history.event import STORAGE, encode_event, terms_event
from lockcheck.history.scan import Scan, scan
from lockcheck.native import core
from lockcheck.results.story.wording.codes import note
from tests.checker.dsl import events as told_by
from tests.long_histories import lock, register
from tests.simulation import Fault, FaultKind, Plan, Target, simulated_events

pytestmark = pytest.mark.skipif(core() is None, reason="the compiled reader was not built")


@dataclass
class Chaos:
    """Clients of a lock that works most of the time, and breaks every promise now and then."""

    seed: int
    keys: int = 1
    leases: bool = False
    tokens: bool = True
    wrong: float = 0.1
    keepers: bool = False
    patient: bool = False  # they wait in a queue, for longer than a lease
    lossy: float = 0.0  # how often a holder is told that it lost the lock
    tempo: int = 1  # how slow it is
    changes: float = 0.0  # how often clients change what the lock protects, with it or without
    partial: bool = False
    kept: dict[int, tuple[int, str]] = field(default_factory=dict)
    time: int = 0
    token: int = 0
    owner: dict[str, int] = field(default_factory=dict)
    open: dict[int, tuple[str, str]] = field(default_factory=dict)
    mine: dict[int, str] = field(default_factory=dict)
    next_process: int = 4

    def __post_init__(self) -> None:
        self.choices = random.Random(self.seed)
        self.processes = [0, 1, 2, 3]

    def history(self, steps: int) -> list[Event]:
        terms = Terms(ttl_ms=1 if self.leases else None, partial=self.partial)
        said = self.choices.random() < 0.5 or self.leases or self.partial
        events = [terms_event(terms)] if said else []
        for _ in range(steps):
            events += self.step()
        return events

    def step(self) -> Iterator[Event]:
        client = self.choices.randrange(4)
        process = self.processes[client]
        self.time += self.tempo * self.choices.choice((0, 1, 1, 5, 100_000, 700_000))
        if self.keepers and self.choices.random() < 0.3:
            yield from self.keep(client, process)
            return
        if self.changes and process not in self.open and self.choices.random() < self.changes:
            yield from self.change(process)
        elif process not in self.open:
            yield self.ask(process)
        elif (told := self.answer(process)) is not None:
            yield told
            if told.type is EventType.INFO:
                self.processes[client], self.next_process = self.next_process, self.next_process + 1
        elif process in self.mine and self.choices.random() < self.wrong / 40:
            yield self.event(process, EventType.INFO, Notice.LOST, self.mine[process])
        if self.lossy and self.choices.random() < self.lossy:
            yield from self.lose()

    def lose(self) -> Iterator[Event]:
        """Most of the time it leaves it at that, and the service knows of it, too."""
        idle = [process for process in self.mine if process not in self.open]
        if not idle:
            return
        process = self.choices.choice(idle)
        key = self.mine[process]
        yield self.event(process, EventType.INFO, Notice.LOST, key)
        if self.choices.random() < 0.7:
            del self.mine[process]
            if self.owner.get(key) == process and self.choices.random() < 0.7:
                del self.owner[key]

    def keep(self, client: int, process: int) -> Iterator[Event]:
        """The client's keeper renews, for whom it renewed before or for whom it is now."""
        keeper = 1_000 + client
        if keeper not in self.kept:
            if process in self.mine:
                self.kept[keeper] = process, self.mine[process]
                yield self.renewal(keeper, EventType.INVOKE)
            return
        process, key = self.kept[keeper]
        fits = (self.owner.get(key) == process) != (self.choices.random() < self.wrong)
        kind = EventType.OK if fits else EventType.FAIL
        yield self.renewal(
            keeper, EventType.INFO if self.choices.random() < self.wrong / 3 else kind
        )
        del self.kept[keeper]

    def renewal(self, keeper: int, kind: EventType) -> Event:
        process, key = self.kept[keeper]
        of = process if kind is EventType.INVOKE else None
        return Event(self.time, keeper, kind, F.RENEW, key=key, of=of)

    def change(self, process: int) -> Iterator[Event]:
        """What it holds, or anything."""
        f = self.choices.choice((F.WRITE, F.CAS, F.ADD))
        value = [self.time, 0] if f == F.CAS else self.time
        key = self.mine.get(process)
        if key is None or self.choices.random() < self.wrong:
            key = f"k{self.choices.randrange(self.keys)}"
        for kind in (EventType.INVOKE, self.choices.choice((EventType.OK, EventType.FAIL))):
            yield replaced(self.event(process, kind, f, key), value=value)

    def ask(self, process: int) -> Event:
        key = self.mine.get(process)
        odd = self.choices.random() < self.wrong
        f = F.ACQUIRE if (key is None) != odd else self.choices.choice((F.RELEASE, F.RENEW))
        if key is None or odd:
            key = f"k{self.choices.randrange(self.keys)}"
        self.open[process] = (f, key)
        return self.event(process, EventType.INVOKE, f, key)

    def answer(self, process: int) -> Event | None:
        f, key = self.open[process]
        odd = self.choices.random() < self.wrong
        owner = self.owner.get(key)
        fits = owner is None if f == F.ACQUIRE else owner == process
        patience = 1.0 if self.patient else 0.9
        if not fits and not odd and f == F.ACQUIRE and self.choices.random() < patience:
            return None  # it waits
        del self.open[process]
        kind = EventType.OK if fits != odd else EventType.FAIL
        if self.choices.random() < self.wrong / 3:
            kind = EventType.INFO
        if kind is EventType.OK and f == F.ACQUIRE:
            self.owner[key], self.mine[process] = process, key
            self.token += 0 if odd else 1
        elif f == F.RELEASE:
            self.mine.pop(process, None)
            if owner == process:
                del self.owner[key]
        granted = kind is EventType.OK and f == F.ACQUIRE and self.tokens
        return self.event(process, kind, f, key, self.token if granted else None)

    def event(
        self, process: int, kind: EventType, f: str, key: str, token: int | None = None
    ) -> Event:
        node = f"n{process % 4}" if self.seed % 3 else None
        return Event(self.time, process, kind, f, key=key, node=node, token=token)


def whole(scan: Scan) -> str:
    return screens.whole(scan, stored(scan))


def scanned(events: list[Event]) -> Scan:
    text = b"".join(encode_event(event) + b"\n" for event in events)
    found = scan(lambda: io.BytesIO(text), "h")
    assert found is not None
    return found


def told(judgement: Judgement) -> list[tuple[object, ...]]:
    return [
        (f.code, f.key, f.time_ns, f.effect, f.length_ns, f.holds, f.operations, f.blame, note(f))
        for f in judgement.findings
    ]


def refused(times: int, key: str = "k", process: int = 2, every: int = 300) -> str:
    at = (10 + n * every for n in range(times))
    return "\n".join(f"{process} acquire:{key} {ms}-{ms + 1}!" for ms in at)


HELD = "1 acquire 0-1 \n 1 release 2-3"
WROTE = "1 acquire 0-1 \n 1 write 2-3 a seq=1"
BASED = "1 acquire 0-1 \n 1 write 2-3 a base=z seq=1"
TWO = "1 acquire:a 0-1 \n 1 release:a 2-3 \n 1 acquire:b 4-5"
WHILE_FREE = "its lock may have been refused while it was free"
LOOSE_ENDS = "its storage remembers something else than its clients"
UNFELT = "a fault that nobody may have felt"
CIRCLE = """
    1 acquire:a 0-1
    2 acquire:b 0-1
    1 acquire:b 2-2000!
    2 acquire:a 3-"""
BLIND = "its releases do not look what they remove"
UNLOCKED = "it tells of what was done without the lock"
SUSPECTED = [
    (LOOSE_ENDS, f"{WROTE} \n 1 write 3-4 b base=z seq=2 \n 1 write 5-6 c base=a seq=3", {}),
    (LOOSE_ENDS, f"{BASED} \n 1 write 3-4 b base=z seq=2", {}),
    (LOOSE_ENDS, f"{BASED} \n 1 write 3-4 b base=a seq=2 \n 1 write 5-6 c base=a seq=3", {}),
    (LOOSE_ENDS, f"{BASED} \n 1 write 3-4? b base=z \n 1 write 5-6 c base=b seq=3", {}),
    (LOOSE_ENDS, f"{BASED} \n 1 write 3-4 b base=a seq=1", {}),
    (LOOSE_ENDS, f"{BASED} \n 1 write 3-4! b base=a seq=2", {}),
    (LOOSE_ENDS, BASED, {"stores": True}),
    (
        LOOSE_ENDS,
        f"{BASED} \n 2 acquire 4-5 \n 2 write 6-7 b base=a seq=3 \n 1 write 6-7 c base=b seq=4",
        {},
    ),
    (LOOSE_ENDS, f"{WROTE} \n 1 write 3-4 b base=c seq=2", {"ledger": True}),
    (LOOSE_ENDS, f"{WROTE} \n storage write 1 b seq=2", {"ledger": True}),
    (LOOSE_ENDS, "1 acquire 0-1 \n 1 write 2-3! a seq=1 error=busy", {"ledger": True}),
    ("a fault was never healed", f"{HELD} \n fault pause n1 5-", {}),
    ("holders of several locks were struck", f"{TWO} \n fault kill n1 5-6", {}),
    ("its lock promises fairness", HELD, {"fair": True}),
    ("its holds last as long as sessions", HELD, {"session": True}),
    ("several may hold its lock", HELD, {"permits": 2}),
    ("its lock is entered again, or released by anyone", HELD, {"model": "reentrant"}),
    ("its lock is entered again, or released by anyone", HELD, {"model": "mutex"}),
    (BLIND, HELD + ' = {"removed": 1, "blind": true}', {}),
    (UNLOCKED, "1 acquire 0-1! \n 1 write 2-3 a", {}),
    (UNLOCKED, "2 acquire 0-1 \n 1 write 2-3 a", {}),
    (UNLOCKED, "1 acquire 0-1 \n 1 run:x 2-3 job", {}),
    (UNLOCKED, "2 acquire 0-1 \n 1 add 2-3 1", {"partial": True}),
    (WHILE_FREE, f"{HELD} \n {refused(5)}", {}),
    (WHILE_FREE, refused(5), {}),
    (WHILE_FREE, f"1 acquire:j 90-91 \n {refused(5)}", {}),
    (WHILE_FREE, f"{refused(5)} \n 1 acquire 1300-1301", {}),
    (WHILE_FREE, f"1 acquire 0-1 \n {refused(5)}", {"ttl_ms": 4}),
    (WHILE_FREE, f"1 acquire 0-1? \n {refused(5)}", {"ttl_ms": 4}),
    (WHILE_FREE, f"1 acquire 0-1 \n 1 lost 2 \n {refused(5)} \n 1 read 1400-1401", {"ttl_ms": 4}),
    ("clients waited for a lock while holding another one", CIRCLE, {}),
    ("", HELD, {}),
    ("", "1 acquire 0-1 \n 1 lost 5", {}),
    ("", HELD + ' = {"removed": 1}', {}),
    ("", f"{HELD} \n fault pause n1 5-6", {"faults": ("pause",)}),
    (UNFELT, f"{TWO} \n fault pause n1 5-6", {}),
    (UNFELT, "1 acquire 0-1 \n fault pause n1 5-6", {}),
    ("", "1 acquire 0-1 \n 1 write 2-3 a", {}),
    ("", "1 acquire 0-1 \n 1 add 2-3 1", {}),
    ("", "1 write 0-1 a \n 2 acquire 1-2", {"partial": True}),
    ("", CIRCLE.replace("2000", "900"), {}),
    ("", CIRCLE.replace("2 acquire:a 3-", "2 release:b 2-3 \n 2 acquire:a 4-"), {}),
    ("", "1 write:x 2-3 a seq=1", {}),
    ("", f"{BASED} \n 1 write 3-4 b base=a seq=2 \n 1 write 5-6 c base=b seq=3", {}),
    ("", f"{BASED} \n 1 write 3-4? b base=a \n 1 write 5-6 c base=b seq=3", {}),
    ("", f"{BASED} \n 1 write 5-6 c base=b seq=3", {}),
    ("", f"{WROTE} \n 1 write 3-4 b base=a seq=2", {"ledger": True}),
    ("", f"{WROTE} \n 1 write 3-4! b seq=2 error=fenced: late", {"ledger": True}),
    ("", "1 acquire 0-1 \n 1 write:x 2-3 a", {}),
    ("", f"{HELD} \n {refused(4)}", {}),
    ("", f"{refused(4)} \n {refused(4, 'j', 3)}", {}),
    ("", refused(5, every=200), {}),
    ("", f"1 acquire 0-1 \n {refused(9)} \n 1 release 2500-2501", {}),
    ("", f"1 acquire 0-1 \n {refused(5)}", {}),
    ("", f"1 acquire 0-1? \n {refused(5)}", {}),
    ("", f"1 acquire 0-1 \n {refused(5)}", {"ttl_ms": 400}),
    ("", "1 acquire:a 0-1 \n 1 release:a 2-3 \n 1 acquire:b 4-5 \n 2 acquire:a 5-6", {}),
]


@pytest.mark.parametrize(("reason", "lines", "terms"), SUSPECTED)
def test_why_events_are_needed(reason: str, lines: str, terms: dict[str, Any]) -> None:
    assert whole(scanned(told_by(lines, **terms))) == reason


def test_a_check_without_a_screen_needs_all_events(monkeypatch: pytest.MonkeyPatch) -> None:
    told = scanned(told_by("1 acquire 0-1 \n 1 release 2-3"))
    assert not whole(told)
    monkeypatch.setitem(CHECKS, "odd", replace(CHECKS["overlap"], code="odd", screen=WHOLE))
    assert whole(told) == "a check that has no screen"
    monkeypatch.setitem(CHECKS, "odd", replace(CHECKS["odd"], workload="tally"))
    assert not whole(told)
    of_the_workload = scanned(told_by("1 acquire 0-1 \n 1 release 2-3", workload="tally"))
    assert whole(of_the_workload) == "a check that has no screen"


@pytest.mark.parametrize(("turn", "blamed"), [("2 turn 1499", "service"), ("", "holder")])
def test_a_turn_counts_either_way(turn: str, blamed: str) -> None:
    lines = (
        "1 acquire 0-1",
        "2 acquire 2-1500",
        turn,
        "3 acquire 1510-1511",
        "2 release 1520-1521!",
    )
    told = told_by("\n".join((*lines, "3 release 1530-1531")), ttl_ms=1000)
    for judgement in (judge(History.of(told)), judge_scan(scanned(told))):
        [overlap] = [f for f in judgement.findings if f.code == "overlap"]
        assert overlap.blame.who == blamed
        linearizable = [d.linearizable for d in judgement.definitions]
        assert linearizable == ["violation" if turn else "ok"]


def a_run(seed: int) -> list[Event]:
    """With a storage, whatever strikes it, and a lock that is right or wrong."""
    choices = random.Random(seed)
    kinds = choices.sample((FaultKind.PAUSE, FaultKind.CRASH, FaultKind.AMNESIA), 1)
    kinds += choices.sample((FaultKind.PARTITION, FaultKind.CLOCK_JUMP), choices.randint(0, 1))
    targets = (Target.HOLDER, Target.CLIENT, Target.SERVER)
    faults = [Fault(kind, choices.choice(targets), (20, 200), (50, 300)) for kind in kinds]
    network = (FaultKind.PARTITION, FaultKind.CRASH, FaultKind.AMNESIA, FaultKind.CLOCK_JUMP)
    plan = Plan(
        seed=seed,
        lock=choices.choice(("single", "majority", "fenced")),
        guard=choices.choice(("none", "none", "fence", "cas")),
        faults=tuple(replace(f, target=Target.SERVER) if f.kind in network else f for f in faults),
        until_ms=choices.choice((700, 2_000)),
        keys=choices.choice((1, 1, 2)),
        check_validity=choices.random() < 0.2,
        renews=choices.random() < 0.2,
        keeper_ms=choices.choice((0, 0, 20)),
    )
    return list(simulated_events(plan))


def without_testimony(seed: int) -> list[Event]:
    """What somebody's own clients may tell of a storage that numbers its writes."""
    return [event for event in a_run(seed) if event.process != STORAGE and event.f != "terms"]


@given(st.integers(0, 2**32), st.booleans())
def test_runs_with_faults_and_a_storage_are_judged_alike(seed: int, testifies: bool) -> None:
    events = a_run(seed) if testifies else without_testimony(seed)
    judgement = judge_scan(scanned(events))
    expected = judge(History.of(events))
    counts = replace(judgement.counts, held_together=expected.counts.held_together)
    assert replace(judgement, counts=counts) == expected


def test_most_runs_are_judged_from_columns_and_some_are_wrong() -> None:
    """Else the test above would show nothing."""
    found: Counter[str] = Counter()
    for seed in range(120):
        told = scanned(a_run(seed))
        if not whole(told):
            judgement = judge_scan(told)
            found["cleared"] += len(judgement.case.history.operations) < len(told.table)
            found.update({finding.code for finding in judgement.findings})
    assert found["cleared"] > 40
    assert min(found["overlap"], found["stale-write"], found["lost-update"]) > 2


def test_storages_that_do_not_testify_are_judged_from_columns_too() -> None:
    """Else the test above would show nothing of them."""
    scans = [scanned(without_testimony(seed)) for seed in range(60)]
    cleared = [told for told in scans if len(told.columns.numbered) and not whole(told)]
    wrong = [told for told in scans if judge_scan(told).of(Code.LOST_UPDATE)]
    assert len(cleared) > 10
    assert len(wrong) > 2


@st.composite
def slow_days(draw: st.DrawFn) -> list[Event]:
    """Clients that ask for one lock now and then, and are answered anything."""
    at, lines = 0, []
    for _ in range(draw(st.integers(8, 20))):
        at += draw(st.sampled_from((1, 90, 250)))
        who, f = draw(st.integers(1, 3)), draw(st.sampled_from(("acquire",) * 5 + ("release",)))
        lines.append(f"{who} {f} {at}-{at + 0.5}{draw(st.sampled_from(('!', '!', '!', '', '?')))}")
        if draw(st.sampled_from((True, *(False,) * 8))):
            lines.append(f"{who} lost {at + 0.7}")
    lease = draw(st.sampled_from((None, 20, 300)))
    return told_by(*lines, ttl_ms=lease, partial=draw(st.booleans()))


@given(slow_days())
def test_refusals_while_nobody_holds_it_are_judged_alike(events: list[Event]) -> None:
    judgement, expected = judge_scan(scanned(events)), judge(History.of(events))
    assert judgement.verdict == expected.verdict
    assert judgement.findings == expected.findings


@st.composite
def slow_storages(draw: st.DrawFn) -> list[Event]:
    """One that numbers what it serves, and serves old values now and then."""
    stored, lines, lag = ["v0"], [], draw(st.sampled_from((0, 0, 1, 2)))
    for number in range(1, draw(st.integers(3, 12))):
        at, who = 10 * number, draw(st.integers(1, 3))
        told = draw(st.sampled_from(("", "", f"seq={number}", f"seq={number}")))
        if draw(st.booleans()):
            stored.append(f"v{number}")
            base = draw(st.sampled_from((stored[-2], "v0")))
            lines.append(f"{who} write {at}-{at + 1} v{number} {told} base={base}")
        else:
            value = stored[-1 - draw(st.integers(0, min(lag, len(stored) - 1)))]
            lines.append(f"{who} read {at}-{at + 1} {told} = {value}")
    return told_by(*lines, ledger=draw(st.booleans()), partial=draw(st.booleans()))


@given(slow_storages())
def test_old_values_are_judged_alike(events: list[Event]) -> None:
    judgement, expected = judge_scan(scanned(events)), judge(History.of(events))
    assert judgement.verdict == expected.verdict
    assert judgement.findings == expected.findings


chaos = st.builds(
    Chaos,
    seed=st.integers(0, 2**32),
    keys=st.integers(1, 2),
    leases=st.booleans(),
    tokens=st.booleans(),
    wrong=st.sampled_from([0.0, 0.03, 0.1, 0.4]),
    keepers=st.booleans(),
    patient=st.booleans(),
    lossy=st.sampled_from([0.0, 0.0, 0.1]),
    tempo=st.sampled_from([1, 1_000]),  # then some wait in a circle for more than a second
    changes=st.sampled_from([0.0, 0.2]),
    partial=st.booleans(),
)


# Of any of its clients an operation may be missing.
ANY_OF_FOUR = Chaos(1, leases=True, tokens=False, wrong=0.03, patient=True, lossy=0.1, partial=True)


@given(chaos, st.integers(0, 120))
@example(Chaos(7, tokens=False, lossy=0.1), 7)  # told of its loss when it has just been let in
@example(ANY_OF_FOUR, 73)
def test_columns_and_events_are_judged_alike(chaos: Chaos, steps: int) -> None:
    events = chaos.history(steps)
    judgement = judge_scan(scanned(events))
    expected = judge(History.of(events))
    assert told(judgement) == told(expected)
    seen, of = judgement.counts, expected.counts
    assert seen.held_together <= of.held_together  # at least, where only places were looked at
    whole = replace(seen, held_together=of.held_together)
    assert replace(judgement, counts=whole) == expected
    known = expected.case.history.operations  # all of them, with clocks set as they were
    assert all(operation in known for operation in judgement.case.history.operations)


def test_most_of_it_is_judged_from_columns_and_some_of_it_is_wrong() -> None:
    """Else the test above would show nothing."""
    scans = [scanned(Chaos(seed, wrong=seed % 3 / 50).history(80)) for seed in range(200)]
    cleared = [scan for scan in scans if not whole(scan)]
    suspected = [scan for scan in cleared if places(scan)]
    wrong = [scan for scan in suspected if judge_scan(scan).findings]
    assert len(cleared) > 100
    assert len(wrong) > 30
    assert len(cleared) - len(suspected) > 20


def test_circles_and_changes_without_the_lock_are_found() -> None:
    """Else the test that compares both ways would show nothing of them."""
    found: Counter[str] = Counter()
    for seed in range(500):
        chaos = Chaos(seed, keys=2, wrong=0.1, patient=True, tempo=1_000, changes=0.1)
        told = scanned(chaos.history(100))
        found.update({finding.code for finding in judge_scan(told).findings})
        found["cleared"] += not whole(told)
    assert min(found["deadlock"], found["unlocked-section"], found["cleared"]) > 5, found


def test_where_too_much_is_suspected_it_is_looked_at_all() -> None:
    """The only overlap lies behind more innocent places than are looked at one by one: holds that
    their clients, who watch their validity, no longer believed in when the next one was let in."""
    terms = Terms(ttl_ms=1_000, check_validity=True)
    events = [terms_event(terms)]
    for number in range(MOST_PLACES + 5):
        for client, later in ((0, 0), (1, 1_000_000)):  # each two by themselves
            begin = 5_000_000 * number + later
            events += hold(client, begin, until=1_500_000, valid_ms=0.5)
    end = events[-1].time + 1_000_000
    events += hold(3, end, until=4_000_000, valid_ms=100.0)
    events += hold(4, end + 1_000_000, until=4_000_000, valid_ms=100.0)
    events.sort(key=lambda event: event.time)
    told = scanned(events)
    assert not whole(told)
    assert {len(groups) for groups in places(told).values()} == {MOST_PLACES}
    judgement = judge_scan(told)
    assert [f.code for f in judgement.findings if f.code == "overlap"] == ["overlap"]
    assert judgement == judge(History.of(events))


def hold(process: int, time: int, *, until: int, valid_ms: float) -> Iterator[Event]:
    yield Event(time, process, EventType.INVOKE, F.ACQUIRE, key="k")
    yield Event(time + 1, process, EventType.OK, F.ACQUIRE, key="k", valid_ms=valid_ms)
    yield Event(time + until, process, EventType.INVOKE, F.RELEASE, key="k")
    yield Event(time + until + 1, process, EventType.FAIL, F.RELEASE, key="k")


@pytest.mark.parametrize("lines", [lock(2_000), register(2_000), register(2_000, cas=True)])
def test_long_histories_of_what_works_are_judged_from_columns_alone(lines: Iterator[str]) -> None:
    """What waits at the end of any history, and what was not answered, must not cost that."""
    text = "".join(lines).encode()
    found = scan(lambda: io.BytesIO(text), "h")
    assert found is not None
    assert not whole(found)
    assert not places(found)
    assert judge_scan(found).verdict is Verdict.OK


def test_a_token_is_compared_with_all_before_it() -> None:
    """Not with the one that was answered just before: that was concurrent, and lower."""
    told = told_by("""
        0 acquire 1-10 token=5
        0 release 11-12
        1 acquire 2-13 token=3
        1 release 14-15
        2 acquire 16-17 token=4
        2 release 18-19""")
    judgement = judge_scan(scanned(told))
    assert [f.code for f in judgement.findings].count("token-regression") == 1
    assert judgement == judge(History.of(told))


def test_keepers_and_queues_are_judged_from_columns_too() -> None:
    """Else the test that compares both ways would show nothing of them."""
    found = dict.fromkeys(("revived", "overlap"), 0)
    for seed in range(300):
        chaos = Chaos(seed, leases=True, wrong=(0.1, 0.3)[seed % 2], keepers=True, patient=True)
        told = scanned(chaos.history(100))
        if whole(told) or not (told.table.owner != told.table.process).any():
            continue
        for finding in judge_scan(told).findings:
            found[finding.code] = found.get(finding.code, 0) + 1
    assert found["revived"] > 5
    assert found["overlap"] > 20


def test_losses_are_judged_from_columns_too() -> None:
    """Else the test that compares both ways would show nothing of them."""
    found, cleared = 0, 0
    for seed in range(40):
        told = scanned(Chaos(seed, leases=True, wrong=0.1, lossy=0.1).history(100))
        if not whole(told):
            judgement = judge_scan(told)
            cleared += any(event.f == Notice.LOST for event in judgement.case.history.events)
            found += len(judgement.findings)
    assert cleared > 8
    assert found > 8
