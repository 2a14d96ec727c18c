"""Clients of the museum that are not in Python: what they need is named, and they are built."""

from __future__ import annotations

import os
import shlex
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from lockcheck.cache import filled_with
from lockcheck.cli.museum import museum_command
from lockcheck.errors import UserError
from lockcheck.yours.museum import programs
from lockcheck.yours.museum.exhibits import EXHIBITS
from lockcheck.yours.museum.programs import CLIENTS, LANGUAGES, MissingError, Program
from tests.yours.toolchains import ALL, lacking

TIMEOUT_S = 1800  # crates are fetched and built
OTHERS = {name: each for name, each in EXHIBITS.items() if each.program(control=False)}
QUICK = ".php"  # what is not built
GO = Program("etcd/mutex.go", {"golang-etcd-server-dev": "3.4.23"})


@pytest.fixture
def bin_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with no program on PATH but those of this folder, and an empty cache."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return programs


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_there_is_one_in_each_language() -> None:
    assert {Path(each.settings["client"].partition(":")[0]).suffix for each in OTHERS.values()} == {
        *LANGUAGES
    }


# --- what is missing -----------------------------------------------------------------------------


def test_a_missing_toolchain_is_named_with_what_brings_it(bin_alone: Path) -> None:
    with pytest.raises(MissingError, match="needs go, golang-etcd-server-dev") as raised:
        GO.bring(print)
    assert raised.value.cure == "apt-get install golang-go golang-etcd-server-dev"


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("installed 3.4.23-4", ""),
        ("installed 2:3.4.23+dfsg-4+deb12u1", ""),
        ("installed 2:3.4.23", ""),
        ("installed 3.5.16-4", "golang-etcd-server-dev is 3.5.16 here"),
        ("config-files 3.4.23-4", "needs golang-etcd-server-dev"),
    ],
)
def test_a_library_in_another_version_is_told(bin_alone: Path, version: str, said: str) -> None:
    program(bin_alone, "go", "exit 0")
    program(bin_alone, "dpkg-query", f"echo '{version}'")
    if not said:
        GO.check()
        return
    with pytest.raises(MissingError, match=said):
        GO.check()


def test_all_leaves_out_what_cannot_be_built_and_says_so(
    bin_alone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockcheck.yours.museum.exhibits.EXHIBITS", OTHERS)
    run = museum_command.main
    assert run(["--all"], standalone_mode=False) == 1  # nothing was run
    said = capsys.readouterr().out
    assert all(f"{name} is left out: " in said for name in OTHERS)
    assert "apt-get install cargo" in said
    assert run(["--all", "--no-skip"], standalone_mode=False) == 1
    assert f"{2 * len(OTHERS)} of {2 * len(OTHERS)} runs are not" in capsys.readouterr().out


# --- building ------------------------------------------------------------------------------------


def test_it_is_built_once_and_again_when_a_file_changes(
    bin_alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(bin_alone, "go", f"/bin/cat protocol.go client.go > client; echo >> {tmp_path}/built")
    folder = tmp_path / "clients"
    folder.mkdir()
    (folder / "protocol.go").write_text("a")
    (folder / "mutex.go").write_text("b")
    monkeypatch.setattr(programs, "CLIENTS", folder)
    client = Program("mutex.go", {})
    for _ in range(2):
        client.bring(print)
    assert Path(client.command()[0]).read_text() == "ab"
    (folder / "mutex.go").write_text("c")
    client.bring(print)
    assert Path(client.command()[0]).read_text() == "ac"
    assert (tmp_path / "built").read_text().count("\n") == 2


def test_a_build_that_fails_is_quoted_and_leaves_nothing(bin_alone: Path) -> None:
    program(bin_alone, "go", "echo '# command-line' >&2; echo 'error: no etcd' >&2; exit 1")
    client = Program("etcd/mutex.go", {})
    with pytest.raises(UserError, match=r"go did not build etcd/mutex.go: error: no etcd"):
        client.bring(print)
    assert filled_with(Path(client.command()[0]).parent) is None


@pytest.mark.parametrize(
    "manifest", sorted(CLIENTS.rglob("Cargo.toml")), ids=lambda p: p.parent.name
)
def test_crates_have_exact_versions(manifest: Path) -> None:
    wanted = tomllib.loads(manifest.read_text())["dependencies"].values()
    versions = [each if isinstance(each, str) else each["version"] for each in wanted]
    assert all(version.startswith("=") for version in versions)


@pytest.mark.cluster  # it takes the machine for itself
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("name", OTHERS)
def test_its_client_is_built_and_its_cause_is_there(name: str) -> None:
    exhibit = OTHERS[name]
    for control in (False, True):
        client = exhibit.program(control=control)
        if client is None:  # its control is another library, in Python
            continue
        if Path(client.source).suffix != QUICK and not os.environ.get(ALL):
            pytest.skip("it takes long to build: make test-clients")
        try:
            client.bring(print)
        except MissingError as error:
            lacking(str(error))
        command = shlex.split(exhibit.config(control=control, seed=1, out="results").client)
        asked = '{"body": {"type": "describe", "msg_id": 1}}\n'
        said = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
        assert '"in_reply_to":1' in said.stdout.replace(" ", ""), said.stderr
    assert exhibit.place()


def test_a_method_is_looked_up_in_a_jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "JARS", tmp_path)
    with zipfile.ZipFile(tmp_path / "locks.jar", "w") as jar:
        jar.writestr("org/locks/Mutex.class", b"\xca\xfe\x00\x07acquire\x00")
    client = Program("zookeeper/CuratorMutex.java", {})
    assert client.place("locks.jar!org/locks/Mutex", "acquire") == "Mutex, locks.jar"
    assert not client.place("locks.jar!org/locks/Mutex", "release")
    assert not client.place("locks.jar!org/locks/Other", "acquire")
