"""A campaign's file: what it asks for, and what is wrong with it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import msgspec
import pytest

from lockcheck.cli.campaign.commands import matrix_command
from lockcheck.cli.campaign.conduct import asked_in
from lockcheck.errors import UserError
from lockcheck.matrix.choosing import chosen
from lockcheck.matrix.folder import Folder, Plan, unfinished
from lockcheck.matrix.planning import Asked

ROW = '[[row]]\nbackend = "redis"\nnemesis = "pause"\n'
PRODUCT = """
seeds = [7, 11]
thresholds = ["violations == 0"]
[run]
time-limit = "5s"
[[row]]
backend = ["redis-fenced", "redis"]
nemesis = ["pause", "none"]
guard = "fence"
[[row]]
backend = "redis"
nemesis = [["pause", "partition"]]
ttl = ["1s", "2s"]
expect = "violation in >= 80 % of 20"
findings = ["overlap"]
blame = "holder"
"""


def asked(text: str) -> Asked:
    with matrix_command.make_context("matrix", ["--own"]) as context:
        return asked_in(context, "f.toml", tomllib.loads(text), own=False)


def test_a_list_is_a_cell_for_each_and_what_does_not_fit_is_left_out() -> None:
    found = asked(PRODUCT)
    assert [cell.id for cell in found.cells] == [
        "redis-fenced::pause::fence",
        "redis-fenced::none::fence",
        "redis::pause+partition::ttl=1s",
        "redis::pause+partition::ttl=2s",
    ]
    assert [line.partition(":")[0] for line in found.left_out] == ["redis", "redis"]
    assert all("no fencing tokens" in line for line in found.left_out)
    first, *_, last = found.cells
    assert (first.seeds, first.config.time_limit_ms, first.config.seed) == ((7, 11), 5000, 7)
    assert last.config.ttl_ms == 2000
    assert last.config.nemesis == ("pause", "partition")
    assert last.seeds == tuple(range(1, 21))
    expected = last.expectation
    assert (expected.compare, expected.share, expected.findings) == (">=", 0.8, ("overlap",))
    assert expected.words == "violation in >= 80%"
    assert found.thresholds == ("violations == 0",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it has no rows"),
        ("rows = 1\n" + ROW, "no setting 'rows'"),
        (ROW + "ttll = '1s'", "no setting 'ttll'"),
        (ROW + "seed = 3", "no setting 'seed'"),
        (ROW + "ttl = '1 s p'", "row 1"),
        (ROW + "nemesis = 'pawse'".replace("nemesis", "workload"), "row 1"),
        (ROW + "guard = 'fence'", "no fencing tokens"),
        (ROW + "expect = 'fine'", "says nothing known"),
        (ROW + "expect = 'any in > 50 %'", "no share of runs"),
        (ROW + "expect = 'violation in >= 180 %'", "no share of runs"),
        (ROW + "findings = ['overlaps']", "no check 'overlaps'"),
        (ROW + "blame = 'me'", "blame = 'me'"),
        (ROW + "seeds = 0", "seeds = 0"),
        (ROW + "seeds = true", "seeds = True"),
        (ROW + ROW, "two rows ask for it"),
        ("thresholds = 3\n" + ROW, "it is no list of texts"),
    ],
)
def test_what_is_wrong_is_named_with_its_cure(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words.replace("[", r"\[")) as wrong:
        asked(text)
    assert wrong.value.cure
    assert "f.toml" in wrong.value.message


# --- which of them -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("fence", ["redis-fenced::pause::fence", "redis-fenced::none::fence"]),
        ("not fence and 2S", ["redis::pause+partition::ttl=2s"]),
        ("::none or ttl=1s", ["redis-fenced::none::fence", "redis::pause+partition::ttl=1s"]),
        ("(none or ttl) and not (ttl=2s or fence)", ["redis::pause+partition::ttl=1s"]),
    ],
)
def test_cells_are_chosen_by_words(words: str, ids: list[str]) -> None:
    assert [cell.id for cell in chosen(asked(PRODUCT).cells, words)] == ids


@pytest.mark.parametrize("words", ["zebra", "not", "(redis", "redis)", "redis and", "or redis"])
def test_what_chooses_nothing_or_cannot_be_read_is_refused(words: str) -> None:
    with pytest.raises(UserError):
        chosen(asked(PRODUCT).cells, words)


# --- its folder ----------------------------------------------------------------------------------


def plan(shard: str = "", text: str = PRODUCT) -> Plan:
    return Plan(source="f.toml", cells=asked(text).cells, shard=shard)


def test_what_is_cut_short_has_seen_the_first_seed_of_all() -> None:
    trials = [trial.id for trial in plan().trials]
    assert trials[:5] == [
        "redis-fenced::pause::fence[7]",
        "redis-fenced::none::fence[7]",
        "redis::pause+partition::ttl=1s[1]",
        "redis::pause+partition::ttl=2s[1]",
        "redis-fenced::pause::fence[11]",
    ]
    assert len(trials) == len(set(trials)) == 2 + 2 + 20 + 20


def test_shards_share_all_trials_and_none_twice() -> None:
    shards = [trial.id for n in range(1, 5) for trial in plan(f"{n}/4").trials]
    assert sorted(shards) == sorted(trial.id for trial in plan().trials)


def test_a_campaign_goes_on_only_with_the_same_plan(tmp_path: Path) -> None:
    begun = Folder.begin(tmp_path, plan())
    assert unfinished(tmp_path, plan()) == begun
    assert unfinished(tmp_path, plan(shard="1/2")) is None
    assert unfinished(tmp_path, plan(text=PRODUCT.replace("5s", "6s"))) is None
    begun.finish(())
    assert unfinished(tmp_path, plan()) is None


def test_names_of_trials_are_names_of_folders_and_stay_apart(tmp_path: Path) -> None:
    folder = Folder.begin(tmp_path, plan())
    paths = [folder.of_trial(trial) for trial in folder.plan().trials]
    assert len(set(paths)) == len(paths)
    assert paths[0].name == "redis-fenced-pause-fence-7"
    assert all(path.parent == folder.path / "trials" for path in paths)


def test_the_plan_reads_back(tmp_path: Path) -> None:
    folder = Folder.begin(tmp_path, plan())
    assert folder.plan().cells == plan().cells
    name = "redis::pause+partition::ttl=2s[20]"
    assert folder.trial(name).config.ttl_ms == 2000
    with pytest.raises(UserError, match="has no trial"):
        folder.trial("zebra")
    (folder.path / "plan.ndjson").write_text("{}\n")
    with pytest.raises(UserError, match="cannot be read"):
        folder.plan()
    with pytest.raises(UserError, match="no folder of a campaign"):
        Folder.at(tmp_path).plan()


def test_root_carries_out_no_plan_that_others_may_have_written(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("it is about root")
    folder = Folder.begin(tmp_path, plan())
    (folder.path / "plan.ndjson").chmod(0o666)
    with pytest.raises(UserError, match="can be written by other users"):
        folder.plan()


def test_no_two_trials_share_a_folder(tmp_path: Path) -> None:
    first, *_ = asked(PRODUCT).cells
    cells = tuple(msgspec.structs.replace(first, id=name) for name in ("a::b-c", "a-b::c"))
    with pytest.raises(UserError, match="would have one folder"):
        Folder.begin(tmp_path, Plan(source="f.toml", cells=cells))
    assert not list(tmp_path.iterdir())
