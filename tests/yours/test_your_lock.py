"""A lock of the user's own, from `init` to a verdict; and a program that does whatever it wants."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.running import LOCKCHECK, lockcheck, need
from tests.waiting import wait_for

OK, VIOLATION, USAGE, UNKNOWN, CLUSTER = 0, 1, 2, 3, 4
CLIENTS = {"python": "mylock:MyLock", "bash": "./mylock.sh"}
CAREFUL = """
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

refusals = redis.exceptions.LockNotOwnedError


def lock(key, host, port, ttl):
    client = redis.Redis(host, port, socket_timeout=1, retry=Retry(NoBackoff(), 0))
    return client.lock(key, timeout=ttl, blocking=False, thread_local=False)
"""
BLIND = (
    CAREFUL
    + """

class Blind:
    def __init__(self, key, host, port, ttl_ms):
        self.redis, self.key, self.ttl_ms = redis.Redis(host, port), key, ttl_ms

    def acquire(self):
        return bool(self.redis.set(self.key, "me", nx=True, px=self.ttl_ms // 2))

    def release(self):
        self.redis.delete(self.key)
"""
)
# By turns, one attempt in twenty; what lockcheck makes of it is told in the result.
NAUGHTY = (
    CAREFUL
    + """
import os, random, time
import lockcheck_client
from lockcheck_client import say

HOW = ["die", "fork", "hang", "rubbish", "flood", "long", "wrong", "notices", "silent", "errors"]


class Naughty:
    def __init__(self, key, host, port, ttl):
        self.lock = lock(key, host, port, ttl)

    def acquire(self):
        how = random.choice(HOW) if random.random() < 0.05 else ""
        if how:
            getattr(self, how)()
        return self.lock.acquire()

    def release(self):
        return self.lock.release()

    def die(self):
        os._exit(3)

    def fork(self):
        if not os.fork():
            os.setsid()
            time.sleep(3600)
        os._exit(4)

    def hang(self):
        time.sleep(3600)

    def rubbish(self):
        lockcheck_client._out.write(b"\\xff\\x00 INFO: connected\\n{not json\\n[1,2]\\n")

    def flood(self):
        while True:
            lockcheck_client._out.write(b"x" * 6000 + b"\\n")

    def long(self):
        while True:
            lockcheck_client._out.write(b"x" * 65536)

    def wrong(self):
        say({"type": "acquire_ok", "in_reply_to": "seven"})
        say({"type": 3})
        say({"type": "acquire_ok", "in_reply_to": 7, "token": "many", "valid_ms": []})

    def notices(self):
        for number in range(100_000):
            say({"type": "queued", "acquire": number})

    def silent(self):
        os.close(0)
        lockcheck_client._out.close()
        time.sleep(3600)

    def errors(self):
        os.write(2, b"e" * 3_000_000)
"""
)
pytestmark = pytest.mark.cluster


def run(folder: Path, *options: str, seconds: int = 4) -> subprocess.CompletedProcess[str]:
    need("local")
    command = ("run", "--runtime", "local", "--time-limit", f"{seconds}s", *options)
    return lockcheck(*command, cwd=folder)


@pytest.mark.parametrize("language", ["python", pytest.param("bash", marks=pytest.mark.long)])
def test_what_init_writes_keeps_the_contract_and_is_tested(language: str, tmp_path: Path) -> None:
    need("local")
    begun = lockcheck("init", language, cwd=tmp_path)
    assert begun.returncode == OK, begun.stderr
    assert f"lockcheck validate --client {CLIENTS[language]}" in begun.stdout
    assert lockcheck("init", language, cwd=tmp_path).returncode == USAGE  # it is there already
    valid = lockcheck("validate", "--client", CLIENTS[language], cwd=tmp_path)
    assert valid.returncode == OK, valid.stdout + valid.stderr
    assert "It promises: a lease" in valid.stdout
    calm = run(tmp_path, "--client", CLIENTS[language], "--nemesis", "none")
    assert calm.returncode == OK, calm.stdout + calm.stderr
    paused = run(tmp_path, "--client", CLIENTS[language], "--nemesis", "pause", "--json")
    result = json.loads(paused.stdout)
    assert result["verdict"] == "violation", paused.stderr
    accused = {f["blame"] for f in result["findings"] if f["effect"] == "violation"}
    assert accused == {"holder"}


def test_validate_finds_what_is_wrong_with_a_lock(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "locks.py").write_text(BLIND)
    found = lockcheck("validate", "--client", "locks:Blind", cwd=tmp_path)
    assert found.returncode == VIOLATION, found.stderr
    wrong = [line for line in found.stdout.splitlines() if line.startswith("no ")]
    assert any("it is a lease, of 0.5" in line and "the TTL is 1 s" in line for line in wrong)
    assert any("takes away no other client's lock" in line for line in wrong)
    assert "silent-release,blind-release" in found.stdout


def test_a_right_lock_of_others_is_not_accused(tmp_path: Path) -> None:
    (tmp_path / "locks.py").write_text(CAREFUL)
    for nemesis in ("pause", "partition", "kill:client"):
        done = run(tmp_path, "--client", "locks:lock", "--nemesis", nemesis, "--json", seconds=8)
        result = json.loads(done.stdout)
        blamed = {f["blame"] for f in result["findings"] if f["effect"] == "violation"}
        assert blamed <= {"holder"}, (nemesis, result["detail"])
        assert done.returncode in (OK, VIOLATION), (nemesis, result["doubts"])


@pytest.mark.long
def test_a_client_that_renews_its_lease_itself_works_for_longer(tmp_path: Path) -> None:
    need("local")
    (tmp_path / "locks.py").write_text(CAREFUL)
    valid = lockcheck("validate", "--client", "locks:lock", cwd=tmp_path)
    assert "its client may renew it" in valid.stdout
    assert "--promises waits,extends" in valid.stdout
    client = ("--client", "locks:lock", "--nemesis", "none", "--json")
    work = (*client, "--ttl", "500ms", "--think", "650ms")
    outlived = run(tmp_path, *work, seconds=5)
    assert outlived.returncode == VIOLATION, outlived.stderr
    renewed = run(tmp_path, *work, "--promises", "extends", seconds=12)
    assert renewed.returncode == OK, renewed.stdout + renewed.stderr
    history = Path(json.loads(renewed.stdout)["run"]) / "history.jsonl"
    renewals = [line for line in history.read_text().splitlines() if '"f":"renew"' in line]
    assert len(renewals) > 20


KEEPS = (
    CAREFUL
    + """

class Keeps:
    promises = ["stores"]

    def __init__(self, key, host, port, ttl):
        self.lock = lock("lock-" + key, host, port, ttl)
        self.data = redis.Redis(host, port, socket_timeout=1)
        self.acquire, self.release = self.lock.acquire, self.lock.release

    def read(self, key):
        return self.data.get("data-" + key)

    def write(self, key, value):
        self.data.set("data-" + key, value)


class Forgets(Keeps):
    def write(self, key, value):
        if not value.startswith("v7"):
            super().write(key, value)
"""
)


@pytest.mark.parametrize(("kept", "code"), [("Keeps", OK), ("Forgets", VIOLATION)])
def test_a_client_that_keeps_the_data_itself(kept: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "locks.py").write_text(KEEPS)
    client = ("--client", f"locks:{kept}", "--nemesis", "none")
    done = run(tmp_path, *client, "--json", seconds=5)
    assert done.returncode == code, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert {f["code"] for f in result["findings"]} == (
        set() if code == OK else {"not-linearizable"}
    )
    assert [each["model"] for each in result["definitions"]] == ["owner-mutex", "register"]
    guarded = run(tmp_path, *client, "--guard", "cas")
    assert guarded.returncode == USAGE
    assert "keeps the data itself" in guarded.stderr


def test_a_program_that_does_whatever_it_wants_is_outlived_and_told(tmp_path: Path) -> None:
    (tmp_path / "naughty.py").write_text(NAUGHTY)
    options = ("--client", "naughty:Naughty", "--nemesis", "none")
    done = run(tmp_path, *options, "--servers", "redis", seconds=15)
    assert done.returncode in (OK, UNKNOWN), done.stdout + done.stderr
    assert "the program    ended " in done.stdout
    assert "and was begun anew" in done.stdout
    assert "Traceback" not in done.stderr
    assert "this is a bug" not in done.stderr


def test_a_lock_with_a_name_in_the_folders_file(tmp_path: Path) -> None:
    (tmp_path / "locks.py").write_text(CAREFUL)
    table = '[client.mine]\nclient = "locks:lock"\npromises = ["lease"]\nttl = "500ms"\n'
    (tmp_path / "lockcheck.toml").write_text(table)
    done = run(tmp_path, "--backend", "mine", "--nemesis", "none", "--json")
    assert done.returncode == OK, done.stderr
    again = json.loads(done.stdout)["rerun"]
    assert "--backend mine --client locks:lock" in again
    assert "--ttl 500ms" in again
    (tmp_path / "lockcheck.toml").write_text('[client.mine]\nttl = "1s"\n')
    refused = lockcheck("run", "--backend", "mine", cwd=tmp_path)
    assert refused.returncode == USAGE
    assert "[client.mine] names no client" in refused.stderr


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--client", "./nosuch"), USAGE, "cannot be started: No such file"),
        (("--client", "false"), USAGE, "ended at once: it ended with 1"),
        (("--client", "nosuch:Lock"), USAGE, "No module named 'nosuch'"),
        (("--backend", "any-name", "--client", "nosuch:Lock"), USAGE, "No module named 'nosuch'"),
        (("--backend", "nosuch"), USAGE, "unknown backend 'nosuch'"),
        (("--backend", "museum:etcd3-whit"), USAGE, "choose from: etcd3-with"),
        (("--backend", "museum:"), USAGE, "choose from: sherlock-renew, "),
        (("--client", "'"), USAGE, "No closing quotation"),
        (("--client", "cat", "--python", "python3"), USAGE, "is a program"),
        (("--client", "x:y", "--promises", "token,eternal"), USAGE, "unknown promise 'eternal'"),
        (("--client", "x:y", "--servers", "redis*"), USAGE, "cannot be read"),
        (("--client", "x:y", "--servers", "oracle*3"), USAGE, "unknown server 'oracle'"),
        (("--client", "x:y", "--servers", "redis*99"), USAGE, "1 to 9"),
        (("--client", "x:y", "--servers", "pgbouncer"), USAGE, "does not run without postgres"),
        (("--client", "x:y", "--servers", "redis-sentinel"), USAGE, "without redis-replicated"),
    ],
)
def test_what_cannot_be_used_is_named(
    options: tuple[str, ...], code: int, words: str, tmp_path: Path
) -> None:
    (tmp_path / "x.py").write_text("def y(key): ...")
    done = run(tmp_path, *options)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "cure:" in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.long
def test_what_does_not_answer_is_an_error_with_its_cause(tmp_path: Path) -> None:
    """It may be a program that does something else."""
    done = run(tmp_path, "--client", "cat", "--promises", "lease", "--servers", "redis")
    assert done.returncode == CLUSTER
    assert "the client program does not begin" in done.stderr


def test_a_ctrl_c_ends_the_programs_too(tmp_path: Path) -> None:
    need("local")
    started = shutil.copy("/bin/sleep", tmp_path / "sleep-of-this-test")
    begin = f"import subprocess; subprocess.Popen([{str(started)!r}, '600'])"
    (tmp_path / "locks.py").write_text(f"{begin}\n{CAREFUL}")
    command = [*LOCKCHECK, "run", "--runtime", "local", "--client", "locks:lock"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: len(running("sleep-of-this-test")) >= 5, "the programs are there")
        process.terminate()
        assert process.wait(60) == 130
    assert running("sleep-of-this-test") == []


def running(name: str) -> list[str]:
    return [
        path.parent.name
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if name.encode() in _read(path).split(b"\0")[0]
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
