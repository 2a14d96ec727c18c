"""Packages of another suite of Debian: from the host's mirror, signatures checked, no root."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.compose import apt
from lockcheck.compose.apt import KEYRING, MIRROR_VARIABLE, Apt, can_fetch
from lockcheck.compose.local import fetching
from lockcheck.errors import ClusterError
from lockcheck.servers.base import Clock, Question, Server, unpacked

HELLO = Server(
    name="hello",
    title="Hello",
    port=1,
    find=lambda: (
        (str(program),) if (program := unpacked("hello") / "usr/bin/hello").exists() else None
    ),
    cure="install hello",
    image="hello",
    suite="bookworm",
    image_program=("hello",),
    command=lambda here: here.program,
    ready=Question(b"", b""),
    clock=Clock.WALL,
    debs=("hello",),
)


@pytest.fixture(autouse=True)
def of_debian() -> None:
    if not can_fetch() or not KEYRING.exists():
        pytest.skip("no apt-get with Debian's keys on this host")


def test_a_server_of_another_suite_is_unpacked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    notes: list[str] = []
    fetching.bring_server(HELLO, notes.append)
    assert "Debian bookworm's hello, unpacked once into" in notes[0]
    program = HELLO.find()
    assert program is not None
    done = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True)
    assert "GNU Hello" in done.stdout
    assert not fetching.can_be_fetched(HELLO)
    fetching.bring_server(HELLO, notes.append)
    assert len(notes) == 1
    fetching.bring_server(replace(HELLO, debs=("hello", "hostname")), notes.append)
    assert "Debian bookworm's hello, hostname, unpacked once into" in notes[1]


def test_a_mirror_that_is_not_there_is_quoted_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(MIRROR_VARIABLE, f"file:{tmp_path}/no-mirror")
    with pytest.raises(ClusterError, match="no-mirror") as failed:
        fetching.bring_server(HELLO, print)
    assert failed.value.message.startswith("Hello could not be fetched: apt-get could not fetch")
    assert MIRROR_VARIABLE in failed.value.cure
    assert "install hello" in failed.value.cure
    assert not unpacked("hello").exists()


def test_what_nobody_signed_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_keys = tmp_path / "no-keys.gpg"
    no_keys.touch()
    monkeypatch.setattr(apt, "KEYRING", no_keys)
    with pytest.raises(ClusterError, match="hello of Debian bookworm") as failed:
        Apt(tmp_path, "bookworm").unpack(["hello"], tmp_path / "unpacked")
    assert "not signed" in failed.value.message or "verif" in failed.value.message
    assert not (tmp_path / "unpacked").exists()


def test_a_host_without_a_mirror_is_asked_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Apt, "debian_mirror", lambda _self: [])
    with pytest.raises(ClusterError, match="no Debian mirror") as failed:
        Apt(tmp_path, "bullseye").unpack(["hello"], tmp_path / "unpacked")
    assert MIRROR_VARIABLE in failed.value.cure
