"""What is told by its evidence: a title, sentences and a page for each code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lockcheck.checker import CHECKS
from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Verdict
from lockcheck.checker.wording import Words
from lockcheck.history import Effect, FaultSpan
from tests.checker.dsl import history, ns
from tests.results import story
from tests.results.made_up import (
    CASES,
    Case,
    deadlock,
    double_run,
    found,
    judgement,
    revived,
    silent_loss,
    stuck,
    token_regression,
    unfair,
    unlocked_section,
)
from tests.results.test_report import report, words

TITLES = {
    Code.TOKEN_REGRESSION: "n2 was given the token 33 of k, although n1 had been given 34 before",
    Code.UNLOCKED_SECTION: "n1 went into the critical section of k without having been granted it",
    Code.SILENT_LOSS: "n1 had lost k and was not told for 749 ms",
    Code.REVIVED: "n1 renewed its lease on k after n2 had held it",
    Code.DOUBLE_RUN: "The job invoice-7 ran twice: on n1 and on n2",
    Code.STUCK: "k could not be acquired any more by n2 and n3",
    Code.STALE_READ: "The storage served n2 the old value v0 of k",
    Code.DENIED: "k was refused to n2 and n3 while it was free",
    Code.DEADLOCK: "n1, n2 and n3 wait for each other in a circle: nobody can go on",
    Code.UNFAIR: "n3 was granted k before n2, which asked earlier",
    Code.NOT_LINEARIZABLE: "No order of the operations on x explains the answers",
}
FAULTS = {
    Code.TOKEN_REGRESSION: "The lock server: it gave out a fencing token that was not",
    Code.UNLOCKED_SECTION: "The client n1: it went on although k had not been granted to it",
    Code.SILENT_LOSS: "The lock server: it let n1 lose k and did not tell it",
    Code.REVIVED: "The lock server: it renewed the lease of n1 although n2 had held k",
    Code.DOUBLE_RUN: "The client n2: it ran the job invoice-7 although that had run already",
    Code.STUCK: "The lock server: nobody had a right to k any more, and still it granted it",
    Code.STALE_READ: "The storage: it served v0 to n2 although it had accepted v1",
    Code.DENIED: "The lock server: it refused k although no client had a right to it any more",
    Code.DEADLOCK: "The clients n1, n2 and n3: each of them holds one lock and waits for another",
    Code.UNFAIR: "The lock server: it promises first come, first served, and granted k to a",
    Code.NOT_LINEARIZABLE: "The server that answered: its answers fit no order",
}
CURES = {
    Code.TOKEN_REGRESSION: "a counter that never goes back",
    Code.UNLOCKED_SECTION: "only after the answer that grants the lock",
    Code.SILENT_LOSS: "stop when it is over",
    Code.REVIVED: "compare the owner and extend in one atomic step",
    Code.DOUBLE_RUN: "write down, under the job's name",
    Code.STUCK: "must end without it",
    Code.STALE_READ: "not to a replica or a cache that may lag",
    Code.DENIED: "must end with its lease",
    Code.DEADLOCK: "Take locks in one order",
    Code.UNFAIR: "Let the lock server keep the queue",
    Code.NOT_LINEARIZABLE: "Every read and every write must go through one order",
}
EVIDENCE = {
    Code.TOKEN_REGRESSION: [
        "n1 was granted k (token 34)",
        "n2 was granted k (token 33)",
        "n2 its token 33 is not greater than 34, which n1 had been given",
    ],
    Code.UNLOCKED_SECTION: [
        "n1 acquire k: not granted: held (answered 1.0 ms later)",
        "n1 write x to k: done (answered 1.0 ms later)",
        "n1 worked on without having been granted the lock",
    ],
    Code.SILENT_LOSS: [
        "n2 was granted k (lease 100 ms), n1 still held it",
        "n1 had lost the lock a whole lease ago, and nobody had told it",
    ],
    Code.REVIVED: [
        "n2 was granted k (lease 100 ms), n1 still held it",
        "n1 renewed its lease on k",
        "n1 its renewal was granted, and n2 had held the lock",
    ],
    Code.DOUBLE_RUN: [
        "n1 run invoice-7 on k: done (answered 1.0 ms later)",
        "n2 run invoice-7 on k: done (answered 1.0 ms later)",
        "n2 the job invoice-7 ran once more",
    ],
    Code.STUCK: [
        "lock server granted k to nobody from here on",
        "n2 acquire k: not granted: held (answered 1.0 ms later)",
        "others … and 5 more attempts in evidence",
    ],
    Code.STALE_READ: [
        "n1 write v1 to k: done (answered 1.0 ms later)",
        "n2 read k: v0 (answered 1.0 ms later)",
        "storage served a value that it had replaced before",
    ],
    Code.DENIED: [
        "n1 released k",
        "lock server refused k to all who asked",
        "n2 acquire k: not granted: held (answered 1.0 ms later)",
    ],
    Code.DEADLOCK: [
        "n1 was granted k1",
        "n1 acquire k2: no answer came",
        "n3 acquire k1: no answer came",
        "clients from here on each waits for the next one in the circle",
    ],
    Code.UNFAIR: [
        "n2 asked for k",
        "n3 asked for k",
        "n3 was granted k",
        "n2 had asked earlier and was passed by n3",
    ],
    Code.NOT_LINEARIZABLE: [
        "process 0 write 1 to x: done (answered 10 ms later)",
        "process 2 read x: 2 (answered 6.0 ms later)",
        "process 3 read x: 1 (answered 4.0 ms later)",
        "lockcheck no order of the operations explains this",
    ],
}
BY_EVIDENCE = [code for code in Code if not CHECKS[code].words.by_holds]
each_code = pytest.mark.parametrize("code", BY_EVIDENCE)


def test_every_code_is_told_one_way_or_the_other() -> None:
    by_holds = {Code.OVERLAP, Code.STALE_WRITE, Code.LOST_UPDATE, Code.FOREIGN_RELEASE}
    assert set(BY_EVIDENCE) == set(Code) - by_holds
    assert set(CASES) == set(TITLES) == set(BY_EVIDENCE)


def test_of_two_codes_one_tells_the_cause() -> None:
    assert len({CHECKS[code].words.precedence for code in BY_EVIDENCE}) == len(BY_EVIDENCE)


@each_code
def test_title_headline_blame_and_cure(code: Code) -> None:
    case = CASES[code]()
    told = story.tell(case.history, case.finding)
    said = story.headline(judgement(case.history, case.finding))
    assert told.title == TITLES[code]
    assert said.startswith(TITLES[code])
    assert TITLES[code] not in story.detail(judgement(case.history, case.finding))
    assert told.blame.startswith(FAULTS[code])
    assert CURES[code] in told.prevention
    assert "{" not in told.blame + told.prevention


@each_code
def test_the_evidence_is_told_in_order(code: Code) -> None:
    case = CASES[code]()
    told = story.tell(case.history, case.finding)
    texts = [f"{step.who} {step.text}" for step in told.steps]
    places = [texts.index(text) for text in EVIDENCE[code]]
    assert places == sorted(places)
    assert len(set(texts)) == len(texts) or code in (Code.STUCK, Code.DENIED)
    assert [step.kind for step in told.steps].count(story.Kind.HARM) == 1


@each_code
def test_the_page_shows_it(code: Code) -> None:
    case = CASES[code]()
    text = words(report(case.history, judgement=judgement(case.history, case.finding)))
    assert text.count(TITLES[code].partition(" ")[2]) == 1
    assert all(line.partition(" ")[2] in text for line in EVIDENCE[code])
    assert CURES[code] in text
    assert "operation in evidence" in text


@pytest.mark.parametrize("who", Culprit)
@pytest.mark.parametrize("code", [Code.DEADLOCK, Code.UNLOCKED_SECTION, Code.STUCK])
def test_a_check_needs_no_more_than_a_name(
    code: Code, who: Culprit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its findings have: two holds, one or none."""
    words_alone = Words(one="oddity", many="oddities")
    odd = replace(CHECKS[code], code="odd", meaning="it is odd", words=words_alone)
    monkeypatch.setitem(CHECKS, "odd", odd)
    case = CASES[code]()
    finding = replace(case.finding, code="odd", blame=Blame(who, ns(5), None))
    told = story.tell(case.history, finding)
    assert told.title == "odd on k" or code is Code.DEADLOCK
    assert all((told.blame, told.prevention, *told.harm, *(step.text for step in told.steps)))
    judged = judgement(case.history, finding)
    assert "odd on" in story.headline(judged) or code is Code.DEADLOCK
    assert "odd on" in words(report(case.history, judgement=judged))


