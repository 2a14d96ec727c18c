"""What a client writes: its own operations, and those of its keepers as processes of their own."""

from __future__ import annotations

import threading
from pathlib import Path

from lockcheck.client.recorder import A_LIFE, Recorder
from lockcheck.history import Event, EventType, EventWriter, History, read_history

OK, FAIL, INFO = EventType.OK, EventType.FAIL, EventType.INFO


def recorder(path: Path, generation: int = 0) -> Recorder:
    return Recorder(EventWriter(path), "c2", 1, 5, origin_ns=0, stall_ms=1e6, generation=generation)


def written(path: Path) -> tuple[Event, ...]:
    return read_history(path).events


def test_a_keeper_is_a_process_of_its_own_that_says_whose_hold_it_extends(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    record = recorder(path)
    acquire = record.invoke("acquire", "k", ttl_ms=1000)
    renewal = record.keeper_renews("k", 1000, of=record.process)
    record.answer(renewal, OK, valid_ms=990)
    record.answer(acquire, OK, token=3)
    invoke, answer = [event for event in written(path) if event.f == "renew"]
    assert (invoke.process, invoke.of, invoke.ttl_ms, invoke.node) == ("c2-keeper-1", 1, 1000, "c2")
    assert (answer.process, answer.of, answer.valid_ms) == ("c2-keeper-1", 1, 990)


def test_keepers_at_once_are_several_and_one_after_another_is_one(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    record = recorder(path)
    first, second = (record.keeper_renews("k", 1000, of=1) for _ in range(2))
    record.answer(first, FAIL, "gone")
    record.answer(second, OK)
    record.answer(record.keeper_renews("k", 1000, of=1), OK)
    begun = [e.process for e in written(path) if e.type is EventType.INVOKE]
    assert begun[:2] == ["c2-keeper-1", "c2-keeper-2"]
    assert begun[2] in begun[:2]


def test_a_keeper_is_retired_after_an_unknown_answer(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    record = recorder(path)
    record.answer(record.keeper_renews("k", 1000, of=1), INFO, "timed out")
    record.keeper_renews("k", 1000, of=1)
    assert [e.process for e in written(path)] == ["c2-keeper-1"] * 2 + ["c2-keeper-2"]
    assert record.process == 1, "it is not the client that is retired"


def test_a_client_is_retired_by_its_own_and_not_by_its_keepers(tmp_path: Path) -> None:
    record = recorder(tmp_path / "h.jsonl")
    record.answer(record.invoke("release", "k"), INFO, "timed out")
    assert record.process == 6


def test_another_life_is_other_processes_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    for generation in range(2):
        record = recorder(path, generation)
        record.invoke("acquire", "k", ttl_ms=1000)
        record.keeper_renews("k", 1000, of=record.process)
        record.close()
    assert [e.process for e in written(path)] == [
        1, "c2-keeper-1", 1 + 5 * A_LIFE, f"c2-keeper-{A_LIFE + 1}",
    ]  # fmt: skip


def test_what_comes_after_the_end_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    record = recorder(path)
    late = record.keeper_renews("k", 1000, of=1)
    record.close()
    record.answer(late, OK)
    assert len(written(path)) == 1


def test_threads_write_in_the_order_of_their_times(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    record = recorder(path)

    def keep() -> None:
        for _ in range(200):
            record.answer(record.keeper_renews("k", 1000, of=1), OK)

    threads = [threading.Thread(target=keep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        record.answer(record.invoke("read", "k"), OK)
    for thread in threads:
        thread.join()
    events = written(path)  # it refuses what is not in order, or has two operations open
    assert len(events) == 5 * 400
    assert len({e.process for e in events}) <= 5
    assert isinstance(read_history(path), History)
