"""A client in Python with an environment of its own, which pip makes from a folder of wheels."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from zipfile import ZipFile

import pytest

from lockcheck.backends.base import LockSettings
from lockcheck.backends.program import ClientProgram
from lockcheck.backends.program.environment import bring_environment, environment
from lockcheck.backends.program.lock import ProgramLock
from lockcheck.backends.program.words import command_of, promises_of
from lockcheck.cache import cache_root
from lockcheck.errors import UserError
from tests.backends.claims import NotedClaim
from tests.running import lockcheck

CLIENT = """
import only_here, late

class MyLock:
    def acquire(self, key):
        return only_here.TOKEN

    def release(self, key):
        pass
"""


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip finds `only-here`, in two versions, and nothing else; the cache is empty."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for version in ("1.0", "2.0"):
        about = f"only_here-{version}.dist-info"
        with ZipFile(wheels / f"only_here-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("only_here.py", f"TOKEN = {float(version):.0f}\n")
            wheel.writestr("late.py", "")
            meta = f"Metadata-Version: 2.1\nName: only-here\nVersion: {version}\n"
            wheel.writestr(f"{about}/METADATA", meta)
            tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            wheel.writestr(f"{about}/WHEEL", tags)
            wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mylock.py").write_text(CLIENT)


def lock_with(requirement: str, folder: Path) -> ProgramLock:
    command = command_of("mylock:MyLock", requirements=(requirement,))
    return ProgramLock(
        (),
        LockSettings("c1", 100, Random(1)),
        program=ClientProgram(command=command, folder=str(folder)),
        promises=promises_of(()),
    )


def test_it_is_made_once_and_the_client_imports_from_it(tmp_path: Path) -> None:
    said: list[str] = []
    for version in (1, 2, 1):  # what a client imports does not change what is in the cache
        requirement = f"only-here=={version}.0"
        bring_environment((requirement,), "", said.append)
        lock = lock_with(requirement, tmp_path)
        try:
            assert lock.acquire(NotedClaim()).token == version
        finally:
            lock.close()
    assert sum("with pip, once, into" in line for line in said) == 2
    assert sum(line == "Installing collected packages: only-here" for line in said) == 2


def test_who_changes_it_is_found_out() -> None:
    bring_environment(("only-here",), "", lambda _line: None)
    [module] = environment(("only-here",)).rglob("only_here.py")
    module.write_text("TOKEN = 3\n")
    from lockcheck.cache import _compared

    _compared.cache_clear()  # as in another process
    with pytest.raises(UserError, match=r"only_here\.py was changed"):
        bring_environment(("only-here",), "", lambda _line: None)


@pytest.mark.parametrize(
    ("requirements", "python", "why", "cure"),
    [
        (("no-such-library==1.0",), "", "No matching distribution found", "package index"),
        (("only-here==7.0",), "", "only-here==7.0", "names and versions"),
        (("--index-url=x",), "", "Invalid requirement", "names and versions"),
        (("only-here",), "/no/such/python", "is no program", "name a Python"),
        (("only-here",), "false", "makes no environment: it says nothing", "venv"),
    ],
)
def test_why_it_cannot_be_made(
    requirements: tuple[str, ...], python: str, why: str, cure: str
) -> None:
    with pytest.raises(UserError) as failed:
        bring_environment(requirements, python, lambda _line: None)
    assert why in failed.value.message
    assert cure in failed.value.cure
    environments = cache_root() / "environments"
    assert not environments.exists() or list(environments.iterdir()) == []  # nor half of one


def test_it_is_for_a_client_in_python(tmp_path: Path) -> None:
    wanted = ("--requirements", "only-here")
    for options, why in (
        (("--client", "./mylock.sh"), "--requirements is for a client that is named MODULE:NAME"),
        (("--backend", "redis"), "--requirements is for a client of your own"),
    ):
        said = lockcheck("run", *options, *wanted, "--out", str(tmp_path / "runs"))
        assert said.returncode == 2, said.stderr
        assert why in said.stderr
    assert sys.executable in command_of("mylock:MyLock")