def test_the_first_letter_of_a_name_stays() -> None:
    case = unlocked_section()
    node = history("1@Node-1 acquire 0-1! error=held", "1@Node-1 write 2-3 x seq=1")
    named = replace(case.finding, operations=node.operations)
    said = story.headline(judgement(node, named))
    assert said.startswith("Node-1 went into the critical section of k")
    assert story.headline(judgement(node, double_run().finding)).startswith("The job invoice-7")


@pytest.mark.parametrize(
    ("who", "code", "blame"),
    [
        (Culprit.SERVICE, Code.DOUBLE_RUN, "The lock server: it let n2 in before n1 had released"),
        (Culprit.HOLDER, Code.DOUBLE_RUN, "The holder, n1: it went on for 5.0 ms after its"),
        (Culprit.HOLDER, Code.SILENT_LOSS, "The holder, n1: it went on for 5.0 ms after its"),
        (Culprit.MACHINE, Code.STUCK, "The machine that ran this test: its own clock jumped"),
    ],
)
def test_whoever_is_to_blame(who: Culprit, code: Code, blame: str) -> None:
    case = CASES[code]()
    told = story.tell(case.history, replace(case.finding, blame=Blame(who, ns(5), None)))
    assert told.blame.startswith(blame)


def test_the_fault_that_explains_it_is_named() -> None:
    case = stuck()
    fault = FaultSpan(
        1, "kill", ("r1",), Effect.ENDS, ns(300), None, ns(301), ns(900), "no process"
    )
    struck = replace(case.finding, blame=Blame(Culprit.SERVICE, 0, None, fault))
    assert story.tell(case.history, struck).blame.endswith("Injected at the time: kill of r1.")
    unexplained = story.tell(case.history, case.finding).blame
    assert "Nothing that was injected" not in unexplained  # nobody looked for one


