"""What a run came to, as data: written into its folder and read back from there."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from lockcheck import read_record
from lockcheck.checker import judge
from lockcheck.checker.doubt import DoubtCode
from lockcheck.checker.finding import Code, Culprit, Verdict
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.history import Terms
from lockcheck.nodes import NODES_FOLDER
from lockcheck.results.publish import publish
from lockcheck.results.story.narrative import Narrative
from lockcheck.runs.facts import RunFacts, now_in_words
from lockcheck.runs.record import Record, Tally, record_of
from lockcheck.runs.store import CONFIG_FILE, FACTS_FILE, RECORD_FILE, Store
from tests.checker.dsl import events, history
from tests.running import lockcheck

CONFIG = RunConfig(backend="redis", seed=7, nemesis=("none",), workload="mutex")
OVERLAP = (
    *("1 acquire 0-1", "2 acquire 2-3", "1 release 10-11", "2 release 12-13"),
    *("1 acquire 20-21", "1 release 22-23"),
)
KILLED = "The run was killed, or has not ended yet; this is what had happened by then."


def facts(**more: object) -> RunFacts:
    given = {
        "run_id": "the-run",
        "started_at": "2026-11-19 18:38:06 UTC",
        "plan": (),
        "versions": (("lockcheck", "0.1.0"), ("redis", "8.0.2")),
        "rerun_command": "",
        "check_command": "",
        "took_ms": 1234.5,
    }
    return RunFacts(**(given | more))  # type: ignore[arg-type]


def begun(out: Path, of: RunFacts) -> Store:
    """A run's folder as it is while the run lasts: clients have written, nothing is judged."""
    store, terms = Store.create(out), Terms(backend="redis", workload="mutex", clients=2)
    store.begin(CONFIG, terms, of)
    store.save_record(record_of(of, CONFIG, None))
    for client in (1, 2):
        folder = store.folder / NODES_FOLDER / f"c{client}"
        folder.mkdir()
        own = [each for each in events(*OVERLAP) if each.process in (client, "terms")]
        text = b"".join(msgspec.json.encode(each) + b"\n" for each in own)
        (folder / "history.jsonl").write_bytes(text)
    return store


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    store, of = begun(tmp_path, facts()), history(*OVERLAP)
    written = publish(store, Narrative(judge(of)), facts())
    read = read_record(store.folder)
    assert read == written
    assert read.verdict is Verdict.VIOLATION
    assert (
        Tally(code=Code.OVERLAP, effect=Verdict.VIOLATION, blame=Culprit.SERVICE, number=1)
        in read.findings
    )
    assert read.codes[Code.OVERLAP] == 1
    assert read.counts == judge(of).counts
    assert read.config == CONFIG
    assert read.versions["redis"] == "8.0.2"
    assert read.started == datetime(2026, 11, 19, 18, 38, 6, tzinfo=UTC)
    assert (read.took_ms, read.exit_code) == (1234.5, 1)


def test_findings_are_counted_by_code_effect_and_blame() -> None:
    of = history(*OVERLAP)
    judged = judge(of)
    [overlap] = judged.of(Code.OVERLAP)
    guarded = replace(overlap, effect=Verdict.OK)
    record = record_of(facts(), None, replace(judged, findings=(overlap, guarded, overlap)))
    assert [(each.effect.value, each.number) for each in record.findings] == [
        ("ok", 1),
        ("violation", 2),
    ]
    assert record.codes == {Code.OVERLAP: 3}


@pytest.mark.parametrize(
    ("more", "exit_code"),
    [
        ({}, 1),
        ({"problem": "interrupted", "failed_with": 130}, 130),
        ({"problem": "no space", "failed_with": 4}, 4),
        ({"problem": KILLED}, None),
    ],
)
def test_the_exit_code_is_that_of_the_command(
    more: dict[str, object], exit_code: int | None
) -> None:
    assert record_of(facts(**more), CONFIG, judge(history(*OVERLAP))).exit_code == exit_code


@pytest.mark.parametrize("written", ["", "yesterday", "2026-13-40 18:38:06 UTC"])
def test_a_start_that_is_not_a_time_is_unknown(written: str) -> None:
    assert facts(started_at=written).started is None
    assert facts(started_at=now_in_words()).started is not None


def test_a_killed_run_has_a_record_before_and_after_it_is_judged(tmp_path: Path) -> None:
    store = begun(tmp_path, facts(problem=KILLED, took_ms=None))
    before = read_record(store.folder)
    assert (before.verdict, before.counts, before.exit_code) == (Verdict.UNKNOWN, None, None)
    assert before.config == CONFIG
    assert lockcheck("check", str(store.folder)).returncode == 1
    after = read_record(store.folder)
    assert (after.verdict, after.exit_code, after.took_ms) == (Verdict.VIOLATION, None, None)
    assert after.codes[Code.OVERLAP] == 1
    assert after.problem == KILLED
    assert after.doubts[DoubtCode.RUN_UNFINISHED] == 1
    assert after.config == CONFIG


def test_check_writes_a_record_that_is_lost_or_damaged_anew(tmp_path: Path) -> None:
    store, of = begun(tmp_path, facts()), history(*OVERLAP)
    store.assemble_history(store.terms(), facts())
    publish(store, Narrative(judge(of)), facts())
    assert lockcheck("check", str(store.folder)).returncode == 1
    first = read_record(store.folder)
    for damage in (b"", b"{}", b'{"run_id": "x"'):
        (store.folder / RECORD_FILE).write_bytes(damage)
        with pytest.raises(UserError, match="is no record of a run") as refused:
            read_record(store.folder)
        assert refused.value.cure == f"lockcheck check {store.folder} writes it anew"
    (store.folder / RECORD_FILE).unlink()
    with pytest.raises(UserError, match="cannot be read"):
        read_record(store.folder)
    assert lockcheck("check", str(store.folder)).returncode == 1
    assert read_record(store.folder) == first


def test_facts_and_settings_of_an_earlier_version_are_judged_all_the_same(tmp_path: Path) -> None:
    store = begun(tmp_path, facts())
    path = store.folder / FACTS_FILE
    earlier = msgspec.json.decode(path.read_bytes())
    del earlier["took_ms"], earlier["failed_with"]
    path.write_bytes(msgspec.json.encode(earlier))
    (store.folder / CONFIG_FILE).write_text('{"lock": "redis"}')
    assert lockcheck("check", str(store.folder)).returncode == 1
    record = read_record(store.folder)
    assert (record.config, record.took_ms) == (None, None)


def test_a_bare_history_in_a_folder_of_any_name_has_a_record_too(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    lines = [msgspec.json.encode(each) + b"\n" for each in events(*OVERLAP)]
    (folder / "history.jsonl").write_bytes(b"".join(lines))
    done = lockcheck("check", str(folder))
    assert done.returncode == 1, done.stderr
    record = read_record(folder)
    assert (record.run_id, record.config, record.started) == ("?", None, None)


def test_every_field_is_documented() -> None:
    text = Path("docs/verdicts.md").read_text().partition("## record.json")[2]
    named = set(re.findall(r"`(\w+)`", text))
    assert {field for kind in (Record, Tally) for field in kind.__struct_fields__} <= named
