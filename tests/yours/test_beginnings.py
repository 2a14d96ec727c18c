"""What `lockcheck init` writes: in each language it is built, keeps the protocol, and passes."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lockcheck.backends.program.life import Program
from lockcheck.backends.program.messages import (
    NOT_SUPPORTED,
    UNAVAILABLE,
    AcquireOk,
    Answer,
    Failed,
    InitOk,
    ReleaseOk,
)
from lockcheck.backends.program.words import command_of
from lockcheck.servers.redis import RedisNode
from lockcheck.servers.wire import Address, WireFailure
from lockcheck.yours.beginnings import LANGUAGES
from tests.running import lockcheck
from tests.yours.toolchains import need, need_servers

UNKNOWN, NOT_OWNER, HELD = 13, 20, 22
PATIENCE_S = 60.0  # a JVM on a busy machine
NEEDS = {
    "python": (),
    "bash": ("bash", "timeout"),
    "go": ("go",),
    "java": ("javac", "java"),
    "rust": ("rustc",),
    "node": ("node",),
}
CURES = {
    "go": "apt-get install golang-go",
    "java": "apt-get install default-jdk-headless",
    "rust": "apt-get install rustc, or rustup",
    "node": "apt-get install nodejs",
}
EACH = pytest.mark.parametrize("language", LANGUAGES)
Build = Callable[[str], tuple[Path, str]]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Its folder, and --client; each is built once."""
    built: dict[str, tuple[Path, str]] = {}

    def of(language: str) -> tuple[Path, str]:
        if language not in built:
            need(NEEDS[language], CURES.get(language, ""))
            folder, beginning = tmp_path_factory.mktemp(language), LANGUAGES[language]
            begun = lockcheck("init", language, cwd=folder)
            assert begun.returncode == 0, begun.stderr
            path = folder / beginning.file
            if command := beginning.build_of(path):
                assert f"    {command}\n" in begun.stdout
                subprocess.run(shlex.split(command), cwd=folder, check=True, timeout=240)
            assert f"--client {shlex.quote(beginning.client_of(path))}\n" in begun.stdout
            built[language] = folder, beginning.client_of(path)
        return built[language]

    return of


@pytest.fixture
def asked(build: Build, language: str) -> Iterator[Program]:
    """The program, on this host; at the end of its input it has to end by itself."""
    folder, client = build(language)
    unasked: list[object] = []
    program = Program(
        command_of(client),
        str(folder),
        node="c1",
        hear=unasked.append,
        ended=lambda why, _lived_ns: unasked.append(why),
    )
    try:
        yield program
    finally:
        program.close()
    assert (unasked, program.why_ended) == ([], "it ended with 0")


def begin(program: Program, server: Address) -> None:
    servers = [f"{server[0]}:{server[1]}", "192.0.2.1:1"]
    options = {"type": "leave", "msg_id": 99, "key": "another", "servers": ["nowhere:1"]}
    content = {"node_id": "c1", "node_ids": ["c1"], "servers": servers, "ttl_ms": 60_000}
    answer = program.ask("init", PATIENCE_S, **content, options=options)
    assert isinstance(answer, InitOk)


def acquire(program: Program) -> Answer:
    content = {"key": "k1", "ttl_ms": 60_000, "wait_ms": 0, "mode": "exclusive"}
    return program.ask("acquire", PATIENCE_S, **content)


def release(program: Program, number: int) -> Answer:
    return program.ask("release", PATIENCE_S, key="k1", acquire=number)


def code_of(answer: Answer) -> int:
    assert isinstance(answer, Failed), answer
    assert answer.text
    return answer.code