def test_a_release_that_let_a_job_run_twice_is_told_as_such() -> None:
    case = double_run()
    release = case.history.holds[0].release
    blame = Blame(Culprit.CLIENT, 0, None, release=release, released_by=case.history.holds[0])
    told = story.tell(case.history, replace(case.finding, blame=blame))
    assert "it released a lock that was no longer its own" in told.blame
    assert "Compare and delete" in told.prevention


def test_behind_a_guard_a_lock_that_nobody_gets_is_not_the_guards_failure() -> None:
    told = history("1 acquire 0-1", "2 acquire 10-20!", guard="fence", workload="register")
    reasons = stuck().finding.reasons
    case = found(Code.STUCK, told, holds=(0,), operations=(1,), reasons=reasons)
    assert "The storage was to refuse" not in story.tell(told, case.finding).prevention


@pytest.mark.parametrize(
    ("tokens", "title"),
    [
        ((34, 34), "n2 was given the token 34 of k, the same as n1 before it"),
    ],
)
def test_tokens_are_told_as_they_are(tokens: tuple[int, int], title: str) -> None:
    first, second = tokens
    told = history(f"1 acquire 0-1 token={first}", f"2 acquire 3-4 token={second}")
    assert story.title(found(Code.TOKEN_REGRESSION, told, holds=(0, 1)).finding) == title


@pytest.mark.parametrize("code", [Code.STUCK, Code.UNFAIR, Code.SILENT_LOSS, Code.NOT_LINEARIZABLE])
def test_an_object_without_a_name_is_not_left_out(code: Code) -> None:
    title = story.title(replace(CASES[code]().finding, key=""))
    assert "  " not in title
    assert "on explains" not in title
    assert title[0].isupper() or title.startswith(("n1", "n3"))


# --- explanations ------------------------------------------------------------------------------


def test_why_it_is_certain() -> None:
    case = deadlock()
    [reason] = story.tell(case.history, case.finding).reasons
    assert reason.about == ""
    assert reason.sentences[0].startswith("n1 held 'k1' since 0.001 s and asked for 'k2'")
    text = words(report(case.history, judgement=judgement(case.history, case.finding)))
    places = [text.index(sentence) for sentence in reason.sentences]
    assert places == sorted(places)


def test_a_long_explanation_keeps_its_ends() -> None:
    case = deadlock()
    (first, *_), (asked, *_) = case.finding.holds, case.finding.operations
    long = replace(case.finding, holds=(first,) * 1000, operations=(asked,) * 1000)
    [reason] = story.tell(case.history, long).reasons
    assert len(reason.sentences) == 25
    assert reason.sentences[0] == reason.sentences[-1]
    assert reason.sentences[12] == "… and 976 more steps …"


# --- what belongs together ---------------------------------------------------------------------


def overlap(case: Case) -> Finding:
    lost, other = case.history.holds
    blame = Blame(Culprit.HOLDER, ns(800), ns(100))
    return Finding(
        Code.OVERLAP, "k", other.start_ns, Verdict.VIOLATION, (lost, other), (), ns(9), blame
    )


@pytest.mark.parametrize("make", [silent_loss, revived])
def test_what_shares_holds_with_an_overlap_is_a_part_of_it(make: Callable[[], Case]) -> None:
    case = make()
    both = (overlap(case), case.finding)
    [incident] = story.incidents(both)
    assert incident.main.code is Code.OVERLAP
    told = story.tell_incident(case.history, incident)
    assert told.title == "n1 held k for 800 ms beyond its lease, while n2 was let in"
    assert told.harm[0].startswith(f"{TITLES[Code(case.finding.code)]}.")
    said = story.detail(judgement(case.history, *both))
    what = {Code.SILENT_LOSS: "silent loss", Code.REVIVED: "revived lease"}[Code(case.finding.code)]
    assert f"With it came 1 {what}." in said
    twice = judgement(case.history, *both, replace(case.finding, length_ns=1))
    plural = {Code.SILENT_LOSS: "silent losses", Code.REVIVED: "revived leases"}[
        Code(case.finding.code)
    ]
    assert f"With it came 2 {plural}." in story.detail(twice)


