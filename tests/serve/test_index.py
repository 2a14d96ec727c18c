"""The index: what it finds, that it reads only what changed, and how quick it is."""

from __future__ import annotations

import json
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from lockcheck.runs.store import RECORD_FILE
from lockcheck.serve import index as room
from lockcheck.serve.entries import Entry, Kind, Status, run_entry
from lockcheck.serve.index import Index
from lockcheck.serve.pages import list_page
from lockcheck.serve.query import ROWS, Query
from tests.serve.made_up import LONG_AGO, aged, campaign, record, run, under_way

MANY = 10_000
FIRST_PAGE_S, READ_S = 1.5, 30.0  # a tenth of either on a machine that has nothing else to do


@pytest.fixture(autouse=True)
def always_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LOOK_EVERY_S", 0.0)


def statuses(index: Index) -> dict[str, Status]:
    return {entry.name: entry.status for entry in index.snapshot().entries}


def finished(folder: Path, number: int) -> None:
    """As lockcheck writes it: it takes its name when it is complete."""
    fresh = folder / ".fresh"
    fresh.write_text(json.dumps(record(number)))
    fresh.replace(folder / RECORD_FILE)


def test_runs_are_found_at_any_depth_and_links_are_not_followed(tmp_path: Path) -> None:
    run(tmp_path / "here" / "one", 0)
    run(tmp_path / "here" / "team" / "two", 1)
    elsewhere = run(tmp_path / "elsewhere" / "three", 2)
    (tmp_path / "here" / "latest").symlink_to("one")
    (tmp_path / "here" / "far").symlink_to(elsewhere.parent)
    linked = tmp_path / "here" / "linked"
    linked.mkdir()
    (linked / RECORD_FILE).symlink_to(elsewhere / RECORD_FILE)
    found = Index(tmp_path / "here").snapshot()
    assert set(found.by_parts) == {("one",), ("team", "two")}
    [one, two] = sorted(found.entries, key=lambda entry: entry.name)
    assert (one.status, one.backends, one.nemeses) == (Status.OK, ("redis",), ("pause",))
    assert (two.status, two.about, two.guard) == (Status.VIOLATION, "2 overlap", "guard fence")


def test_the_folder_itself_may_be_a_run(tmp_path: Path) -> None:
    [entry] = Index(run(tmp_path / "alone")).snapshot().entries
    assert (entry.parts, entry.name) == ((), "alone")


def test_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def noting(root: Path, parts: tuple[str, ...], names: Collection[str]) -> Entry:
        read.append(parts[-1])
        return run_entry(root, parts, names)

    monkeypatch.setattr(room, "run_entry", noting)
    for number in range(3):
        run(tmp_path / f"r{number}", number)
    aged(tmp_path)
    index = Index(tmp_path)
    assert statuses(index) == {"r0": Status.OK, "r1": Status.VIOLATION, "r2": Status.UNKNOWN}
    read.clear()
    assert len(index.snapshot().entries) == 3
    assert read == []
    finished(tmp_path / "r2", 0)
    run(tmp_path / "r3", 1)
    assert statuses(index)["r2"] is Status.OK
    assert statuses(index)["r3"] is Status.VIOLATION
    assert {"r2", "r3"} == set(read)
    (tmp_path / "r0").rename(tmp_path.parent / f"{tmp_path.name}-gone")
    assert "r0" not in statuses(index)


def test_a_run_under_way_is_running_until_it_has_its_verdict(tmp_path: Path) -> None:
    folder = under_way(tmp_path / "r0")
    index = Index(tmp_path)
    assert statuses(index) == {"r0": Status.RUNNING}
    finished(folder, 1)
    assert statuses(index) == {"r0": Status.VIOLATION}


def test_one_whose_files_no_longer_grow_was_cut_short(tmp_path: Path) -> None:
    aged(under_way(tmp_path / "r0"))
    [entry] = Index(tmp_path).snapshot().entries
    assert (entry.status, entry.about) == (
        Status.CUT_SHORT,
        "The run was killed, or has not ended yet.",
    )