@EACH
def test_it_keeps_the_protocol(asked: Program, redis_address: Address) -> None:
    begin(asked, redis_address)
    assert isinstance(acquire(asked), AcquireOk)
    first = asked.asked
    assert code_of(acquire(asked)) == HELD
    assert isinstance(release(asked, first), ReleaseOk)
    assert isinstance(acquire(asked), AcquireOk)
    number = asked.asked
    redis = RedisNode(redis_address, timeout_ms=1000)
    assert redis.call("SET", "lock:k1", "another client's") == "OK"
    assert code_of(release(asked, number)) == NOT_OWNER
    assert redis.call("GET", "lock:k1") == "another client's"
    redis.close()
    asked.tell("leave", key="k1", acquire=number)
    asked.tell("some news")  # without a number it needs no answer
    assert code_of(asked.ask("describe-me", PATIENCE_S)) == NOT_SUPPORTED


@EACH
def test_what_is_no_answer_of_the_lock_may_have_happened(
    asked: Program, redis_address: Address
) -> None:
    begin(asked, redis_address)
    redis = RedisNode(redis_address, timeout_ms=1000)
    redis.call("CONFIG", "SET", "min-replicas-to-write", 1)  # then it writes nothing
    assert code_of(acquire(asked)) == UNKNOWN
    redis.call("CONFIG", "SET", "min-replicas-to-write", 0)
    assert isinstance(acquire(asked), AcquireOk)
    number = asked.asked
    with pytest.raises(WireFailure):
        redis.call("SHUTDOWN", "NOSAVE")
    assert code_of(release(asked, number)) in {UNAVAILABLE, UNKNOWN}
    assert code_of(acquire(asked)) in {UNAVAILABLE, UNKNOWN}


@pytest.mark.cluster
@pytest.mark.long
@EACH
def test_it_passes_and_a_quiet_run_is_ok(build: Build, language: str, tmp_path: Path) -> None:
    need_servers("redis")
    folder, client = build(language)
    validated = lockcheck("validate", "--client", client, cwd=folder)
    assert (validated.returncode, validated.stderr) == (0, ""), validated.stdout
    assert "It promises: a lease." in validated.stdout
    options = ("--nemesis", "none", "--time-limit", "3s", "--out", str(tmp_path))
    run = lockcheck("run", "--client", client, *options, cwd=folder)
    assert run.returncode == 0, run.stdout + run.stderr
    record = json.loads((tmp_path / "latest" / "record.json").read_text())
    assert record["verdict"] == "ok", run.stdout


def test_it_says_how_to_go_on_from_where_one_is(tmp_path: Path) -> None:
    """A path with folders is no name of a program, or of a module, as it stands."""
    (tmp_path / "sub folder").mkdir()
    begun = lockcheck("init", "python", "--out", "sub folder/theirs.py", cwd=tmp_path)
    lines = [line.strip() for line in begun.stdout.splitlines()]
    assert lines[1:] == [
        "cd 'sub folder'",
        "lockcheck validate --client theirs:MyLock",
        "lockcheck run --client theirs:MyLock",
    ]
    whole = tmp_path / "theirs.sh"
    begun = lockcheck("init", "bash", "--out", str(whole), cwd=tmp_path)
    assert f"    cd {shlex.quote(str(tmp_path))}\n" in begun.stdout
    assert "--client ./theirs.sh\n" in begun.stdout
    assert whole.stat().st_mode & 0o111
    assert shutil.which(whole)


@pytest.mark.parametrize(
    ("language", "out", "why"),
    [
        ("rust", "mylock", "a name that ends with .rs"),  # the build would write over it
        ("go", "mylock.rs", "a name that ends with .go"),
        ("python", "my-lock.py", "a name that Python can import"),
    ],
)
def test_a_name_by_which_it_could_not_be_built_is_refused(
    language: str, out: str, why: str, tmp_path: Path
) -> None:
    begun = lockcheck("init", language, "--out", out, cwd=tmp_path)
    assert (begun.returncode, why in begun.stderr) == (2, True), begun.stderr
    assert [*tmp_path.iterdir()] == []


def test_the_help_names_them_all() -> None:
    text = " ".join(lockcheck("init", "--help").stdout.split())
    assert "python, bash, go, java, rust or node" in text
    assert set(LANGUAGES) == set(NEEDS) == {"python", "bash", "go", "java", "rust", "node"}
