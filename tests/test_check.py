"""`lockcheck check` of histories from other tools, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from lockcheck.history.event import UNLIMITED_PERMITS
from lockcheck.nodes.node import children_of
from tests.running import LOCKCHECK, lockcheck
from tests.waiting import wait_for

OK, VIOLATION, USAGE, UNKNOWN = 0, 1, 2, 3


def two_holders(form: str, *clients: str) -> str:
    """Both are granted the lock, and neither releases it before the other has it."""
    steps = [
        ("invoke", clients[0], 1),
        ("ok", clients[0], 2),
        ("invoke", clients[1], 3),
        ("ok", clients[1], 4),
        ("invoke", clients[0], 5),
        ("ok", clients[0], 6),
        ("invoke", clients[1], 7),
        ("ok", clients[1], 8),
    ]
    fs = ["acquire"] * 4 + ["release"] * 4
    rows = zip(steps, fs, strict=True)
    if form == "edn":
        line = "{{:process {1} :type :{0} :f :{3} :value nil :time {2}000000}}"
    elif form == "json":
        line = '{{"process": {1}, "type": "{0}", "f": "{3}", "value": null, "time": {2}000000}}'
    else:
        line = "{1}\t:{0}\t:{3}\tnil"
    return "\n".join(line.format(*step, f) for step, f in rows) + "\n"


HOSTS = """client,key,op,start_ns,end_ns,outcome,node
w1,k,acquire,0,1000000,ok,a
w2,k,acquire,11000000,12000000,ok,b
w1,k,release,20000000,21000000,ok,a
w2,k,release,30000000,31000000,ok,b
"""
ERRORS = [
    ((), UNKNOWN, "clock of b seems to be at least 8.0 ms behind"),
    (("--clock-error", "9ms"), OK, "which --clock-error allows"),
    (("--clock-error", "5ms"), VIOLATION, "would have to be 8.0 ms apart"),
    (("--clock-error", "5ms", "--clock-error", "b=9ms"), OK, "which --clock-error allows"),
    (("--clock-error", "0"), VIOLATION, "whose fault"),
    (("--clock-error", "b=soon"), USAGE, "'soon' is not a duration"),
]


@pytest.mark.parametrize(("options", "code", "text"), ERRORS)
def test_how_far_apart_clocks_may_be(
    tmp_path: Path, options: tuple[str, ...], code: int, text: str
) -> None:
    path = tmp_path / "locks.csv"
    path.write_text(HOSTS)
    done = lockcheck("check", str(path), *options)
    assert done.returncode == code, done.stderr
    assert text in " ".join((done.stdout + done.stderr).split())


CLIENTS = {
    "edn, numbers": ("edn", "0", "1"),
    "edn, names": ("edn", '"c3"', '"c4"'),
    "json, names": ("json", '"c3"', '"c4"'),
    "txt, names": ("txt", "c3", "c4"),
    "txt, names in quotes": ("txt", '"c 3"', '"c 4"'),
    "many digits": ("json", f'"{10**20}"', f'"{10**20 + 1}"'),
    "many digits, as numbers": ("edn", str(10**18), str(10**18 + 1)),
}


@pytest.mark.parametrize(("form", "one", "other"), CLIENTS.values(), ids=CLIENTS)
def test_two_holders_are_found_whatever_their_names(
    tmp_path: Path, form: str, one: str, other: str
) -> None:
    path = tmp_path / f"history.{form}"
    path.write_text(two_holders(form, one, other))
    done = lockcheck("check", str(path), "--model", "mutex", "--json")
    assert done.returncode == VIOLATION, done.stdout + done.stderr
    assert "violation" in json.loads(done.stdout)["verdict"]


def test_processes_that_are_no_clients_are_mentioned(tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    path.write_text(two_holders("edn", "0", ":c4"))
    done = lockcheck("check", str(path))
    assert "4 operations were ignored" in done.stderr
    assert ":c4" in done.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("history.edn", "{:process :nemesis :type :info :f :start :value nil :time 1}"),
        ("history.txt", ":nemesis\t:info\t:start\tnil"),
        ("history.json", '[{"process": "nemesis", "type": "info", "f": "start", "time": 1}]'),
        (
            "history.jsonl",
            '{"time": 0, "process": "run", "type": "info", "f": "terms", "value": {}}',
        ),
        ("history.csv", "client,key,op,start_ns,end_ns,outcome"),
    ],
)
def test_a_history_in_which_no_client_does_anything_is_unknown(
    tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(f"{text}\n")
    done = lockcheck("check", str(path))
    assert done.returncode == UNKNOWN, done.stderr
    assert "The history has no operations of clients" in done.stdout


@pytest.mark.parametrize("client", ["true", "nil", str(1 << 64)])
def test_what_can_be_no_client_is_refused(tmp_path: Path, client: str) -> None:
    path = tmp_path / "history.edn"
    path.write_text(two_holders("edn", "0", client))
    done = lockcheck("check", str(path))
    assert done.returncode == USAGE
    assert "history.edn, line 3, column 1: " in done.stderr


@pytest.mark.parametrize("given", ["/dev/zero", "-"])
def test_zeros_without_end_are_refused_at_once(given: str) -> None:
    with open("/dev/zero", "rb") as zeros:  # noqa: PTH123 - a device
        done = subprocess.run(
            [*LOCKCHECK, "check", given],
            stdin=zeros,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == USAGE, done.stderr
    assert "no format that lockcheck recognizes" in done.stderr


@pytest.mark.parametrize(
    ("closed", "words"), [("<&-", "it is closed"), ("</dev/null", "it is empty")]
)
def test_standard_input_with_nothing_in_it(closed: str, words: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *LOCKCHECK, "check", "-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == USAGE, done.stderr
    assert f"standard input: {words}" in done.stderr


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_reader_that_goes_away_changes_no_exit_code(tmp_path: Path, json: list[str]) -> None:
    path = tmp_path / "h.edn"
    path.write_text(two_holders("edn", "0", "1"))
    for command, code in (
        (["check", str(path), *json], 1),
        (["list"], 0),
        (["export", str(path), "--format", "csv"], 0),
    ):
        read_end, write_end = os.pipe()
        os.close(read_end)
        done = subprocess.run(
            [*LOCKCHECK, *command], check=False, stdout=write_end, stderr=subprocess.PIPE
        )
        os.close(write_end)
        assert (done.returncode, done.stderr) == (code, b""), command


def test_a_search_that_would_take_too_much_memory_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    adds = "".join(f"{client},k,add,10,99,ok,{1 << client},\n" for client in range(20))
    path.write_text(
        f"client,key,op,start_ns,end_ns,outcome,value,result\n{adds}r,k,read,11,50,ok,,-1\n"
    )
    done = lockcheck("check", str(path), "--memory", "500KB")
    assert done.returncode == UNKNOWN
    assert "its memory was used up (--memory)" in done.stdout
    wrong = lockcheck("check", str(path), "--memory", "much")
    assert wrong.returncode == USAGE
    assert "'much' is not an amount of memory: write it like 500MB or 2GB" in " ".join(
        wrong.stderr.split()
    )


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGKILL, -signal.SIGKILL),
    ],
)
def test_what_it_unpacked_is_gone_however_it_is_ended(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """It waits for the rest of what is piped to it, of which it has begun to keep a copy."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [*LOCKCHECK, "check", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as checking:
        assert checking.stdin
        checking.stdin.write(two_holders("json", "0", "1").encode() * 10_000)
        checking.stdin.flush()
        wait_for(lambda: copies_of(checking.pid, tmp_path), "it has begun to unpack")
        checking.send_signal(number)
        assert checking.wait(60) == code
    assert list(tmp_path.iterdir()) == []


