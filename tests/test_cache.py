"""What is in the cache is executed only if no other user could have put it there, and if it is what
was fetched; and what a killed process leaves in it goes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from lockcheck import cache
from lockcheck.cache import NOTE, cache_folder, filled_with, filling, remove_leftovers, scratch
from lockcheck.compose.apt import MIRROR_VARIABLE, can_fetch
from lockcheck.errors import UserError
from lockcheck.servers.base import unpacked
from tests.compose.hosts import fake_program
from tests.running import lockcheck
from tests.waiting import wait_for

STRANGER = 4711
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache is to be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
    return tmp_path / "home" / "cache" / "lockcheck"


def fetched_etcd(mark: Path) -> Path:
    """An etcd in the cache that leaves a mark when it is executed."""
    with filling(unpacked("etcd"), "trixie etcd-server") as folder:
        program = folder / "usr" / "bin" / "etcd"
        program.parent.mkdir(parents=True)
        fake_program(program, "etcd Version: 3.5.21")
        program.write_text(program.read_text().replace("echo", f": > {mark}; echo"))
    return unpacked("etcd") / "usr" / "bin" / "etcd"


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But what takes the local runtime and apt."""
    (tmp_path / "bin").mkdir()
    for name in ("unshare", "true", "apt-get", "dpkg-deb"):
        if found := shutil.which(name):
            (tmp_path / "bin" / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def doctor() -> str:
    done = lockcheck("doctor")
    assert done.stderr == ""  # it comes to its end
    return done.stdout


def test_what_we_fetched_is_used(root: Path, tmp_path: Path) -> None:
    program = fetched_etcd(tmp_path / "executed")
    assert f"3.5.21 ({program})" in doctor()
    assert (tmp_path / "executed").exists()


@as_root
@pytest.mark.parametrize("whose", ["cache", "lockcheck", "debian", "etcd", "usr"])
@pytest.mark.parametrize("sudo_uid", ["", str(STRANGER)])
def test_root_executes_nothing_that_another_user_could_have_put_there(
    root: Path, tmp_path: Path, whose: str, sudo_uid: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the user who called sudo."""
    program = fetched_etcd(tmp_path / "executed")
    folder = next(each for each in program.parents if each.name == whose)
    os.chown(folder, STRANGER, STRANGER)
    monkeypatch.setenv("SUDO_UID", sudo_uid)
    shown = doctor()
    assert f"is executed: {folder} belongs to another user (uid {STRANGER})" in shown
    assert "cure: name a folder in XDG_CACHE_HOME that only this user can write" in shown
    assert not (tmp_path / "executed").exists()
    ran = lockcheck("run", "--backend", "etcd", "--runtime", "local", "--out", str(tmp_path))
    assert "belongs to another user" in ran.stderr, ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("whose", ["home", "lockcheck", "etcd", "bin", "program"])
def test_what_others_may_write_is_not_executed(root: Path, tmp_path: Path, whose: str) -> None:
    program = fetched_etcd(tmp_path / "executed")
    path = next((each for each in program.parents if each.name == whose), program)
    path.chmod(0o777)
    assert f"{path} can be written by other users" in doctor()
    assert not (tmp_path / "executed").exists()


@as_root
def test_an_ordinary_user_executes_nothing_of_other_users_but_root(
    root: Path, tmp_path: Path
) -> None:
    program = fetched_etcd(tmp_path / "executed")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: NOBODY)
        assert filled_with(unpacked("etcd")) == "trixie etcd-server"
        cache._compared.cache_clear()
        os.chown(program, STRANGER, STRANGER)
        with pytest.raises(UserError, match=f"etcd belongs to another user .uid {STRANGER}"):
            filled_with(unpacked("etcd"))


def test_a_new_cache_is_its_users_alone_whatever_the_umask(root: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        fetched_etcd(tmp_path / "executed")
    finally:
        os.umask(before)
    made = (root.parent.parent, root.parent, root, root / "debian")
    assert [oct(folder.stat().st_mode & 0o777) for folder in made] == ["0o700"] * 4
    assert filled_with(unpacked("etcd")) == "trixie etcd-server"


@pytest.mark.parametrize("damage", ["changed", "cut off", "missing", "added", "relinked", "note"])
def test_what_is_not_as_it_was_fetched_is_not_executed(
    root: Path, tmp_path: Path, damage: str
) -> None:
    program = fetched_etcd(tmp_path / "executed")
    with filling(unpacked("etcd"), "x") as folder:
        (folder / "usr").mkdir()
        program.rename(folder / "usr" / "etcd")
        (folder / "link").symlink_to("usr/etcd")
    program, name = unpacked("etcd") / "usr" / "etcd", "usr/etcd was changed"
    text = program.read_text()
    match damage:
        case "changed":
            program.write_text(text.replace("3.5", "3.6"))
        case "cut off":
            program.write_text(text[:10])
        case "missing":
            program.unlink()
        case "added":
            (program.parent / "lib.so").touch()
            name = "usr/lib.so was changed"
        case "relinked":
            (unpacked("etcd") / "link").unlink()
            (unpacked("etcd") / "link").symlink_to("elsewhere")
            name = "link was changed"
        case "note":
            (unpacked("etcd") / NOTE).write_text("{")
            name = f"{NOTE} is damaged"
    with pytest.raises(UserError, match=f"is not as it was fetched: {name}") as refused:
        filled_with(unpacked("etcd"))
    assert refused.value.cure == f"rm -r {unpacked('etcd')}, and it is fetched again"
    assert "is not as it was fetched" in doctor()


def test_what_could_not_be_fetched_leaves_nothing_and_what_was_there(root: Path) -> None:
    with filling(unpacked("x"), "before"):
        pass
    with suppress(KeyboardInterrupt), filling(unpacked("x"), "after") as folder:
        (folder / "half").touch()
        raise KeyboardInterrupt
    assert filled_with(unpacked("x")) == "before"
    assert filled_with(unpacked("y")) is None
    assert not list(root.glob("scratch-*"))


# --- processes that are killed -------------------------------------------------------------------


def test_what_a_dead_process_left_goes_and_what_a_live_one_has_stays(root: Path) -> None:
    dead = cache_folder() / "scratch-dead"
    (dead / "sub").mkdir(parents=True)
    with scratch() as first, scratch() as second:
        assert not dead.exists()
        dead.mkdir()
        assert remove_leftovers() == 1
        assert first.is_dir()
        assert second.is_dir()
    assert not list(root.glob("scratch-*"))


FETCH = """
from lockcheck.compose.local.fetching import bring_server
from tests.compose.test_apt import HELLO
from lockcheck.cli.supervising import supervise
supervise()
bring_server(HELLO, print)
"""


def working_in(folder: Path) -> list[int]:
    """The processes with their working directory in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            where = (process / "cwd").readlink()
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        if where.is_relative_to(folder):
            found.append(int(process.name))
    return found


def test_nothing_goes_on_fetching_for_a_process_that_was_killed(root: Path) -> None:
    """Of a mirror that never answers."""
    if not can_fetch():
        pytest.skip("no apt-get on this host")
    with socket.create_server(("127.0.0.1", 0)) as mirror:
        url = f"http://127.0.0.1:{mirror.getsockname()[1]}/debian"
        fetching = subprocess.Popen(
            [sys.executable, "-c", FETCH], env={**os.environ, MIRROR_VARIABLE: url}
        )
        try:
            mirror.settimeout(60)
            connection, _ = mirror.accept()
            with connection:
                assert working_in(root)
                fetching.send_signal(signal.SIGKILL)
                fetching.wait()
                wait_for(lambda: not working_in(root), "apt-get and its helpers have ended")
        finally:
            fetching.kill()
    assert list(root.glob("scratch-*"))
    wait_for(remove_leftovers, "the folders are removed")
    assert not list(root.glob("scratch-*"))