def test_a_run_that_failed_is_an_error(tmp_path: Path) -> None:
    run(tmp_path / "r0", 2, problem="r1 did not start\nport taken", exit_code=4)
    run(tmp_path / "r1", 2, problem="The run was interrupted.", exit_code=130)
    (run(tmp_path / "r2") / RECORD_FILE).write_text("[1, 2")
    assert statuses(Index(tmp_path)) == {
        "r0": Status.ERROR,
        "r1": Status.CUT_SHORT,
        "r2": Status.ERROR,
    }


def test_a_campaign_has_its_verdict_and_its_runs(tmp_path: Path) -> None:
    folder = campaign(tmp_path, "1", ("redis::pause", "ok", "ok violation"))
    run(folder / "trials" / "redis-pause-1" / "20260101-000000-abcdef", 0)
    by_kind = {entry.kind: entry for entry in Index(tmp_path).snapshot().entries}
    whole, one = by_kind[Kind.CAMPAIGN], by_kind[Kind.TRIAL]
    assert whole.status is Status.VIOLATION
    assert whole.about.startswith("0 of 1 cell as expected; 1 violation: redis::pause")
    assert whole.files == ("index.html",)
    assert one.name == "redis-pause-1"


def test_one_that_is_not_finished_says_how_far_it_came(tmp_path: Path) -> None:
    folder = campaign(tmp_path, "1", ("redis::pause", "ok", "ok ok"), finished=False)
    index = Index(tmp_path)
    [entry] = index.snapshot().entries
    assert (entry.status, entry.about) == (Status.RUNNING, "2 of 2 runs done")
    aged(folder)
    [entry] = index.snapshot().entries
    assert entry.status is Status.CUT_SHORT


def test_a_search_is_worth_what_it_found(tmp_path: Path) -> None:
    """Its plan says of no run beforehand that it is to come."""
    folder = campaign(tmp_path, "1", ("redis::pause", "any", ""), finished=False)
    for number, name in enumerate(("shrink-1", "shrink-2")):
        run(folder / "trials" / name / "20260101-000000-abcdef", number)
        (folder / "trials" / name / "result.json").write_text("{}")
    index = Index(tmp_path)
    [whole] = [each for each in index.snapshot().entries if each.kind is Kind.CAMPAIGN]
    assert whole.status is Status.RUNNING
    aged(folder)
    [whole] = [each for each in index.snapshot().entries if each.kind is Kind.CAMPAIGN]
    assert (whole.status, whole.about) == (Status.VIOLATION, "2 runs so far")


def test_a_sweep_has_its_own_page(tmp_path: Path) -> None:
    folder = campaign(tmp_path, "1", ("redis::pause", "any", "ok"))
    (folder / "index.html").rename(folder / "sweep.html")
    [entry] = Index(tmp_path).snapshot().entries
    assert entry.files == ("sweep.html",)
    assert b'<a href="/files/matrix-1/sweep.html">' in list_page(
        tmp_path, Index(tmp_path).snapshot(), Query(), LONG_AGO
    )


def test_a_plan_that_makes_no_sense_is_shown_as_such(tmp_path: Path) -> None:
    (tmp_path / "matrix-1").mkdir()
    (tmp_path / "matrix-1" / "plan.ndjson").write_text("")
    [entry] = Index(tmp_path).snapshot().entries
    assert entry.status is Status.ERROR
    assert "plan.ndjson" in entry.about


def test_ten_thousand_runs_are_quick(tmp_path: Path) -> None:
    for number in range(MANY):
        folder = tmp_path / f"r{number:05}"
        folder.mkdir()
        (folder / RECORD_FILE).write_text(json.dumps(record(number)))
    began = time.perf_counter()
    index = Index(tmp_path)
    assert len(index.snapshot().entries) == MANY
    read_s = time.perf_counter() - began
    began = time.perf_counter()
    page = list_page(tmp_path, index.snapshot(), Query(), LONG_AGO)
    page_s = time.perf_counter() - began
    print(f"read {read_s:.2f} s, first page {page_s:.3f} s")
    assert page.count(b"<tr>") == ROWS + 1  # and the head
    assert read_s < READ_S
    assert page_s < FIRST_PAGE_S