def copies_of(pid: int, folder: Path) -> list[Path]:
    """What the command holds open in the folder, with a name or without."""
    found = []
    for child in children_of(pid):
        for handle in Path(f"/proc/{child}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed by now
                found.append(handle.readlink())
    return [path for path in found if path.is_relative_to(folder)]


@pytest.mark.parametrize(
    ("permits", "code"),
    [(0, USAGE), (2, OK), (UNLIMITED_PERMITS - 1, OK), (UNLIMITED_PERMITS, USAGE)],
)
def test_permits_have_bounds(tmp_path: Path, permits: int, code: int) -> None:
    path = tmp_path / "h.edn"
    path.write_text(two_holders("edn", "0", "1"))
    done = lockcheck("check", str(path), "--model", "semaphore", "--permits", str(permits))
    assert done.returncode == code, done.stderr


def test_permits_in_a_file_have_bounds(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    terms = '{"time":0,"process":"run","type":"info","f":"terms","value":{"permits":%d}}\n'
    rest = two_holders("json", "0", "1").replace('"time": ', '"key": "k", "time": ')
    for permits, code in ((2, OK), (UNLIMITED_PERMITS, OK), (UNLIMITED_PERMITS + 1, USAGE)):
        path.write_text(terms % permits + rest)
        done = lockcheck("check", str(path))
        assert done.returncode == code, done.stderr
