"""The base image where no registry offers one: what making it needs, and that it needs no more."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from unittest.mock import patch

import pytest

from lockcheck.cache import scratch
from lockcheck.compose.apt import Apt, can_fetch
from lockcheck.compose.images import base_image, debootstrap
from lockcheck.compose.images.recipes import USUAL_SUITE
from lockcheck.errors import ClusterError
from tests.compose.hosts import fake_program


@pytest.mark.parametrize(
    ("programs", "user", "lacks", "cure"),
    [
        ("", 0, "debootstrap is not installed", "install debootstrap"),
        ("apt-get", 0, "debootstrap is not installed", "install debootstrap"),
        ("debootstrap", 1000, "must run as root", "sudo lockcheck images build"),
        ("debootstrap", 0, "needs wget", "sudo apt-get install wget"),
        ("apt-get dpkg-deb", 0, "needs wget", "sudo apt-get install wget"),
        ("debootstrap wget", 0, "without /no/keys", "apt-get install debian-archive-keyring"),
    ],
)
def test_what_making_a_base_image_lacks(
    bare_host: Path, programs: str, user: int, lacks: str, cure: str
) -> None:
    for program in programs.split():
        fake_program(bare_host / program, "")
    with (
        patch("os.geteuid", lambda: user),
        patch.object(debootstrap, "KEYRING", Path("/no/keys")),
        pytest.raises(ClusterError, match=f"^no base image: .*{lacks}") as refused,
    ):
        base_image._check_debootstrap_can_run(USUAL_SUITE)
    assert cure in refused.value.cure
    assert "LOCKCHECK_BASE_IMAGE" in refused.value.cure


@pytest.mark.parametrize("programs", ["apt-get dpkg-deb wget", "debootstrap wget"])
def test_what_it_can_be_made_with(
    bare_host: Path, monkeypatch: pytest.MonkeyPatch, programs: str
) -> None:
    for program in programs.split():
        fake_program(bare_host / program, "")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(debootstrap, "KEYRING", bare_host)
    base_image._check_debootstrap_can_run(USUAL_SUITE)


def test_a_debootstrap_that_fails_is_quoted_and_leaves_nothing(bare_host: Path) -> None:
    fake_program(bare_host / "unshare", "E: no such suite", code=1)
    with (
        pytest.raises(ClusterError, match="E: no such suite"),
        scratch() as folder,
    ):
        debootstrap.run_debootstrap(["debootstrap", "woody", str(folder)], "woody", print)
    assert not folder.exists()


def test_a_package_that_cannot_be_fetched_is_named(tmp_path: Path) -> None:
    need_apt()
    with pytest.raises(ClusterError, match=r"could not fetch lockcheck-has-no-such:\n.*E: ") as no:
        Apt(tmp_path).unpack(["lockcheck-has-no-such"], tmp_path / "unpacked")
    assert "apt-get update" in no.value.cure


def test_debootstrap_is_fetched_and_runs_without_being_installed(tmp_path: Path) -> None:
    need_apt()
    fetched = debootstrap.fetched(Apt(tmp_path), tmp_path / "unpacked")
    done = subprocess.run(
        [*fetched, "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("debootstrap "), done.stderr
    assert Path(fetched[1].partition("=")[2], "scripts", USUAL_SUITE).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap runs as root only")
def test_a_base_that_nobody_signed_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_apt()
    if shutil.which("wget") is None or shutil.which("gpgv") is None:
        pytest.skip("debootstrap needs wget and gpgv")
    monkeypatch.setattr(debootstrap, "KEYRING", tmp_path / "no-keys.gpg")
    (tmp_path / "no-keys.gpg").touch()
    tree, work = tmp_path / "tree", tmp_path / "work"
    for folder in (tree, work):
        folder.mkdir()
    with pytest.raises(ClusterError, match=r"Release signed by unknown key|[Ii]nvalid Release"):
        debootstrap.make_tree(tree, USUAL_SUITE, "amd64", work, print)
    assert not (tree / "usr").exists()


def need_apt() -> None:
    if not can_fetch():
        pytest.skip("no apt-get on this host: it is no Debian, nor of its family")
