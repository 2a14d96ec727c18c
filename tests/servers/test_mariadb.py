"""MariaDB: where it is found, and the options that one that was unpacked needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockcheck.servers.base import Here
from lockcheck.servers.mariadb import MARIADB
from tests.compose.hosts import as_fetched


def here(program: str) -> Here:
    return Here("m1", ("m1",), "/data", (program,))


def installed(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LOCKCHECK_MARIADB", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("lockcheck.servers.mariadb.SBIN", tmp_path / "sbin/mariadbd")
    return tmp_path / "cache/lockcheck/debian/mariadb"


def test_found_by_variable_on_path_where_it_is_installed_and_where_it_was_unpacked(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MARIADB.find() is None
    for place in (cache / "usr/sbin", tmp_path / "sbin", tmp_path / "bin"):
        program = installed(place / "mariadbd")
        if place.is_relative_to(cache):
            as_fetched(cache)
        assert MARIADB.find() == (program,)
    named = installed(tmp_path / "mine/mariadbd")
    monkeypatch.setenv("LOCKCHECK_MARIADB", named)
    assert MARIADB.find() == (named,)


def test_one_that_was_unpacked_is_told_where_its_things_are(cache: Path) -> None:
    libraries = cache / "usr/lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    unpacked = here(str(cache / "usr/sbin/mariadbd"))
    assert f"--basedir={cache}/usr" in MARIADB.command(unpacked)
    assert MARIADB.environment(unpacked) == {"LD_LIBRARY_PATH": str(libraries)}


@pytest.mark.parametrize("program", ["mariadbd", "/usr/sbin/mariadbd"])
def test_one_that_is_installed_knows_for_itself(cache: Path, program: str) -> None:
    assert not any(word.startswith("--basedir") for word in MARIADB.command(here(program)))
    assert MARIADB.environment(here(program)) == {}
