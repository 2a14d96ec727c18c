"""From when on a grant is promised: one that waited in a queue, one that a session keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockcheck.checker import Case, Code, Culprit, Finding, Judgement, Verdict, judge
from lockcheck.checker.doubt import TOO_SHORT
from lockcheck.checker.evidence.promise import promised_from, turn_came
from lockcheck.checker.judges.silent_loss import find as silent_losses
from lockcheck.formats import read_any
from tests.checker.dsl import codes, history, judged, ns

HISTORIES = Path(__file__).parents[1] / "histories"

# Process 2 waits while 1 holds it, is granted it when 1 lets go, and 3 is let in after that.
QUEUE = """
    1 acquire 0-2 {one}
    2 acquire 1-150 {two}
    1 release 140-145{mark} {said}
    3 acquire 200-201
    2 release 210-211
    3 release 220-221"""


def queue(one: str = "", two: str = "", mark: str = "", said: str = "") -> str:
    return QUEUE.format(one=one, two=two, mark=mark, said=said)


def since_ms(lines: str, **terms: Any) -> float:
    """Of the acquire of process 2."""
    told = history(lines, **({"ttl_ms": 1000} | terms))
    (row,) = (row for row, o in enumerate(told.operations) if (o.process, o.f) == (2, "acquire"))
    return int(turn_came(told.table, told.terms, told.turns)[row]) / 1e6


WAITED = [
    (queue(), 140),
    (queue("token=1", "token=2"), 140),
    (queue("token=2", "token=1"), 1),  # 2 was granted it first, and read its answer late
    (queue("token=1"), 140),  # one token tells nothing
    (queue(mark="?"), 1),  # nobody knows whether it let go
    (queue(mark="!"), 1),
    (queue(said='= {"removed": 1}'), 140),
    (queue(said='= {"removed": 0}'), 1),
    (queue(said='= {"removed": 1, "blind": true}'), 1),
    (queue(said='blind=true = {"removed": 1}'), 1),
    (queue() + '\n 4 release 500-501 = {"removed": 0, "blind": true}', 1),
    (queue().replace("1 release", "1 release:other"), 1),
    (queue().replace("1 release 140", "1 lost 130 \n 1 release 140"), 140),  # it held it then
    (queue("shared=true", "shared=true"), 1),
    (queue("shared=true"), 140),
    (queue(two="shared=true"), 140),
    (queue().replace("1 release 140-145", "1 release 150-155"), 150),  # the same moment
    (queue().replace("1 release 140-145", "1 release 151-155"), 1),  # after the grant
    (queue().replace("2 acquire 1-", "2 acquire 141-"), 141),  # by then it had let go
    (queue() + "\n 2 turn 147", 147),  # its client knows better,
    (queue() + "\n 2 turn 139", 140),  # or less well
    (queue(mark="?") + "\n 2 turn 147", 147),
    (queue(said='blind=true = {"removed": 1}') + "\n 2 turn 147", 147),
    (queue() + "\n 2 turn 0.5 \n 2 turn 151 \n 3 turn 147 \n 9 turn 147", 140),  # of none of its
    (queue() + "\n 4 acquire 160-161 \n 4 release 170-171", 140),
    (
        "5 acquire 0-1 \n 5 release 10-12 \n 1 acquire 11-14 \n 1 release 30-32 \n2 acquire 0.5-35",
        30,
    ),
]


@pytest.mark.parametrize(("lines", "expected"), WAITED)
def test_when_its_turn_came(lines: str, expected: float) -> None:
    assert since_ms(lines) == expected


@pytest.mark.parametrize(
    ("ttl_ms", "asked", "expected"),
    [
        (1000, "", 140),
        (10, "", 140),  # without it, 2 would have lost it by 11 at the soonest: after 1 was told
        (1, "", 1),  # 2 may have been granted it at 1, and lost it when 1 was granted it
        (1, "ttl_ms=500", 140),
        (None, "", 1),
        (None, "ttl_ms=500", 140),
    ],
)
def test_without_tokens_the_lease_tells_who_was_first(
    ttl_ms: int | None, asked: str, expected: float
) -> None:
    assert since_ms(queue(two=asked), ttl_ms=ttl_ms) == expected


def test_tokens_tell_without_a_lease_too_and_so_does_time() -> None:
    assert since_ms(queue("token=1", "token=2"), ttl_ms=1) == 140
    assert since_ms(queue().replace("2 acquire 1-", "2 acquire 3-"), ttl_ms=1) == 140


@pytest.mark.parametrize(
    "terms", [{"permits": 2}, {"model": "mutex"}, {"model": "semaphore", "permits": 3}]
)
def test_where_nobody_has_to_wait_for_another_ones_release(terms: dict[str, Any]) -> None:
    assert since_ms(queue(), **terms) == 1


def test_of_a_session_nothing_is_known_but_its_invocation() -> None:
    told = history(queue(), ttl_ms=1000, session=True)
    assert promised_from(told.table, told.terms).tolist() == told.table.start.tolist()
    assert turn_came(told.table, told.terms).tolist() != told.table.start.tolist()


def test_a_session_may_be_over_as_soon_as_its_client_was_ended() -> None:
    held = ["1 acquire 0-1 token=1", "1 renew 8-9", "2 acquire 20-21 token=2"]
    ended, stopped = (f"fault {name} n1 10-50 effect={name}s" for name in ("end", "stop"))
    assert codes(judged(*held, ended, ttl_ms=100, session=True)) == []
    assert codes(judged(*held, ended, ttl_ms=100)) == ["not-linearizable"]  # a lease runs its time
    assert codes(judged(*held, stopped, ttl_ms=100, session=True)) == ["not-linearizable"]
    others = ended.replace("n1", "n3")
    assert codes(judged(*held, others, ttl_ms=100, session=True)) == ["not-linearizable"]
    slowly = ended.replace("10-50", "5-50 since=15 proven=16")
    assert codes(judged(*held, slowly, ttl_ms=100, session=True)) == []
    sooner = slowly.replace("since=15", "since=7")  # so it was another life that renewed
    assert codes(judged(*held, sooner, ttl_ms=100, session=True)) == ["not-linearizable"]
    early = [*held[:2], "2 acquire 4-5 token=2"]  # before it was
    assert "not-linearizable" in codes(judged(*early, ended, ttl_ms=100, session=True))


# --- blame ---------------------------------------------------------------------------------------


def overlap(*lines: str, ttl_ms: int | None = 100, **terms: Any) -> Finding:
    (finding,) = judged(*lines, ttl_ms=ttl_ms, **terms).of(Code.OVERLAP)
    return finding


def test_who_waited_is_promised_the_lock_from_its_turn_on() -> None:
    found = overlap(queue())
    assert [hold.process for hold in found.holds] == [2, 3]
    assert (found.blame.who, found.blame.by_ns) == (Culprit.SERVICE, ns(39))
    assert found.blame.promised_until_ns == ns(240)
    assert "not-linearizable" in codes(judged(queue(), ttl_ms=100))


def test_and_no_longer_than_its_lease() -> None:
    lines = queue().replace("3 acquire 200-201", "3 acquire 200-{granted}")
    lines = lines.replace("2 release 210-211", "2 release 260-261!").replace("220-221", "270-271")
    in_time, early = lines.format(granted="235"), lines.format(granted="225")
    assert overlap(in_time, ttl_ms=90).blame.who is Culprit.HOLDER
    assert codes(judged(in_time, ttl_ms=90)) == ["overlap"]
    assert overlap(early, ttl_ms=90).blame.who is Culprit.SERVICE
    assert codes(judged(early, ttl_ms=90)) == ["overlap", "not-linearizable"]


def test_one_that_read_its_answer_late_has_no_excuse() -> None:
    """It was granted the lock first, its lease ran out, and the others had theirs after that."""
    late = queue("token=2", "token=1")
    assert overlap(late, ttl_ms=100).blame.who is Culprit.HOLDER


@pytest.mark.parametrize("file", ["queue.csv", "renew-crossing.jsonl"])
def test_the_service_broke_its_promise(file: str) -> None:
    judgement = judged_file(file)
    assert judgement.verdict is Verdict.VIOLATION
    assert {finding.blame.who for finding in judgement.findings} == {Culprit.SERVICE}
    assert codes(judgement) == ["overlap", "not-linearizable"]


def judged_file(name: str) -> Judgement:
    told, _ = read_any(str(HISTORIES / name))
    return judge(told)


def test_a_keeper_under_its_clients_name_is_judged() -> None:
    assert judged_file("renew.csv").verdict is Verdict.OK
    unsure = judged_file("renew.jsonl")
    assert (unsure.verdict, unsure.findings) == (Verdict.UNKNOWN, ())
    assert {doubt.code for doubt in unsure.doubts} <= TOO_SHORT


# --- a renewal that was under way when another one was let in -----------------------------------

CROSSED = """
    1 acquire 0-1
    9 renew {renewal} of=1
    2 acquire 110-111
    1 release 130-131
    2 release 140-141"""


@pytest.mark.parametrize(
    ("renewal", "who", "by_ms"),
    [
        ("90-125", Culprit.SERVICE, 79),
        ("90-100", Culprit.SERVICE, 79),
        ("90-125?", Culprit.HOLDER, 30),
        ("90-", Culprit.HOLDER, 30),
        ("9-120", Culprit.HOLDER, 21),  # it was no longer promised by that either
        ("111-125", Culprit.HOLDER, 30),
    ],
)
def test_in_every_order_it_binds(renewal: str, who: Culprit, by_ms: int) -> None:
    found = overlap(CROSSED.format(renewal=renewal))
    assert (found.blame.who, found.blame.by_ns) == (who, ns(by_ms))


def test_but_not_where_its_owner_may_have_entered_again() -> None:
    lines = CROSSED.format(renewal="90-125")
    again = lines.replace("1 release 130", "1 acquire 113-114 \n 1 release 130")
    found = overlap(again, model="reentrant")
    assert found.blame.who is Culprit.HOLDER


# --- sessions ------------------------------------------------------------------------------------

SESSION = """
    1 acquire 0-1
    2 acquire 499-500
    1 release 600-601
    2 release 700-701"""


def session(*lines: str, backend: str = "zookeeper", ttl_ms: int | None = 100) -> Finding:
    return overlap(SESSION, *lines, backend=backend, ttl_ms=ttl_ms, session=True)


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        ("", Culprit.SERVICE),  # it ran, so it kept its session alive
        ("fault odd n1 100-300 effect=stops", Culprit.HOLDER),
        ("fault odd n1 100-300", Culprit.HOLDER),  # nobody knows what it did
        ("fault odd n1 100-300 effect=cuts", Culprit.HOLDER),
        ("fault odd n2 100-300 effect=cuts", Culprit.HOLDER),  # a cut has two sides
        ("fault odd r1 100-300 effect=cuts", Culprit.HOLDER),
        ("fault odd r1 100-300 effect=ends", Culprit.HOLDER),  # it spoke to that one, maybe
        ("fault odd n1 100-300 effect=slows", Culprit.HOLDER),
        ("fault odd n1 501-550 effect=stops", Culprit.SERVICE),  # after the other was let in
        ("fault odd n2 100-300 effect=stops", Culprit.SERVICE),  # somebody else's
        ("fault odd r1 100-300 effect=skews", Culprit.SERVICE),
        ("fault odd r1 100-300 effect=skews mends=270", Culprit.SERVICE),  # for a moment
        ("fault odd r1 100-300 effect=skews mends=200", Culprit.HOLDER),  # it was started again
        ("fault odd n2 100-300 effect=skews mends=200", Culprit.SERVICE),  # a client is not
        ("fault odd r1 501-900 effect=skews mends=600", Culprit.SERVICE),
        ("stall n1 300-330", Culprit.SERVICE),  # too short to end it
        ("stall n1 300-380", Culprit.HOLDER),  # and then it went on for long
        ("stall n1 300-590", Culprit.MACHINE),
        ("stall n2 300-590", Culprit.SERVICE),
        ("9 renew 450-451 of=1", Culprit.SERVICE),  # until 550
        ("9 renew 300-301 of=1", Culprit.HOLDER),  # it stopped renewing
        ("9 renew 450-451? of=1", Culprit.HOLDER),
        ("9 renew 300-301 of=2", Culprit.HOLDER),  # where renewals are told, nothing else counts
    ],
)
def test_a_session_lasts_as_long_as_it_is_kept(lines: str, who: Culprit) -> None:
    assert session(lines).blame.who is who


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        ("", Culprit.SERVICE),
        ("fault odd n1 100-300 effect=stops", Culprit.HOLDER),  # a paused one is no service's fault
        ("stall n1 300-301", Culprit.HOLDER),  # of how long its sessions last nobody knows
    ],
)
def test_a_session_of_which_the_timeout_is_not_told(lines: str, who: Culprit) -> None:
    assert session(lines, ttl_ms=None).blame.who is who


def test_what_a_kept_session_was_promised() -> None:
    blame = session().blame
    assert (blame.promised_until_ns, blame.by_ns) == (None, ns(100))
    early = overlap(SESSION.replace("499-500", "40-50"), ttl_ms=100, session=True)
    assert (early.blame.who, early.blame.promised_until_ns) == (Culprit.SERVICE, ns(100))


IN_A_QUEUE = """
    1 acquire 0-1600 valid_ms=990
    2 acquire 1690-1700
    1 release 1800-1801
    2 release 1900-1901
    9 renew 1640-1641 of=7"""


@pytest.mark.parametrize(
    ("lines", "who", "until_ms"),
    [
        ("", Culprit.SERVICE, 2590),  # as long as its client knew that it had kept it
        ("fault odd n1 900-1000 effect=stops", Culprit.HOLDER, 1000),  # it may have counted wrong
        ("fault odd n1 900-1000 effect=cuts", Culprit.HOLDER, 1000),
        ("stall n1 900-1250", Culprit.MACHINE, 1000),
        ("fault odd n1 1610-1650 effect=stops", Culprit.SERVICE, 2590),
    ],
)
def test_a_session_that_waited_was_kept_until_its_client_was_let_in(
    lines: str, who: Culprit, until_ms: int
) -> None:
    blame = overlap(IN_A_QUEUE, lines, backend="etcd", ttl_ms=1000, session=True).blame
    assert (blame.who, blame.promised_until_ns) == (who, ns(until_ms))


def test_of_clients_that_note_no_stalls_nobody_knows_that_they_ran() -> None:
    assert session(backend="").blame.who is Culprit.HOLDER


def test_a_session_that_waited_is_promised_from_its_turn_if_nothing_disturbed_it() -> None:
    terms: dict[str, Any] = {"session": True, "backend": "zookeeper", "ttl_ms": 100}
    seen = queue() + "\n 9 renew 1000-1001 of=9"
    assert overlap(seen, **terms).blame.promised_until_ns == ns(240)
    cut = overlap(seen, "fault odd n2 50-90 effect=cuts", **terms).blame
    assert (cut.who, cut.promised_until_ns) == (Culprit.HOLDER, ns(101))
    renewed = seen + "\n 9 renew 160-161 of=2"
    assert overlap(renewed, "fault odd n2 50-90 effect=cuts", **terms).blame.who is Culprit.SERVICE


def test_a_paused_holder_of_a_session_breaks_no_law_of_the_object() -> None:
    """Its renewals, where there are any, are all that the service is held to."""
    paused = "fault odd n1 100-550 effect=stops"
    refused = SESSION.replace("1 release 600-601", "1 release 600-601!")
    judgement = judged(refused, paused, ttl_ms=100, session=True, backend="zookeeper")
    assert set(codes(judgement)) == {"overlap"}


# --- what was lost in silence at a queue ----------------------------------------------------------

LOST = """
    1 acquire 0-10 {one}
    2 acquire 5-130 {two}
    1 write 150-151 a
    1 release 400-401!
    2 release 160-161"""


def lost(one: str = "", two: str = "", *more: str, **terms: Any) -> list[list[int | str]]:
    told = history(LOST.format(one=one, two=two), *more, **{"ttl_ms": 100, "backend": "b", **terms})
    return [[h.process for h in found.holds] for found in silent_losses(Case(told))]


def test_tokens_tell_who_was_granted_it_later() -> None:
    assert lost("token=1", "token=2") == [[1, 2]]
    assert lost("token=2", "token=1") == []


def test_without_tokens_a_queue_tells_it_where_a_lease_was_not_over() -> None:
    assert lost() == []  # nobody says that they wait for each other
    assert lost(fair=True) == [[1, 2]]
    assert lost("", "", "2 queued 8") == [[1, 2]]
    assert lost("", "ttl_ms=4", fair=True) == []  # it may have been granted it first, and lost it
    assert lost("token=2", "token=1", fair=True) == []
