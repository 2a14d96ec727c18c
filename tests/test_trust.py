"""What another user could have made or could lead elsewhere: not obeyed, nor written to by root."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lockcheck.errors import UserError
from lockcheck.runs.store import Store
from lockcheck.trust import doubt_on_the_way, own_users, trusted_users
from tests.running import lockcheck
from tests.runs.test_store import HISTORY

STRANGER = 4711
USAGE, UNKNOWN = 2, 3
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A stranger's folder."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, STRANGER, STRANGER)
    return folder


def give_away(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


def test_what_only_we_can_change_is_trusted(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to("real")
    for path in (real, link, real / "..", link / "not" / "there", Path("/"), Path("/dev/null")):
        assert path == Path("/dev/null") or doubt_on_the_way(path, own_users()) == ""


@pytest.mark.parametrize(
    ("mode", "below", "itself"),
    [
        (0o755, True, True),
        (0o777, False, False),
        (0o1777, True, False),  # others can add to it, and replace nothing
        (0o757, False, False),
    ],
)
def test_what_others_may_write_to(tmp_path: Path, mode: int, below: bool, itself: bool) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(mode)
    assert (doubt_on_the_way(folder / "child", own_users()) == "") is below
    assert (doubt_on_the_way(folder, own_users()) == "") is itself


@as_root
@pytest.mark.parametrize(("group", "trusted"), [(0, True), (STRANGER, False)])
def test_a_group_of_its_owners_own_is_no_other_user(
    tmp_path: Path, group: int, trusted: bool
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    os.chown(folder, 0, group)
    folder.chmod(0o775)
    assert (doubt_on_the_way(folder, own_users()) == "") is trusted


@as_root
def test_every_link_and_folder_on_the_way_counts(tmp_path: Path, theirs: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    (theirs / "back").symlink_to(ours)
    os.lchown(theirs / "back", 0, 0)
    (tmp_path / "via").symlink_to(theirs / "back")  # what it leads to is ours, by way of theirs
    assert f"{theirs} belongs to another user (uid {STRANGER})" in doubt_on_the_way(
        tmp_path / "via", own_users()
    )
    (tmp_path / "link").symlink_to(ours)
    give_away(tmp_path / "link")
    assert "link belongs to another user" in doubt_on_the_way(tmp_path / "link" / "x", own_users())
    assert doubt_on_the_way(theirs, {*own_users(), STRANGER}) == ""


def test_a_circle_of_links_is_not_followed_for_ever(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "cannot be looked at" in doubt_on_the_way(tmp_path / "a" / "x", own_users())


def test_a_user_who_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "lockcheck.toml").write_text("")
    done = lockcheck("list", cwd=tmp_path, variables={"SUDO_UID": "abc"})
    assert done.returncode == USAGE, done.stderr
    assert "SUDO_UID=abc is not the number of a user" in done.stderr
    assert "cure: unset it" in done.stderr


# --- the folder of results -----------------------------------------------------------------------


@as_root
def test_root_makes_no_run_where_another_user_could_replace_it(theirs: Path) -> None:
    out = theirs / "results"
    done = lockcheck("run", "--backend", "redis", "--runtime", "local", "--out", str(out))
    assert done.returncode == USAGE, done.stderr
    assert f"root does not write to {out}: {theirs} belongs to another user" in done.stderr
    assert "cure: do it as that user" in done.stderr
    assert not out.exists()


@as_root
def test_who_called_sudo_may_have_results_at_home(
    theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError):
        Store.create(theirs / "results")
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert Store.create(theirs / "results").folder.is_dir()
    assert trusted_users() == {*own_users(), STRANGER}


@as_root
def test_a_strangers_run_is_judged_and_left_as_it_was(tmp_path: Path, theirs: Path) -> None:
    (theirs / "history.jsonl").write_text(HISTORY)
    done = lockcheck("check", str(theirs))
    assert done.returncode == UNKNOWN, done.stderr
    assert "judged, but the result could not be written: root does not write to" in done.stderr
    assert [path.name for path in theirs.iterdir()] == ["history.jsonl"]
    report = tmp_path / "report.html"
    assert lockcheck("check", str(theirs), "--report", str(report)).returncode == UNKNOWN
    assert report.read_text().startswith("<!doctype html>")


@as_root
@pytest.mark.parametrize("command", [("check", "--report"), ("export", "--format", "edn", "--out")])
def test_root_writes_no_file_where_another_user_could_lead_it(
    tmp_path: Path, theirs: Path, command: tuple[str, ...]
) -> None:
    history, precious = tmp_path / "history.jsonl", tmp_path / "precious"
    history.write_text(HISTORY)
    precious.mkdir()
    (theirs / "link").symlink_to(precious)
    name, *options = command
    for folder in (theirs, theirs / "link"):
        done = lockcheck(name, str(history), *options, str(folder / "file"))
        assert done.returncode == USAGE, done.stderr
        assert f"root does not write to {folder}: {theirs} belongs to another user" in done.stderr
    assert list(precious.iterdir()) == []
    assert [path.name for path in theirs.iterdir()] == ["link"]


@as_root
def test_a_strangers_link_in_a_folder_for_all_is_replaced(tmp_path: Path) -> None:
    shared, precious, history = tmp_path / "tmp", tmp_path / "precious", tmp_path / "history.jsonl"
    history.write_text(HISTORY)
    precious.write_text("keep me")
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "out").symlink_to(precious)
    give_away(shared / "out")
    done = lockcheck("export", str(history), "--format", "edn", "--out", str(shared / "out"))
    assert done.returncode == 0, done.stderr
    assert precious.read_text() == "keep me"
    assert (shared / "out").lstat().st_uid == 0
    assert (shared / "out").read_text()


# --- a stranger's files --------------------------------------------------------------------------


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link(path: Path) -> None:
    (path.parent / "precious").write_text(HISTORY)
    path.symlink_to("precious")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


def deep(path: Path) -> None:
    path.write_text('{"x":' + "[" * 100_000 + "\n")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (pipe, "it is no regular file"),
        (endless, "it is a link"),
        (link, "it is a link"),
        (huge, "longer than"),
        (deep, ""),
    ],
)
@pytest.mark.parametrize("name", ["facts.json", "nodes/terms.jsonl", "nodes/c1/history.jsonl"])
def test_no_file_of_a_run_keeps_us_or_leads_away(
    tmp_path: Path, name: str, make: Callable[[Path], None], words: str
) -> None:
    run = tmp_path / "run"
    (run / "nodes" / "c1").mkdir(parents=True)
    (run / "facts.json").write_text(FACTS)
    (run / "nodes" / "terms.jsonl").write_text(TERMS)
    (run / "nodes" / "c1" / "history.jsonl").write_text(HISTORY)
    (run / name).unlink()
    make(run / name)
    done = lockcheck("check", str(run), timeout_s=60)
    assert done.returncode == USAGE, (done.stdout, done.stderr)
    assert f"{run / name}" in done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (run / "history.jsonl").exists()


@pytest.mark.parametrize("make", [pipe, endless, huge])
def test_no_settings_keep_us(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "lockcheck.toml")
    done = lockcheck("list", "formats", cwd=tmp_path, timeout_s=60)
    assert done.returncode == USAGE, done.stderr
    assert "lockcheck.toml cannot be read: it is" in done.stderr
    assert "cure: " in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 3000, "it is nested too deeply"),
        ("a = " + "1" * 5000, "digits"),
        ("a = \xff", "lockcheck.toml cannot be read"),
    ],
)
def test_settings_that_are_no_settings(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "lockcheck.toml").write_text(text, encoding="latin-1")
    done = lockcheck("list", "formats", cwd=tmp_path)
    assert done.returncode == USAGE, done.stderr
    assert words in done.stderr
    assert "cure: " in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_that_others_may_write_are_not_obeyed(tmp_path: Path) -> None:
    settings = tmp_path / "lockcheck.toml"
    settings.write_text("")
    settings.chmod(0o666)
    done = lockcheck("list", "formats", cwd=tmp_path)
    assert done.returncode == USAGE, done.stderr
    assert "lockcheck.toml in this folder can be written by other users" in done.stderr
    settings.chmod(0o644)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "lockcheck.toml").symlink_to(settings)  # the user's own link
    assert lockcheck("list", "formats", cwd=tmp_path / "elsewhere").returncode == 0


FACTS = """{"run_id": "r", "started_at": "", "plan": [], "versions": [], "rerun_command": "",
"check_command": ""}"""
TERMS = '{"time":0,"process":"run","type":"info","f":"terms","value":{"clients":1}}\n'
