"""A log of what clients did is judged as any history; nothing is found that was not there."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest

import lockcheck
from lockcheck.errors import UserError
from lockcheck.history import EventType
from lockcheck.library.log import LoggedOperation, Released


def acquire(log: lockcheck.Log, client: str, *, refused: bool = False, token: int = 0) -> None:
    with log.operation(client, "acquire", "k", ttl_ms=60_000) as answer:
        answer.token = token or None
        if refused:
            answer.refused("held")


def release(log: lockcheck.Log, client: str) -> None:
    with log.operation(client, "release", "k"):
        pass


def test_turns_are_ok() -> None:
    log = lockcheck.Log()
    for client in ("c1", "c2", "c1"):
        acquire(log, client)
        acquire(log, "c3", refused=True)
        release(log, client)
    judgement = log.judge(ttl_ms=60_000)
    assert (judgement.verdict, judgement.doubts) == (lockcheck.Verdict.OK, ())
    assert judgement.counts.acquisitions == 3


def test_two_at_once_are_a_violation_and_the_service_let_the_second_in_too_early() -> None:
    log = lockcheck.Log()
    acquire(log, "c1")
    acquire(log, "c2")
    release(log, "c1")
    release(log, "c2")
    judgement = log.judge()
    assert judgement.verdict is lockcheck.Verdict.VIOLATION
    [overlap] = judgement.of(lockcheck.Code.OVERLAP)
    assert overlap.blame.who == "service"
    assert [hold.node for hold in overlap.holds] == ["c1", "c2"]


def test_what_a_release_said() -> None:
    log, words = lockcheck.Log(), get_args(Released)
    for said in words:
        acquire(log, "c1")
        with log.operation("c1", "release", "k") as answer:
            answer.released(said)
    with pytest.raises(lockcheck.LockcheckError, match="not the answer of a release: 'maybe'"):
        LoggedOperation().released("maybe")  # type: ignore[arg-type]
    told = [o for o in log.judge().case.operations if o.f == "release"]
    assert [(said, o.ok, o.unsaid) for said, o in zip(words, told, strict=True)] == [
        ("true", True, False),
        ("false", False, False),
        ("unsaid", True, True),
    ]
    assert told[1].refusal == "not-owner"


@pytest.mark.parametrize(("answer", "blind", "found"), [("true", True, 1), ("true", False, 0)])
def test_a_release_that_takes_away_the_lock_of_another(
    answer: Released, blind: bool, found: int
) -> None:
    log = lockcheck.Log()
    for client in ("c1", "c2"):
        with log.operation(client, "acquire", "k", ttl_ms=0 if client == "c2" else 1):
            pass
    with log.operation("c1", "release", "k") as given:
        given.released(answer, blind=blind)
    release(log, "c2")
    assert len(log.judge().of(lockcheck.Code.FOREIGN_RELEASE)) == found


def test_a_place_in_a_queue_is_kept_or_the_lock_is_unfair() -> None:
    log = lockcheck.Log()
    acquire(log, "c1", token=1)
    with log.operation("c2", "acquire", "k") as waiting:
        waiting.queued()
        release(log, "c1")
        acquire(log, "c3", token=2)  # asks later, and is let in first
        release(log, "c3")
        waiting.token = 3
    release(log, "c2")
    [unfair] = log.judge(fair=True).of(lockcheck.Code.UNFAIR)
    assert [hold.node for hold in unfair.holds] == ["c3", "c2"]
    assert not log.judge().of(lockcheck.Code.UNFAIR)


@pytest.mark.parametrize(("turn", "blamed"), [(True, "service"), (False, "holder")])
def test_whose_turn_came_late_is_promised_its_lease_from_then_on(turn: bool, blamed: str) -> None:
    """The holder before it died, so no release tells when that was."""
    log = lockcheck.Log()
    acquire(log, "c1")
    with log.operation("c2", "acquire", "k", ttl_ms=300) as waiting:
        time.sleep(0.4)  # longer than its own lease
        if turn:
            waiting.turn_came()
    acquire(log, "c3")
    release(log, "c2")
    release(log, "c3")
    [overlap] = [o for o in log.judge().of("overlap") if o.holds[0].node == "c2"]
    assert overlap.blame.who == blamed


def test_what_is_no_acquire_under_way_has_no_place() -> None:
    log = lockcheck.Log()
    with log.operation("c1", "acquire", "k") as acquired:
        pass
    with log.operation("c1", "release", "k") as released:
        for answer in (acquired, released, LoggedOperation()):
            with pytest.raises(UserError, match="only an acquire that is under way"):
                answer.queued()
            with pytest.raises(UserError, match="only an acquire that is under way"):
                answer.turn_came()


def test_a_hold_that_is_never_released_counts_up_to_the_last_sign_of_life() -> None:
    log = lockcheck.Log()
    acquire(log, "c1")
    acquire(log, "c2")
    assert not log.judge().of(lockcheck.Code.OVERLAP)
    release(log, "c1")
    [moment] = log.judge().of(lockcheck.Code.OVERLAP)
    assert moment.length_ns == 0
    release(log, "c2")
    [overlap] = log.judge().of(lockcheck.Code.OVERLAP)
    assert overlap.length_ns > 0


def test_who_was_told_of_its_loss_holds_nothing() -> None:
    log = lockcheck.Log()
    acquire(log, "c1")
    log.lost("c1", "k", "its session expired")
    acquire(log, "c2")
    release(log, "c2")
    assert not log.judge().of(lockcheck.Code.OVERLAP)


def test_of_what_raises_nobody_knows_and_the_client_goes_on_as_another(tmp_path: Path) -> None:
    log = lockcheck.Log()
    with pytest.raises(TimeoutError), log.operation("c1", "acquire", "k"):
        raise TimeoutError("no answer")
    with suppress(KeyError), log.operation("c1", "acquire", "k") as answer:
        answer.refused()
        raise KeyError
    acquire(log, "c1")
    log.save(tmp_path / "log.jsonl")
    events = lockcheck.read_history(tmp_path / "log.jsonl").events[1:]
    assert [(e.process, e.type) for e in events] == [
        (0, EventType.INVOKE),
        (0, EventType.INFO),
        (1, EventType.INVOKE),
        (1, EventType.FAIL),
        (1, EventType.INVOKE),
        (1, EventType.OK),
    ]
    assert events[1].error == "TimeoutError: no answer"


def test_tokens_and_promises_are_judged() -> None:
    log = lockcheck.Log()
    for client, token in (("c1", 34), ("c2", 33)):
        acquire(log, client, token=token)
        release(log, client)
    assert log.judge().of(lockcheck.Code.TOKEN_REGRESSION)
    together = lockcheck.Log()
    acquire(together, "c1")
    acquire(together, "c2")
    release(together, "c1")
    release(together, "c2")
    semaphore = together.judge(permits=2, model="semaphore")
    assert semaphore.verdict is lockcheck.Verdict.OK


def test_many_threads_write_one_history() -> None:
    log = lockcheck.Log()

    def work(client: str) -> None:
        for _ in range(50):
            acquire(log, client, refused=True)

    threads = [threading.Thread(target=work, args=(f"c{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.judge().counts.operations == 400


def logged(client: Any = "c1", f: Any = "acquire", key: Any = "k", **given: Any) -> lockcheck.Log:
    """One operation; what is given for its answer begins with `answer_`."""
    log = lockcheck.Log()
    answered = {name: given.pop(name) for name in list(given) if name.startswith("answer_")}
    with log.operation(client, f, key, **given) as answer:
        for name, value in answered.items():
            setattr(answer, name.removeprefix("answer_"), value)
    return log


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"f": "relase"}, "unknown operation 'relase'"),
        ({"f": None}, "unknown operation None"),
        ({"client": 1}, "a client is a text, and 1 is none"),
        ({"key": None}, "a key is a text, and None is none"),
        ({"ttl_ms": "5"}, r"this acquire of c1 cannot be recorded: .*`\$\.ttl_ms`"),
        ({"ttl_ms": -5}, r"this acquire of c1 cannot be recorded: .*`\$\.ttl_ms`"),
        ({"value": object()}, "cannot be recorded: Encoding objects of type object"),
        ({"answer_token": "34"}, r"cannot be recorded: .*`\$\.token`"),
        ({"answer_token": 1 << 70}, r"cannot be recorded: .*`\$\.token`"),
        ({"answer_valid_ms": "1"}, r"cannot be recorded: .*`\$\.valid_ms`"),
        ({"answer_error": 5}, r"cannot be recorded: .*`\$\.error`"),
    ],
)
def test_what_cannot_be_recorded_is_refused_at_once(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason) as refused:
        logged(**given)
    assert refused.value.cure


def test_a_client_that_does_two_things_at_once_is_refused_and_the_first_counts() -> None:
    log = lockcheck.Log()
    with log.operation("c1", "acquire", "k") as answer:
        with (
            pytest.raises(UserError, match="c1 begins write within its own acquire"),
            log.operation("c1", "write", "k"),
        ):
            raise AssertionError("the block must not begin")
        answer.unknown()
    acquire(log, "c1")
    release(log, "c1")
    assert log.judge().counts.acquisitions == 1


def test_a_value_is_what_it_was() -> None:
    log, value = lockcheck.Log(), [1]
    with log.operation("c1", "write", "k", value=value):
        value.append(2)
    assert [o.invoke.value for o in log.judge().case.operations] == [[1]]


@pytest.mark.parametrize(
    ("promised", "reason", "cure"),
    [
        ({"model": "nope"}, "unknown model 'nope'", "owner-mutex"),
        ({"model": "set"}, "the model set does not know acquire", "another model="),
        ({"model": "semaphore"}, "a semaphore has a number of permits", "permits=N"),
        ({"model": "mutex", "permits": 2}, "the model mutex has no permits", "another model="),
        ({"guard": "nope"}, "unknown guard 'nope'", "cas, fence"),
        ({"ends_with": "nope"}, "unknown ends_with 'nope'", "connection, server"),
        ({"permits": 0}, "permits=0 is not possible", ">= 1"),
        ({"ttl_ms": "1000"}, "ttl_ms='1000' is not possible", "Expected `int"),
        ({"ttl_ms": -1}, "ttl_ms=-1 is not possible", ">= 0"),
        ({"lock_nodes": "r1"}, "lock_nodes='r1' is not possible", "array"),
        ({"ttl": 1000}, "unknown promise 'ttl'", "ttl_ms"),
        ({"backend": "redis"}, "unknown promise 'backend'", "ttl_ms"),
    ],
)
def test_promises_that_cannot_be(promised: dict[str, Any], reason: str, cure: str) -> None:
    with pytest.raises(UserError, match=reason) as refused:
        logged().judge(**promised)
    assert cure in refused.value.cure


def test_a_log_is_saved_and_read_by_a_path_as_text(tmp_path: Path) -> None:
    path = str(tmp_path / "log.jsonl")
    logged().save(path, lock_nodes=("r1", "r2"), ttl_ms=1000)
    terms = lockcheck.read_history(path).terms
    assert (terms.lock_nodes, terms.ttl_ms) == (("r1", "r2"), 1000)
    with pytest.raises(UserError, match="cannot be written: No such file") as refused:
        logged().save(str(tmp_path / "missing" / "log.jsonl"))
    assert refused.value.cure
