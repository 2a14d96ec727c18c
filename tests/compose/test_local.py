"""The local runtime writes into the folder that it was given, whatever takes that one's place."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from lockcheck.compose.local.runtime import LocalRuntime
from lockcheck.errors import ClusterError
from lockcheck.runs.store import Store
from tests.compose.plans import small_plan
from tests.running import lockcheck, need, run_under_way

pytestmark = pytest.mark.cluster

# An agent that finds a link in the place of the run's folder.
TOO_LATE = """
from pathlib import Path
from lockcheck.agent import agent
from lockcheck.agent.own_folder import OwnFolder

class Swapped(OwnFolder):
    def mount(self):
        self.path.rename(self.path.with_name("away"))
        self.path.symlink_to(self.path.with_name("precious"))
        super().mount()

agent.OwnFolder = Swapped
agent.main()
"""


def test_a_link_put_in_its_place_before_it_is_looked_at_is_refused(tmp_path: Path) -> None:
    need("local")
    precious = tmp_path / "precious"
    precious.mkdir()
    runtime = LocalRuntime((sys.executable, "-P", "-c", TOO_LATE))
    with pytest.raises(ClusterError, match="cannot be mounted for the run"):
        runtime.start(small_plan(tmp_path), print)
    assert list(precious.iterdir()) == []


def test_another_folder_is_refused(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "precious").mkdir()
    another = TOO_LATE.replace("symlink_to(", "mkdir() or (")
    runtime = LocalRuntime((sys.executable, "-P", "-c", another))
    with pytest.raises(ClusterError, match="another folder was put in the place of"):
        runtime.start(small_plan(tmp_path), print)
    assert list((tmp_path / "nodes").iterdir()) == []


def test_a_link_put_in_its_place_under_way_directs_nothing(tmp_path: Path) -> None:
    """Servers, clients and agent go on writing where they began."""
    need("local")
    out, away, precious = tmp_path / "results", tmp_path / "away", tmp_path / "precious"
    precious.mkdir()
    options = ("--backend", "redis", "--nemesis", "kill:holder", "--time-limit", "6s")
    with run_under_way(out, "local", *options) as (process, run_id):
        (out / run_id).rename(away)
        (out / run_id).symlink_to(precious)
        _said, _ = process.communicate(timeout=120)
        assert process.returncode == 4
    assert list(precious.iterdir()) == []
    assert "lockcheck: " in (tmp_path / "results.stderr").read_text()
    assert (away / "nodes" / "c1" / "history.jsonl").stat().st_size > 0
    assert (away / "nodes" / "storage.jsonl").stat().st_size > 0
    checked = lockcheck("check", str(away))
    assert checked.returncode == 3, checked.stderr  # it was cut short, and is judged from its parts


def test_a_folder_held_is_written_to_wherever_it_went(tmp_path: Path) -> None:
    need("local")
    store = Store.create(tmp_path)
    with store.held() as held:
        store.folder.rename(tmp_path / "away")
        store.folder.mkdir()
        with closing(LocalRuntime().start(small_plan(held), print)):
            pass
    assert list(store.folder.iterdir()) == []
    assert (tmp_path / "away" / "nodes" / "n1" / "output.log").exists()