def test_what_is_somebody_elses_fault_is_not_hidden_behind_the_main_one() -> None:
    told = history(
        "1 acquire 0-1 token=34 ttl_ms=100", "2 acquire 110-111 token=33 ttl_ms=100",
        "2 release 120-121", "1 release 900-901", backend="redis", workload="register",
    )  # fmt: skip
    case = found(Code.TOKEN_REGRESSION, told, holds=(0, 1))
    findings = (overlap(case), case.finding)
    [incident] = story.incidents(findings)
    telling = story.tell_incident(told, incident)
    assert story.detail(judgement(told, *findings)).endswith("With it came 1 token regression.")
    assert "The token regression has a separate cause. The lock server: it gave" in telling.blame
    assert "Against the token regression: take tokens from a counter" in telling.prevention
    assert "--guard fence" not in telling.prevention  # it would trust those tokens
    assert "--guard cas" in telling.prevention


def test_it_does_not_make_one_of_two_incidents() -> None:
    told = history("""
        1 acquire 0-1 token=5
        2 acquire 2-3 token=4
        1 release 9-10
        2 release 11-12
        3 acquire 20-21 token=9
        4 acquire 22-23 token=3
        3 release 29-30
        4 release 31-32""")
    one, two, three, four = told.holds
    blame = Blame(Culprit.SERVICE, 0, None)
    overlaps = [
        Finding(Code.OVERLAP, "k", b.start_ns, Verdict.VIOLATION, (a, b), (), 1, blame)
        for a, b in ((one, two), (three, four))
    ]
    regression = found(Code.TOKEN_REGRESSION, told, holds=(0, 3)).finding
    first, second = story.incidents([*overlaps, regression])
    assert [f.code for f in first.findings] == [Code.OVERLAP, Code.TOKEN_REGRESSION]
    assert [f.code for f in second.findings] == [Code.OVERLAP]


def test_what_shares_nothing_stands_alone() -> None:
    told = history("1 acquire 0-1!", "1 run 2-3 a", "2 run 4-5 a", "2 acquire:j 6-9!")
    again = found(Code.DOUBLE_RUN, told, operations=(1, 2)).finding
    nobody = found(Code.STUCK, told, operations=(0,)).finding
    other_key = found(Code.STUCK, told, operations=(3,)).finding
    assert len(story.incidents([again, nobody, other_key])) == 3


def test_many_of_a_kind_that_share_their_evidence_are_one_incident() -> None:
    told = history(
        "9 acquire 0-500", *[f"{n} acquire {10 * n}-{10 * n + 1}" for n in range(1, 6)],
    )  # fmt: skip
    waiting, *others = told.operations
    findings = [
        replace(unfair().finding, holds=(), operations=(waiting, other), time_ns=other.start_ns)
        for other in others
    ]
    [incident] = story.incidents(findings)
    assert story.incident_title(incident) == (
        "n1 was granted k before n9, which asked earlier (and 4 more like it)"
    )
    [line] = story.tell_incident(told, incident).harm
    assert line.startswith("5 unfair grants: n1 was granted k before n9")


def test_what_counts_is_the_main_one() -> None:
    case = token_regression()
    shown = replace(overlap(case), effect=Verdict.OK)
    [incident] = story.incidents([shown, case.finding])
    assert incident.main is case.finding


def test_locks_of_other_keys_are_no_second_holder() -> None:
    case = deadlock()
    told = story.tell(case.history, case.finding)
    assert not any("still held it" in step.text for step in told.steps)


def test_a_semaphore_is_told_with_all_who_held_it() -> None:
    told = history(
        "1 acquire 0-1", "2 acquire 2-3", "3 acquire 4-5", "1 release 20-21", "2 release 22-23",
        "3 release 24-25", permits=2,
    )  # fmt: skip
    one, two, three = told.holds
    blame = Blame(Culprit.SERVICE, 0, None)
    finding = Finding(
        Code.OVERLAP, "k", ns(5), Verdict.VIOLATION, (one, three, two), (), ns(15), blame
    )
    telling = story.tell(told, finding)
    assert telling.title == "n1, n2 and n3 all held one of the 2 permits of k for 15 ms"
    harmful = [step.text for step in telling.steps if step.kind is story.Kind.HARM]
    assert harmful == ["was granted k, while n1 and n2 still held it: three holders"]
    said = story.detail(judgement(told, finding))
    assert telling.title in said
    assert "broke the promise of its lease" not in said  # there was none
