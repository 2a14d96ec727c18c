"""A run from end to end: what it prints, what it leaves in its folder, and judging that again."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lockcheck import read_record
from lockcheck.history import read_history
from tests.running import RUNTIMES, lockcheck, need, processes_of, run_under_way
from tests.waiting import wait_for

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def violated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was violated."""
    need("local")
    out = tmp_path_factory.mktemp("violated") / "out"
    done = lockcheck(
        *("run", "--backend", "redis", "--nemesis", "pause", "--seed", "7", "--runtime", "local"),
        *("--out", str(out)),
    )
    assert done.returncode == 1, done.stderr
    (out / "stdout.txt").write_text(done.stdout)
    return (out / "latest").resolve()


def test_it_says_what_happened_and_how_to_run_it_again(violated: Path) -> None:
    done = (violated.parent / "stdout.txt").read_text()
    assert "VIOLATION" in done
    assert "report.html" in done
    again = next(line for line in done.splitlines() if "lockcheck run" in line)
    assert shlex.split(again[again.index("lockcheck") :])[:4] == [
        "lockcheck",
        "run",
        "--backend",
        "redis",
    ]
    assert "--seed 7" in again


def test_the_folder_holds_everything(violated: Path) -> None:
    record = read_record(violated)
    assert record.config is not None
    assert record.config.seed == 7
    assert (record.verdict, record.exit_code) == ("violation", 1)
    assert record.took_ms is not None
    assert record.took_ms > 1000
    assert json.loads((violated / "verdict.json").read_text())["verdict"] == "violation"
    assert (violated / "report.html").stat().st_size < 1_000_000
    logs = {path.parent.name for path in violated.glob("nodes/*/output.log")}
    assert logs == {"r1", "s1", "c1", "c2", "c3", "c4", "c5"}
    assert {"lockcheck", "Python", "redis", "redis-py", "kernel"} <= record.versions.keys()


def test_invocations_and_answers_are_in_order(violated: Path) -> None:
    history = read_history(violated / "history.jsonl")
    assert history.terms.backend == "redis"
    assert all(o.end_ns is None or o.start_ns <= o.end_ns for o in history.operations)
    assert [t.seq for t in history.ledger] == list(range(1, len(history.ledger) + 1))
    [*faults] = history.faults
    assert faults
    assert all(fault.proven_ns and fault.healed_ns and fault.proof for fault in faults)


def test_check_comes_to_the_same_verdict(violated: Path) -> None:
    before = json.loads((violated / "verdict.json").read_text())
    record = read_record(violated)
    (violated / "report.html").unlink()
    done = lockcheck("check", str(violated), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"] == before["findings"]
    assert (violated / "report.html").exists()
    assert read_record(violated) == record


def test_check_judges_a_bare_history_and_writes_a_report_where_told(
    violated: Path, tmp_path: Path
) -> None:
    bare, report = tmp_path / "bare.jsonl", tmp_path / "report.html"
    bare.write_bytes((violated / "history.jsonl").read_bytes())
    done = lockcheck("check", str(bare), "--report", str(report))
    assert done.returncode == 1
    assert "<html" in report.read_text()


def test_check_needs_no_libraries_of_servers_or_docker(violated: Path) -> None:
    script = (
        "import sys\nfrom lockcheck.cli.commands import main\n"
        f"main(['check', {str(violated)!r}, '--json'], standalone_mode=False)\n"
        "assert not {'redis', 'docker', 'pyroute2'} & set(sys.modules), 'loaded'"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_kept_cluster_can_be_entered(runtime: str, tmp_path: Path) -> None:
    need(runtime)
    errors = tmp_path / "out.stderr"
    options = ("--backend", "redis", "--nemesis", "none", "--keep", "--time-limit", "2s")
    with run_under_way(tmp_path / "out", runtime, *options) as (process, run_id):
        wait_for(lambda: "cluster is kept" in errors.read_text(), "the cluster is kept")
        line = wait_for(
            lambda: [x.split() for x in errors.read_text().splitlines() if x.split()[:1] == ["r1"]],
            "it says how to enter r1",
        )[0]
        command = [word for word in line[1:] if word != "-it"]
        if command[0] == "docker":
            command.insert(2, "-i")
        inside = subprocess.run(
            command, input="cat /proc/net/route; exit", capture_output=True, text=True, check=False
        )
        assert "eth0" in inside.stdout, inside.stderr
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, errors.read_text()
    assert "OK" in output
    assert processes_of(run_id) == []
