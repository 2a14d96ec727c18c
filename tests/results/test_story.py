"""The words: built from small histories that are written out by hand."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest

from lockcheck.checker.case import Case
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.checker.finding import Blame, Code, Counts, Culprit, Finding, Judgement, Verdict
from lockcheck.history import Effect, Event, EventType, F, History, Hold, Operation, Stall
from tests.results import story

MS = 1_000_000
LEASE_MS = 1000
NO_COUNTS = Counts(0, 0, 0, 0, 0, 0, 0)


@dataclass
class Recording:
    """Writes a history by hand: every method takes the time in ms."""

    terms: dict[str, object] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    seq: int = 0
    faults: int = 0
    written: object = None  # what is read next

    def add(self, ms: float, process: int | str, kind: str, f: str, **more: object) -> None:
        values = {"time": round(ms * MS), "process": process, "type": EventType(kind), "f": f}
        self.events.append(Event(**{**values, **more}))  # type: ignore[arg-type]

    def both(
        self, ms: float, client: int, f: str, *, took: float, asked: dict[str, object],
        kind: str = "ok", **answer: object,
    ) -> None:  # fmt: skip
        key = asked.pop("key", "k1")
        self.add(ms, client, "invoke", f, key=key, node=f"c{client}", **asked)
        self.add(ms + took, client, kind, f, key=key, node=f"c{client}", **answer)

    def acquire(self, ms: float, client: int, key: str = "k1", token: int | None = None) -> None:
        asked: dict[str, object] = {"key": key, "ttl_ms": LEASE_MS}
        self.both(ms, client, F.ACQUIRE, took=1.2, asked=asked, token=token)

    def held(self, ms: float, client: int, key: str = "k1") -> None:
        asked: dict[str, object] = {"key": key, "ttl_ms": LEASE_MS}
        self.both(ms, client, F.ACQUIRE, took=0.8, asked=asked, kind="fail", error="held")

    def read(self, ms: float, client: int, value: object, key: str = "k1") -> None:
        self.seq += 1
        self.both(ms, client, F.READ, took=0.4, asked={"key": key}, value=value, seq=self.seq)

    def write(self, ms: float, client: int, value: str, base: object, **more: object) -> None:
        self.seq += 1
        asked = {"value": value, "base": base, "key": more.pop("key", "k1")}
        asked["token"] = more.pop("token", None)
        self.written = value
        self.both(ms, client, F.WRITE, took=0.5, asked=asked, seq=self.seq)

    def refused(
        self, ms: float, client: int, value: str, base: object, *, token: int, error: str
    ) -> None:
        self.seq += 1
        asked: dict[str, object] = {"value": value, "base": base, "token": token}
        self.both(ms, client, F.WRITE, took=0.5, asked=asked, kind="fail", error=error)
        self.add(
            1e7, "storage", "fail", F.WRITE, key="k1", value=value, base=base, token=token,
            seq=self.seq, of=client, error=error,
        )  # fmt: skip

    def release(self, ms: float, client: int, key: str = "k1", kind: str = "ok") -> None:
        error = "not-owner" if kind == "fail" else None
        self.both(ms, client, F.RELEASE, took=0.6, asked={"key": key}, kind=kind, error=error)

    def pause(self, ms: float, client: int, until_ms: float, proven: bool = True) -> None:
        self.faults += 1
        node, number = f"c{client}", self.faults
        self.add(ms, "nemesis", "invoke", "pause", node=node, fault=number)
        if proven:
            proof = "5 of 5 threads in state T"
            self.add(ms + 2.1, "nemesis", "ok", "pause", node=node, fault=number, value=proof)
        else:
            error = "3 of 5 threads in state T"
            self.add(ms + 2.1, "nemesis", "info", "pause", node=node, fault=number, error=error)
        self.add(until_ms - 1, "nemesis", "invoke", "heal", node=node, fault=number)
        self.add(until_ms, "nemesis", "ok", "heal", node=node, fault=number)

    def history(self) -> History:
        terms = {"backend": "redlock", "workload": "register", "ttl-ms": LEASE_MS, **self.terms}
        first = Event(0, "run", EventType.INFO, "terms", value=terms)
        return History.of([first, *sorted(self.events, key=lambda event: event.time)])


def outlived_lease(run: Recording, ms: float = 100, first: int = 2, second: int = 4) -> None:
    """`first` is paused, its lease runs out, `second` writes, `first` writes on the old value."""
    base, later, old = f"c{first}-{int(ms)}", f"c{second}-{int(ms)}", run.written
    run.acquire(ms, first)
    run.read(ms + 2, first, old)
    run.pause(ms + 3, first, ms + 1300)
    run.held(ms + 900, second)
    run.acquire(ms + 1010, second)
    run.read(ms + 1013, second, old)
    run.write(ms + 1014, second, later, old)
    run.write(ms + 1301, first, base, old)
    run.release(ms + 1303, first, kind="fail")
    run.release(ms + 1400, second)


def judge(history: History, effect: Verdict = Verdict.VIOLATION) -> Judgement:
    """As much of a judge as these tests need: neighbours that overlap, and what they wrote."""
    findings: list[Finding] = []
    by_key: dict[str, list[Hold]] = {}
    for hold in history.holds:
        by_key.setdefault(hold.key, []).append(hold)
    for holds in by_key.values():
        for earlier, later in pairwise(holds):
            if later.start_ns < earlier.end_ns:
                findings += _findings(history, earlier, later, effect)
    findings.sort(key=lambda finding: finding.time_ns)
    writes = [o for o in history.operations if o.f == F.WRITE]
    refused = sum(1 for o in writes if o.failed)
    counts = Counts(
        operations=len(history.operations),
        acquisitions=len(history.holds),
        holders=len({hold.node for hold in history.holds}),
        faults=sum(1 for fault in history.faults if fault.proven_ns is not None),
        writes_accepted=len(writes) - refused,
        writes_refused=refused,
        stale_writes_refused=refused,
    )
    verdict = Verdict.merge(finding.effect for finding in findings)
    return Judgement(verdict, tuple(findings), (), counts, case=Case(history))


def _findings(history: History, earlier: Hold, later: Hold, effect: Verdict) -> list[Finding]:
    def writes(hold: Hold) -> list[Operation]:
        return [
            o
            for o in history.operations
            if o.f == F.WRITE
            and o.ok
            and o.process == hold.process
            and o.key == hold.key
            and hold.start_ns <= o.start_ns <= hold.end_ns
        ]

    until_ns = earlier.promised_until_ns(LEASE_MS) or 0
    fault = next(
        (
            f
            for f in history.faults
            if earlier.node in f.nodes and f.touches(earlier.start_ns, earlier.end_ns)
        ),
        None,
    )
    stalls = tuple(
        s
        for s in history.stalls
        if s.node == earlier.node and s.start_ns < earlier.end_ns and s.end_ns > earlier.start_ns
    )
    who = Culprit.MACHINE if stalls and not fault else Culprit.HOLDER
    effect = Verdict.UNKNOWN if who is Culprit.MACHINE else effect
    blame = Blame(who, earlier.end_ns - until_ns, until_ns, fault, stalls)
    both_ns = min(earlier.end_ns, later.end_ns) - later.start_ns
    overlap = Finding(
        Code.OVERLAP, later.key, later.start_ns, effect, (earlier, later), (), both_ns, blame
    )
    found = [overlap]
    newer = writes(later)
    late = [w for w in writes(earlier) if newer and w.start_ns > newer[0].start_ns]
    for write in late:
        end_ns = write.end_ns or write.start_ns
        too_late_ns = write.start_ns - until_ns
        evidence = (newer[0], write)
        stale = replace(overlap, code=Code.STALE_WRITE, operations=evidence, time_ns=end_ns)
        stale = replace(stale, length_ns=too_late_ns)
        found.append(stale)
        if write.invoke.base == newer[0].invoke.base:
            found.append(replace(stale, code=Code.LOST_UPDATE))
    return found


def simulate(run: Recording, rounds: int, *, trouble: int = 0, guard: bool = False) -> None:
    """Five clients in turn; every `trouble` rounds one is paused beyond its lease."""
    dice = random.Random(7)
    now, token, mark, keys = 20.0, 30, "none", ("k1", "k2", "k3")
    marks = dict.fromkeys(keys, mark)
    for number in range(1, rounds + 1):
        client, other = dice.sample(range(1, 6), 2)
        if trouble and number % trouble == 0:
            if guard:
                _guarded_trouble(run, now, client, other, token + 1)
                token += 2
            else:
                outlived_lease(run, now, client, other)
            now += 1500
            continue
        token += 1
        key = keys[number % 3] if run.terms.get("keys") else "k1"
        run.acquire(now, client, key, token if guard else None)
        run.held(now + 2, other, key)
        run.read(now + 3, client, marks[key], key)
        marks[key], base = f"c{client}-{number}", marks[key]
        work = dice.uniform(4, 20)
        run.write(now + work, client, marks[key], base, key=key, token=token if guard else None)
        run.release(now + work + 1, client, key)
        now += work + dice.uniform(3, 9)


def _guarded_trouble(run: Recording, ms: float, first: int, second: int, token: int) -> None:
    run.acquire(ms, first, token=token)
    run.read(ms + 2, first, None)
    run.pause(ms + 3, first, ms + 1300)
    run.acquire(ms + 1010, second, token=token + 1)
    run.write(ms + 1014, second, f"c{second}-{int(ms)}", None, token=token + 1)
    error = f"fenced: token {token} is below {token + 1}"
    run.refused(ms + 1301, first, f"c{first}-{int(ms)}", None, token=token, error=error)
    run.release(ms + 1303, first, kind="fail")
    run.release(ms + 1400, second)


@pytest.fixture
def incident() -> tuple[History, Judgement]:
    run = Recording()
    outlived_lease(run)
    history = run.history()
    return history, judge(history)


# --- verdicts ------------------------------------------------------------------------------


def test_headline_of_a_violation_says_what_and_whose(incident: tuple[History, Judgement]) -> None:
    words = story.detail(incident[1])
    assert words == (
        "1 acknowledged write lost, overwritten by 1 late write (from a client whose lock had "
        "gone to another), at 1.401 s. c2 slept through its lease on k1, then wrote at once, "
        "303 ms after its end, while c4 was let in."
    )


def test_headline_of_ok_counts_what_was_tried() -> None:
    run = Recording()
    simulate(run, 12)
    history = run.history()
    words = story.detail(judge(history))
    assert words.startswith("In 12 acquisitions by 5 clients without any fault ")
    assert words.endswith("no two clients held a lock at the same time.")


def test_headline_behind_a_guard_speaks_of_the_data() -> None:
    run = Recording(terms={"guard": "fence"})
    simulate(run, 8, trouble=4, guard=True)
    history = run.history()
    words = story.detail(judge(history, Verdict.OK))
    assert words.endswith(
        "holds overlapped twice; the guard refused all 2 late writes; no data was damaged."
    )


def test_headline_of_transactions_says_what_came_of_late_changes() -> None:
    run = Recording(terms={"guard": "transaction"})
    simulate(run, 8, trouble=4, guard=True)
    history = run.history()
    words = story.detail(judge(history, Verdict.OK))
    assert "2 changes came too late, and did not happen" in words


def test_headline_of_unknown_gives_the_doubt() -> None:
    doubts = (Doubt(DoubtCode.LEDGER_MISSING), Doubt(DoubtCode.NEVER_SHARED))
    case = Case(Recording().history())
    words = story.detail(Judgement(Verdict.UNKNOWN, (), doubts, NO_COUNTS, case=case))
    assert words == "This run cannot tell whether the lock is safe. (1 more doubt)"
    judgement = Judgement(Verdict.UNKNOWN, (), doubts, NO_COUNTS, case=case)
    assert story.headline(judgement).endswith("the fate of unanswered writes is unknown.")


# --- stories -------------------------------------------------------------------------------


def test_one_cause_is_one_incident(incident: tuple[History, Judgement]) -> None:
    _, judgement = incident
    codes = [finding.code for finding in judgement.findings]
    assert codes == [Code.OVERLAP, Code.STALE_WRITE, Code.LOST_UPDATE]
    [found] = story.incidents(judgement.findings)
    assert found.main.code is Code.OVERLAP
    assert len(found.findings) == 3


def test_steps_are_told_in_order(incident: tuple[History, Judgement]) -> None:
    history, judgement = incident
    told = story.tell_incident(history, story.incidents(judgement.findings)[0])
    assert [step.time_ns for step in told.steps] == sorted(step.time_ns for step in told.steps)
    why = (
        "late, since a later holder had written already; built on an old value, so the "
        "acknowledged write 1 of c4 is lost"
    )
    expected = [
        ("c2", "was granted k1 (lease 1.000 s)"),
        ("c2", "read k1: nothing written yet"),
        ("c2", "pause began, confirmed 2.1 ms later (5 of 5 threads in state T)"),
        ("c2", "its lease on k1 ran out: the lock may now go to somebody else"),
        (
            "c4",
            "was granted k1 (lease 1.000 s) at attempt 2, while c2 still held it: two holders",
        ),
        ("c4", "read k1: nothing written yet"),
        ("c4", "wrote c4-100; accepted as write 1"),
        ("c2", "pause healed: it runs again, still believing that it holds k1"),
        ("c2", f"wrote c2-100; accepted as write 2: {why}"),
        (
            "c2",
            "tried to release k1; the lock server refused: not-owner (it had lost it before)",
        ),
        ("c4", "released k1"),
    ]
    assert [(step.who, step.text) for step in told.steps] == expected
    harmful = [step.who for step in told.steps if step.kind is story.Kind.HARM]
    assert harmful == ["c2"]


def test_a_story_says_whose_fault_it_was_and_what_helps(
    incident: tuple[History, Judgement],
) -> None:
    history, judgement = incident
    told = story.tell(history, judgement.findings[0])
    assert told.title == (
        "c2 slept through its lease on k1 and still believed in it 303 ms after its end, while c4"
        " was let in"
    )
    assert told.blame == (
        "No one's, it is the limit of leases: c2 was paused, and could not notice that its lease "
        "had run out. The lock "
        "server was entitled to let c4 in. Injected at the time: pause of c2."
    )
    assert "--guard fence" in told.prevention
    assert "--guard cas" in told.prevention


def test_a_service_that_let_somebody_in_early(incident: tuple[History, Judgement]) -> None:
    history, judgement = incident
    overlap = judgement.findings[0]
    jump = replace(history.faults[0], name="clock-jump", nodes=("n3",), effect=Effect.SKEWS)
    early = Blame(Culprit.SERVICE, 312 * MS, overlap.blame.promised_until_ns, jump)
    told = story.tell(history, replace(overlap, blame=early))
    assert "The lock server: it let c4 in 312 ms before the lease" in told.blame
    assert "clock-jump of n3" in told.blame
    assert "clock that can jump" in told.prevention


def test_a_release_that_took_somebody_elses_lock() -> None:
    run = Recording()
    run.acquire(0, 2)
    run.acquire(1010, 4)
    run.release(1200, 2)
    run.acquire(1250, 5)
    run.release(1300, 4)
    run.release(1400, 5)
    history = run.history()
    releaser, victim, next_holder = history.holds
    blame = Blame(Culprit.CLIENT, 0, None, release=releaser.release, released_by=releaser)
    assert releaser.release is not None
    taken = Finding(
        Code.FOREIGN_RELEASE, "k1", 1200 * MS, Verdict.VIOLATION, (releaser, victim),
        (releaser.release,), 200 * MS, blame,
    )  # fmt: skip
    overlap = Finding(
        Code.OVERLAP,
        "k1",
        next_holder.start_ns,
        Verdict.VIOLATION,
        (victim, next_holder),
        (),
        50 * MS,
        blame,
    )
    [incident] = story.incidents([taken, overlap])
    told = story.tell_incident(history, incident)
    texts = [f"{step.who} {step.text}" for step in told.steps]
    stolen = "c2 released k1, no longer its own: deleted c4's lock"
    assert texts.count(stolen) == 1
    let_in = "c5 was granted k1 (lease 1.000 s), while c4 still held it: two holders"
    assert texts.index(stolen) < texts.index(let_in)
    assert not any(text == "c2 released k1" for text in texts)
    assert "--backend redis" in told.prevention
    assert story.title(taken) == "A blind release by c2 took k1 from c4"
    assert told.title == "A blind release by c2 took k1 from c4, and c5 was let in"


def test_a_stalled_machine_is_not_the_locks_fault(incident: tuple[History, Judgement]) -> None:
    history, judgement = incident
    history = replace(history, faults=())
    stall = Stall("c2", 200 * MS, 1350 * MS)
    machine = Blame(Culprit.MACHINE, 0, None, stalls=(stall,))
    finding = replace(judgement.findings[0], blame=machine, effect=Verdict.UNKNOWN)
    told = story.tell(history, finding)
    assert "stalled for 1.150 s" in told.blame
    assert "quieter machine" in told.prevention
    assert any("the machine stalled" in step.text for step in told.steps)


def test_a_long_hold_is_told_in_short() -> None:
    run = Recording()
    run.acquire(0, 2)
    for number in range(100):
        run.write(10 + number * 10, 2, f"c2-{number}", f"c2-{number - 1}")
    run.acquire(1015, 4)
    run.release(1100, 2, kind="fail")
    run.release(1200, 4)
    history = run.history()
    told = story.tell(history, judge(history).findings[0])
    assert len(told.steps) <= story.MOST_STEPS
    assert any(step.text == "… and 96 more reads and writes like these" for step in told.steps)


# --- refused writes ------------------------------------------------------------------------


def test_refused_writes_say_who_was_too_late_and_by_how_much() -> None:
    run = Recording(terms={"guard": "fence"})
    _guarded_trouble(run, 100, 2, 4, 33)
    [write] = story.refused_writes(run.history())
    assert (write.node, write.token) == ("c2", 33)
    assert write.reason == "fenced: token 33 is below 34"
    assert write.newer_holder == "c4"
    assert write.time_ns == 1401 * MS + MS // 2  # when it was refused, after the newer token
    assert write.late_ns == 301 * MS + MS // 2


def test_without_the_storages_word_the_clients_answers_count() -> None:
    run = Recording(terms={"guard": "fence"})
    _guarded_trouble(run, 100, 2, 4, 33)
    run.events = [event for event in run.events if event.process != "storage"]
    [write] = story.refused_writes(run.history())
    assert write.reason == "fenced: token 33 is below 34"


def test_without_a_guard_nothing_is_refused(incident: tuple[History, Judgement]) -> None:
    assert story.refused_writes(incident[0]) == ()


# --- stale writes and lost ones ---------------------------------------------------------------


def test_a_stale_write_that_overwrote_nothing_is_counted_beside_the_lost_ones() -> None:
    run = Recording()
    outlived_lease(run)
    outlived_lease(run, 3000)
    history = run.history()
    judged = judge(history)
    overwrote = [f for f in judged.findings if f.code is Code.LOST_UPDATE]
    less = [f for f in judged.findings if f is not overwrote[-1]]
    words = story.detail(replace(judged, findings=tuple(less)))
    assert words.startswith(
        "1 acknowledged write lost and 2 late writes accepted (from a client whose lock had gone "
        "to another), 1 of which is what overwrote. "
    )
