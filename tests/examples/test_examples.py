"""Clients of real lock libraries: each is built and tried with the commands of its README."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import lockcheck
from tests.yours.toolchains import ALL, lacking, need, need_servers

FOLDER = Path(lockcheck.__file__).parent.parent / "examples"
TIMEOUT_S = 1800  # crates are fetched and built
JVMS = "it starts many JVMs"
TOOLCHAINS = ("apt-get ", "pip ")


@dataclass(frozen=True)
class Example:
    servers: str
    needs: tuple[str, ...] = ()  # programs, and files
    module: str = ""
    slow: str = ""  # why `make test` does without
    not_kept: tuple[str, ...] = ()  # what `validate` finds in the library


EXAMPLES = {
    "python-redis-py": Example("redis"),
    "python-redis-lock": Example(
        "redis", module="redis_lock", not_kept=("then its holder learns that it lost it",)
    ),
    "python-kazoo": Example(
        "zookeeper",
        module="kazoo",
        slow=JVMS,
        not_kept=("cut off from its servers, it says so",),
    ),
    "go-etcd": Example(
        "etcd", ("go", "/usr/share/gocode/src/go.etcd.io/etcd"), slow="it builds etcd's client"
    ),
    "java-curator": Example(
        "zookeeper", ("javac", "java", "/usr/share/java/curator-recipes.jar"), slow=JVMS
    ),
    "rust-rslock": Example("redis", ("cargo",), slow="it fetches crates"),
    "node-redis": Example("redis", ("node", "/usr/share/nodejs/redis")),
    "bash-etcdctl": Example("etcd", ("etcdctl",)),
}


@dataclass(frozen=True)
class Commands:
    toolchain: str
    builds: list[str]
    validate: str
    run: str

    @classmethod
    def of(cls, name: str) -> Commands:
        lines = (FOLDER / name / "README.md").read_text().splitlines()
        commands = [line.strip() for line in lines if line.startswith("    ")]
        toolchain, *builds, validate, run = commands
        return cls(toolchain, builds, validate, run)


def in_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PATH": path},
        timeout=TIMEOUT_S,
    )


def test_there_are_no_others() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == EXAMPLES.keys()
    overview = (FOLDER / "README.md").read_text()
    assert [name for name in EXAMPLES if f"| [{name}]({name}/README.md) |" not in overview] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_readme_has_the_three_commands(name: str) -> None:
    commands = Commands.of(name)
    assert commands.toolchain.startswith(TOOLCHAINS)
    assert " lockcheck validate --client " in f" {commands.validate}"
    assert " lockcheck run --client " in f" {commands.run}"
    assert commands.run.partition(" --client ")[2] == commands.validate.partition(" --client ")[2]


@pytest.mark.cluster
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_built_validated_and_ok_without_a_fault(name: str, tmp_path: Path) -> None:
    example, commands = EXAMPLES[name], Commands.of(name)
    if example.slow and not os.environ.get(ALL):
        pytest.skip(f"{example.slow}: make test-clients")
    need(example.needs, commands.toolchain)
    if example.module and importlib.util.find_spec(example.module) is None:
        lacking(f"{example.module} is not installed: {commands.toolchain}")
    need_servers(example.servers)
    folder = tmp_path / name
    shutil.copytree(FOLDER / name, folder)
    for command in commands.builds:
        built = in_shell(command, folder)
        assert built.returncode == 0, built.stdout + built.stderr
    validated = in_shell(commands.validate, folder)
    rows = [line[4:62].strip() for line in validated.stdout.splitlines() if line.startswith("no ")]
    assert tuple(rows) == example.not_kept, validated.stdout + validated.stderr
    assert validated.returncode == bool(rows), validated.stderr
    run = in_shell(f"{commands.run} --nemesis none --time-limit 3s --out runs", folder)
    assert run.returncode == 0, run.stdout + run.stderr
    record = json.loads((folder / "runs" / "latest" / "record.json").read_text())
    assert record["verdict"] == "ok", run.stdout
    assert record["counts"]["holders"] > 1, run.stdout
