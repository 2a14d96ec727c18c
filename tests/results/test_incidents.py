"""What belongs together is told together: sixty overlaps with one late client are one incident."""

from __future__ import annotations

import pytest

from lockcheck.checker import judge
from lockcheck.checker.finding import Code, Culprit, Verdict
from lockcheck.history import F, History
from tests.results import story
from tests.results.test_report import report, words
from tests.results.test_story import LEASE_MS, MS, Recording, outlived_lease

OTHERS = 60


def meets_many(terms: dict[str, object] | None = None, *, blind: bool = False) -> History:
    """c1 is paused for as long as sixty others come and go; then it writes, and releases."""
    run = Recording(terms=terms or {})
    guarded = run.terms.get("guard") == "fence"
    run.acquire(100, 1, token=40 if guarded else None)
    run.read(102, 1, None)
    run.pause(103, 1, 2100)
    now = 1110.0
    mark: str | None = None
    for number in range(OTHERS):
        client, token = 2 + number % 4, 41 + number if guarded else None
        run.held(now - 5, client)
        run.acquire(now, client, token=token)
        run.read(now + 2, client, mark)
        mark, base = f"c{client}-{number}", mark
        run.write(now + 5, client, mark, base, token=token)
        if guarded:
            run.add(1e7, "storage", "ok", F.WRITE, key="k1", value=mark, base=base, token=token,
                    seq=run.seq, of=client)  # fmt: skip
        run.release(now + 6 + number % 7, client)
        now += 16
    if guarded:
        run.refused(2101, 1, "late", None, token=40, error="fenced: token 40 is below 100")
    else:
        run.write(2101, 1, "late", None)
    if blind:
        run.acquire(2102, 2)
        blind_release(run, 2104, 1)
        run.release(2110, 2)
    else:
        run.release(2103, 1, kind="fail")
    return run.history()


def blind_release(run: Recording, ms: float, client: int) -> None:
    value = {"blind": True, "removed": 1}
    run.both(ms, client, F.RELEASE, took=0.6, asked={}, value=value)


def only_incident(history: History) -> tuple[story.Incident, story.Story]:
    [incident] = story.incidents(judge(history).findings)
    return incident, story.tell_incident(history, incident)


@pytest.fixture(scope="module")
def many() -> History:
    return meets_many()


def test_the_title_is_about_the_incident(many: History) -> None:
    _, told = only_incident(many)
    assert told.title == (
        "c1 slept through its lease on k1, then wrote at once, 1.003 s after its end, while others "
        "were let in 60 times (c2 first)"
    )


def test_the_headline_counts_incidents_not_pairs(many: History) -> None:
    assert story.detail(judge(many)) == (
        "60 of 61 acknowledged writes lost (98 %), overwritten by 1 late write (from a client "
        "whose lock had gone to another), at 2.102 s. c1 slept through its lease on k1, then wrote "
        "at once, 1.003 s after its end, while others were let in 60 times (c2 first)."
    )


def test_sixty_others_are_summed_up_in_one_step(many: History) -> None:
    _, told = only_incident(many)
    assert len(told.steps) <= story.MOST_STEPS
    texts = [f"{step.who} {step.text}" for step in told.steps]
    in_order = [
        "c1 was granted k1 (lease 1.000 s)",
        "c1 read k1: nothing written yet",
        "c1 pause began, confirmed 2.1 ms later",
        "c1 its lease on k1 ran out",
        "c2 was granted k1 (lease 1.000 s) at attempt 2, while c1 still held it: two holders",
        "c2 wrote c2-0; accepted as write 1",
        "others 58 more holds of k1 by c2 (14), c3 (15), c4 (15) and c5 (14) came and went until",
        "c5 was granted k1 at attempt 2, c1 still held it",
        "c5 wrote c5-59, based on c4-58; accepted as write 60",
        "c1 pause healed: it runs again, still believing that it holds k1",
        "c1 wrote late; accepted as write 61: late, since a later holder had written already;",
        "c1 tried to release k1; the lock server refused: not-owner (it had lost it before)",
    ]
    places = [next(i for i, text in enumerate(texts) if text.startswith(t)) for t in in_order]
    assert places == sorted(places)
    assert any(text.endswith("60 acknowledged writes (writes 1 to 60) are lost") for text in texts)
    assert any(text.endswith("; writes 2 to 59 accepted") for text in texts)


def test_harm_is_grouped(many: History) -> None:
    _, told = only_incident(many)
    lost = "writes 1 to 60 of c2, c3, c4 and c5, overwritten by write 61 of c1"
    assert told.harm == (
        f"60 acknowledged writes lost: {lost}.",
        "1 late write accepted: write 61 of c1 (late, 1.001 s after its lease).",
        "60 overlaps of c1 with c2, c3, c4 and c5: 4.8 to 11 ms each.",
    )
    text = words(report(many, judgement=judge(many)))
    assert text.count(told.harm[0]) == 1


def test_the_report_of_sixty_overlaps_is_short(many: History) -> None:
    html = report(many, judgement=judge(many))
    assert html.count('class="step ') <= story.MOST_STEPS
    assert html.count('<details class="story') == 1


