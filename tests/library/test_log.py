"""A log of what clients did is judged as any history; nothing is found that was not there."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import get_args

import pytest

import lockcheck
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
