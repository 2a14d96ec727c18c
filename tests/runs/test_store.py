"""What is written into a run's folder, which may be a stranger's, and we root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lockcheck.runs.store import REPORT_FILE, Store
from tests.running import lockcheck

HISTORY = '{"time":1,"process":"c1","type":"invoke","f":"acquire","key":"k"}\n'
USAGE = 2


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    precious, folder = tmp_path / "precious", tmp_path / "run"
    precious.write_text("keep me")
    folder.mkdir()
    (folder / "history.jsonl").write_text(HISTORY)
    for name in (REPORT_FILE, "verdict.json"):
        (folder / name).symlink_to(precious)
    done = lockcheck("check", str(folder))
    assert done.returncode in {0, 3}, done.stderr
    assert precious.read_text() == "keep me"
    assert (folder / REPORT_FILE).read_text().startswith("<!doctype html>")
    assert not (folder / REPORT_FILE).is_symlink()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_latest_of_the_users_own_is_left_alone(tmp_path: Path, kind: str) -> None:
    latest = tmp_path / "latest"
    latest.mkdir() if kind == "folder" else latest.write_text("mine")
    store = Store.create(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([latest, store.folder])
    assert not latest.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_settings_of_another_user_are_not_obeyed(tmp_path: Path) -> None:
    settings = tmp_path / "lockcheck.toml"
    settings.write_text('[export]\nout = "theirs"\n')
    history = tmp_path / "history.jsonl"
    history.write_text(HISTORY)
    command = ("export", str(history), "--format", "csv")
    done = lockcheck(*command, cwd=tmp_path)
    assert done.returncode == 0
    assert f"used: settings of [export] in {settings}" in done.stderr
    (tmp_path / "theirs").unlink()
    os.chown(settings, 4711, 4711)
    done = lockcheck(*command, cwd=tmp_path)
    assert done.returncode == USAGE
    assert "lockcheck.toml in this folder belongs to another user (uid 4711)" in done.stderr
    assert not (tmp_path / "theirs").exists()


LINE = '{{"time":{time},"process":{client},"type":"{kind}","f":"acquire","key":"k"}}\n'


@pytest.mark.parametrize(
    ("clients", "until"),
    [
        ({1: (1, 9), 2: (2, 5)}, 5),  # what c1 did at 9 may be answered by what c2's file lost
        ({1: (1, 9)}, 0),  # of c2 nothing is known
        ({}, 0),
    ],
)
def test_parts_are_complete_as_far_as_those_of_all_clients_are(
    tmp_path: Path, clients: dict[int, tuple[int, int]], until: int
) -> None:
    store = Store.create(tmp_path)
    for client, (invoked, answered) in clients.items():
        part = store.folder / "nodes" / f"c{client}" / "history.jsonl"
        part.parent.mkdir()
        lines = [
            LINE.format(time=invoked, client=client, kind="invoke"),
            LINE.format(time=answered, client=client, kind="ok"),
            '{"time":99,"proc',  # torn
        ]
        part.write_text("".join(lines))
    assert store.complete_until_ns(2) == until