def test_behind_a_guard_the_refused_write_is_told() -> None:
    history = meets_many({"guard": "fence"})
    incident, told = only_incident(history)
    assert incident.effect is Verdict.OK
    refused = [step.text for step in told.steps if step.kind is story.Kind.REFUSED]
    assert refused == ["tried to write late with token 40; refused: fenced: token 40 is below 100"]
    assert (
        "holds overlapped 60 times in 1 incident; the guard refused the one late write"
        in story.detail(judge(history))
    )
    assert told.prevention.startswith("Nothing more")


def test_a_late_holders_blind_release_is_the_end_of_its_story() -> None:
    incident, told = only_incident(meets_many(blind=True))
    assert incident.main.blame.who is Culprit.HOLDER
    assert told.title.endswith("(c2 first). Then a blind release by c1 took k1 away from c2")
    assert "c1 released k1, no longer its own: deleted c2's lock" in [
        f"{step.who} {step.text}" for step in told.steps
    ]
    assert "Compare and delete" in told.prevention
    assert "--guard cas" in told.prevention


def of_a_chain(length: int = 20) -> History:
    """c1 is late; its release takes c2's lock away, c2's that of c3, and so on."""
    run = Recording(terms={"backend": "redis-naive"})
    run.acquire(0, 1)
    run.acquire(1002, 2)
    for number in range(length):
        blind_release(run, 1100 + 200 * number, 1 + number % 5)
        if number + 2 < length:
            run.acquire(1101 + 200 * number, 1 + (number + 2) % 5)
    return run.history()


def test_a_chain_of_blind_releases_is_one_incident() -> None:
    history = of_a_chain()
    judgement = judge(history)
    taken = judgement.of(Code.FOREIGN_RELEASE)
    assert len(taken) == 19
    incident = story.worst_first(story.incidents(judgement.findings))[0]
    told = story.tell_incident(history, incident)
    assert told.title == (
        "c1 outlived its lease, then 19 blind releases in a chain took k1 away from its holder "
        "(the first: c1's, from c2)"
    )
    assert len(told.steps) <= story.MOST_STEPS
    assert len(told.harm) <= 4
    assert "18 more releases did the same" in told.blame
    assert told.title in story.detail(judgement)
    assert any("16 releases of a lock that was no longer their own" in s.text for s in told.steps)


def test_several_incidents_are_counted_and_the_first_is_told() -> None:
    run = Recording()
    for number in range(3):
        outlived_lease(run, 100 + 2000 * number)
    history = run.history()
    text = story.detail(judge(history))
    assert "overwritten by 3 late writes" in text
    assert ". 3 incidents, the first at 1.401 s: c2 slept through its lease on k1" in text
    assert "Each time a client had outlived its lease (by up to 303 ms)" in text


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_headline_does_not_repeat_the_word_beside_it(verdict: Verdict) -> None:
    history = meets_many() if verdict is Verdict.VIOLATION else Recording().history()
    judged = judge(history)
    assert not story.detail(judged).lower().startswith(verdict.value)


def test_without_a_storage_nothing_is_said_of_writes() -> None:
    run = Recording(terms={"workload": "mutex", "guard": "fence"})
    run.acquire(100, 1)
    run.pause(103, 1, 1300)
    run.acquire(1110, 2)
    run.release(1301, 1, kind="fail")
    run.release(1310, 2)
    history = run.history()
    _, told = only_incident(history)
    text = story.detail(judge(history))
    assert "storage" not in text
    assert "data" not in text
    assert "--workload register" in told.prevention
    page = words(report(history, judgement=judge(history)))
    assert "writes accepted" not in page
    assert "What the storage refused" not in page


# --- stalls that are none -----------------------------------------------------------------------


def with_stall(ms: float, length_ms: float, client: int = 2) -> History:
    run = Recording()
    outlived_lease(run)  # c2 is paused from 103 to 1400 ms
    run.add(ms, client, "info", "stall", node=f"c{client}", value=length_ms)
    return run.history()


def test_the_stall_of_a_paused_client_is_the_pause() -> None:
    history = with_stall(1400.5, 1306)
    assert story.own_stalls(history, history.stalls) == ()
    assert "machine stalled" not in words(report(history))


def test_what_a_stall_has_beyond_the_fault_is_the_machines() -> None:
    history = with_stall(1600, 1500)
    [rest] = story.own_stalls(history, history.stalls)
    assert (rest.start_ns, rest.end_ns) == (1400 * MS, 1600 * MS)
    assert "the machine stalled" in words(report(history))


def test_a_stall_elsewhere_stays() -> None:
    history = with_stall(900, 300, client=4)
    assert story.own_stalls(history, history.stalls) == history.stalls


# --- small words --------------------------------------------------------------------------------


def test_the_legend_explains_what_occurs() -> None:
    quiet = Recording()
    quiet.acquire(1, 2)
    quiet.release(LEASE_MS / 2, 2)
    html, mark = report(quiet.history()), "</svg> late write accepted</li>"
    assert "</svg> holds the lock</li>" in html
    assert mark not in html
    assert "injected fault, confirmed" not in html
    assert report(meets_many()).count(mark) == 2  # above the lanes, and among all marks
