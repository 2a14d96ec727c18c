"""A hiccup of the machine itself is neither the lock's fault nor an injected one: `unknown`.

The test plays the machine: it stops a client behind lockcheck's back, in a control run. Nobody but
the client's own ticker can know of it.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.running import need, processes_of, run_under_way
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster


def last_event(history: Path) -> dict[str, object]:
    lines = history.read_bytes().splitlines() if history.exists() else []
    return json.loads(lines[-1]) if lines and lines[-1].endswith(b"}") else {}


def is_holding(history: Path) -> bool:
    event = last_event(history)
    return (event.get("f"), event.get("type")) in {("acquire", "ok"), ("read", "ok")}


def stop_while_it_holds(pid: int, history: Path) -> bool:
    """Whether it is stopped with the lock in its hands; else it runs on."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: "T" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2], "it stops")
    if is_holding(history):
        return True
    os.kill(pid, signal.SIGCONT)
    return False


def process_of(run_id: str, client: str) -> int:
    return next(
        pid
        for pid in processes_of(run_id)
        if Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").endswith(client.encode())
    )


def test_it_is_traced_and_does_not_count_against_the_lock(tmp_path: Path) -> None:
    need("local")
    options = ("--backend", "redis", "--nemesis", "none", "--think", "30ms", "--json")
    with run_under_way(tmp_path / "out", "local", *options) as (process, run_id):
        nodes = tmp_path / "out" / run_id / "nodes"
        history, other = nodes / "c1" / "history.jsonl", nodes / "c2" / "history.jsonl"
        pid = process_of(run_id, "/c1")
        wait_for(lambda: is_holding(history) and stop_while_it_holds(pid, history), "c1 holds")
        size = other.stat().st_size
        wait_for(
            lambda: b'"seq"' in other.read_bytes()[size:],
            "somebody else was let in and wrote",
        )
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: b"stall" in history.read_bytes(), "c1 noticed")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    result = json.loads(output)
    assert result["verdict"] == "unknown"
    assert {finding["blame"] for finding in result["findings"]} == {"machine"}
    assert "overlap" in {finding["code"] for finding in result["findings"]}
    doubts = list(zip(result["doubt_codes"], result["doubts"], strict=True))
    assert any(code == "machine-stalled" and "c1" in text for code, text in doubts), doubts
