"""A package that cannot be used is a note, and not the end of every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.running import lockcheck, need
from tests.test_plugins import LOCK, install

BROKEN = [
    ("odd = broken.nowhere:BACKEND", "ModuleNotFoundError: No module named 'broken.nowhere'"),
    ("odd = broken parts", "'broken parts' is no MODULE:NAME"),
    ("odd = broken.parts:NOTHING", "AttributeError: module 'broken.parts' has no attribute"),
    ("odd = broken.parts:TEXT", "it is a str, not a Backend"),
    ("odd = broken.parts:MIXED", "it is a int, not a Backend"),
    ("odd = broken.parts:NONE", "it is an empty list"),
    ("odd = broken.parts:RAISES", "ZeroDivisionError: division by zero"),
    ("odd = broken.raising:BACKEND", "RuntimeError: not today"),
    ("odd = broken.leaving:BACKEND", "SystemExit: 7"),
    ("odd = lockcheck.backends.etcd.etcd:BACKEND", "there is a 'etcd' already"),
    ("odd = broken.parts:TWICE", "there is a 'counted' already"),
]
FILES = {
    "__init__": "",
    "lock": LOCK.replace('storage="forgetful",', ""),
    "parts": """
from dataclasses import replace
from broken.lock import BACKEND
TEXT, NONE, MIXED, TWICE = "text", [], [BACKEND, 5], [BACKEND, BACKEND]
RAISES = (1 / 0 for _ in "x")
BOTH = {n: replace(BACKEND, name=n) for n in ("counted", "counted-twice")}
LISTED = [BACKEND]
MADE = (replace(BACKEND, name=n) for n in ("counted", "made"))
""",
    "raising": "raise RuntimeError('not today')",
    "leaving": "raise SystemExit(7)",
}


def broken(folder: Path, *entries: str, group: str = "backends") -> dict[str, str]:
    text = "\n".join((f"[lockcheck.{group}]", *entries, ""))
    return install(folder, text, files=FILES, name="broken")


@pytest.mark.parametrize(("entry", "reason"), BROKEN)
def test_it_is_noted_once_and_the_rest_is_there(tmp_path: Path, entry: str, reason: str) -> None:
    done = lockcheck("list", "backends", variables=broken(tmp_path, entry))
    assert done.returncode == 0
    assert "  redlock " in done.stdout
    assert "counted" not in done.stdout
    [note, cure] = done.stderr.splitlines()
    assert note.startswith(
        "lockcheck: left out: broken adds 'odd' to lockcheck.backends, and that cannot be used: "
    )
    assert reason in note
    assert cure == f"  cure: fix {entry.partition(' = ')[2]}, or uninstall broken"


def test_so_is_a_package_whose_entry_points_cannot_be_read(tmp_path: Path) -> None:
    variables = broken(tmp_path, "no entry at all", group="models")
    done = lockcheck("list", "models", "workloads", variables=variables)
    assert done.returncode == 0
    assert "  owner-mutex " in done.stdout
    [note, cure] = done.stderr.splitlines()
    assert "left out: the entry points of broken cannot be read: " in note
    assert cure == "  cure: uninstall broken, or install it anew"


def test_its_name_is_refused_with_the_reason(tmp_path: Path) -> None:
    variables = broken(tmp_path, "odd = broken.raising:BACKEND")
    done = lockcheck("run", "--backend", "odd", variables=variables)
    assert done.returncode == 2
    assert done.stderr.count("RuntimeError: not today") == 1
    assert "left out" not in done.stderr
    other = lockcheck("run", "--backend", "odder", variables=variables)
    assert other.returncode == 2
    assert "unknown backend 'odder'" in other.stderr
    assert other.stderr.count("left out: broken adds 'odd'") == 1


def test_a_lock_whose_storage_is_missing_is_refused(tmp_path: Path) -> None:
    files = FILES | {"lock": LOCK}
    text = "[lockcheck.backends]\nx = broken.lock:BACKEND\n"
    done = lockcheck(
        "run", "--backend", "counted", variables=install(tmp_path, text, files=files, name="broken")
    )
    assert done.returncode == 2
    assert "unknown storage 'forgetful'" in done.stderr
    assert "cure: choose from: redis, postgres" in done.stderr


@pytest.mark.parametrize(
    ("group", "arguments"),
    [
        ("checks", ("explain", "odd")),
        ("models", ("check", "nowhere.jsonl", "--model", "odd")),
        ("faults", ("run", "--backend", "redis", "--nemesis", "odd")),
        ("workloads", ("run", "--backend", "redis", "--workload", "odd")),
    ],
)
def test_so_is_a_name_of_another_kind(tmp_path: Path, group: str, arguments: list[str]) -> None:
    variables = broken(tmp_path, "odd = broken.raising:IT", group=group)
    done = lockcheck(*arguments, variables=variables)
    assert done.returncode == 2
    assert done.stderr.count("RuntimeError: not today") == 1


def test_one_entry_point_may_name_several(tmp_path: Path) -> None:
    for number, (named, names) in enumerate(
        {"BOTH": ("counted", "counted-twice"), "LISTED": ("counted",), "MADE": ("made",)}.items()
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = lockcheck("list", "backends", variables=broken(folder, f"x = broken.parts:{named}"))
        assert done.stderr == ""
        assert all(f"  {name} " in done.stdout for name in names)


def test_help_loads_no_package(tmp_path: Path) -> None:
    groups = ("backends", "workloads", "faults", "models", "checks", "servers")
    text = "".join(f"[lockcheck.{each}]\nodd = broken.leaving:IT\n" for each in groups)
    variables = install(tmp_path, text, files=FILES, name="broken")
    for arguments in (["--help"], ["run", "--help"], ["check", "--help"]):
        done = lockcheck(*arguments, variables=variables)
        assert (done.returncode, done.stderr) == (0, "")


def test_doctor_names_it_among_what_is_missing(tmp_path: Path) -> None:
    usual = lockcheck("doctor")
    done = lockcheck(
        "doctor", variables=broken(tmp_path, "odd = broken.raising:IT", group="models")
    )
    assert done.returncode == usual.returncode
    assert "packages" in done.stdout
    assert "broken adds 'odd' to lockcheck.models, and that cannot be used" in done.stdout
    assert "cure: fix broken.raising:IT, or uninstall broken" in done.stdout
    assert "left out" not in done.stderr


def test_a_log_is_judged_without_it_and_says_so(tmp_path: Path) -> None:
    variables = broken(tmp_path, "odd = broken.raising:IT", group="checks")
    script = "import lockcheck\nfor _ in range(2): print(lockcheck.Log().judge().verdict)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["unknown", "unknown"]
    assert done.stderr.count("left out: broken adds 'odd' to lockcheck.checks") == 1


@pytest.mark.cluster
def test_a_run_goes_on_and_its_clients_are_silent(tmp_path: Path) -> None:
    """Its lock is one that another package adds: each client looks it up among all."""
    need("local")
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    text = "".join(
        f"[lockcheck.{each}]\nodd = broken.raising:IT\n" for each in ("backends", "checks")
    )
    install(folders[0], text, files=FILES, name="broken")
    there = {"__init__": "", "lock": FILES["lock"]}
    install(folders[1], "[lockcheck.backends]\nx = there.lock:BACKEND\n", files=there, name="there")
    words = [
        "--backend",
        "counted",
        "--nemesis",
        "none",
        "--time-limit",
        "2s",
        "--runtime",
        "local",
    ]
    done = lockcheck(
        *("run", *words, "--json", "--out", str(tmp_path / "results")),
        variables={"PYTHONPATH": os.pathsep.join(map(str, folders))},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout)["verdict"] == "ok"
    for group in ("backends", "checks"):
        assert done.stderr.count(f"left out: broken adds 'odd' to lockcheck.{group}") == 1
    outputs = list(tmp_path.glob("results/2*/nodes/c*/output.log"))
    assert len(outputs) == 5
    assert all("broken" not in path.read_text() for path in outputs)
