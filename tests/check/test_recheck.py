"""Another tool's history from a file to its verdict: healthy locks, and what must be found."""

from __future__ import annotations

import gzip
import io
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from lockcheck.check.recheck import Checked, recheck
from lockcheck.checker import Verdict
from lockcheck.checker.linearizability import endless
from lockcheck.cli.history_commands import check_command
from lockcheck.errors import UserError
from lockcheck.formats import ReadOptions
from lockcheck.formats.exports.export import write as exported
from tests.checker.dsl import operations
from tests.long_histories import lock, write

HEADER = "client,key,op,start_ns,end_ns,outcome,token\n"


def csv(lines: str) -> str:
    """The log of a service, in which a client has one name for all its operations."""
    rows = []
    for invoke, answer in ((each.invoke, each.answer) for each in operations(lines)):
        end = f"{answer.time},{answer.type},{answer.token or ''}" if answer else ",info,"
        rows.append(f"c{invoke.process},k,{invoke.f},{invoke.time},{end}\n")
    return HEADER + "".join(rows)


def checked(path: Path, text: str, **asked: Any) -> Checked:
    path.write_text(text)
    return check(str(path), **asked)


def check(given: str, **asked: Any) -> Checked:
    return recheck(
        given,
        None,
        asked=ReadOptions(**asked),
        patience=endless,
        out=Path("results"),
    )


def found(verdict: Checked) -> set[str]:
    return {finding.code for finding in verdict.judgement.findings}


HEALTHY: dict[str, tuple[str, dict[str, Any]]] = {
    "a refused renewal ends the hold": ("""
        1 acquire 0-2
        1 renew 500-501
        1 renew 1600-1601!
        2 acquire 1602-1650
        1 release 1700-1701!
        2 release 1810-1811""", {"ttl_ms": 1000}),
    "a client that crashed and comes back under its name": ("""
        1 acquire 0-2
        2 acquire 1200-1210
        1 acquire 1300-1301!
        2 release 1400-1401
        1 acquire 1500-1501
        1 release 1502-1503""", {"ttl_ms": 1000}),
    "a lock that can be entered again, seen from its operations": ("""
        1 acquire 0-1 token=5
        1 acquire 2-3 token=5
        1 release 4-5
        1 acquire 6-7 token=5
        1 release 8-9
        1 release 10-11
        2 acquire 12-13 token=6
        2 release 16-17""", {}),
    "a mutex that any client releases": ("""
        1 acquire 0-1
        4 release 4-5
        3 acquire 6-7
        1 release 8-9!
        3 release 10-11""", {"model": "mutex"}),
    "an answer that never came": ("""
        1 acquire 0-1
        1 release 4-
        1 acquire 6-7!
        2 acquire 8-9""", {}),
    "the log begins with a release": ("""
        1 release 0-2
        2 acquire 5-6
        2 release 8-9
        1 acquire 10-11
        1 release 12-13""", {}),
    "milliseconds are coarse": ("""
        1 acquire 0-1
        1 release 1-1
        2 acquire 1-2
        2 release 2-2
        1 acquire 2-2
        1 release 3-3""", {}),
}  # fmt: skip

UNCERTAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "a holder is not heard of again, and nothing tells of a lease": ("""
        1 acquire 0-2
        2 acquire 1011-1013
        2 release 1020-1021""", {}),
    "a release was refused, and nothing tells of a lease": ("""
        1 acquire 0-2
        1 release 1000-1001!
        2 acquire 1011-1013
        2 release 1020-1021""", {}),
    "never shared": ("1 acquire 0-1\n 1 release 2-3\n 1 acquire 4-5", {}),
    "unknown operations": ("1 append 0-1\n 2 txn 2-3\n 1 append 4-5", {}),
}  # fmt: skip

WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "two at once": ("""
        1 acquire 0-1
        2 acquire 2-3
        1 release 5-6
        2 release 7-8""", {}, "overlap"),
    "a token that goes back behind one that was concurrent": ("""
        1 acquire 1-10 token=5
        1 release 11-12
        2 acquire 2-13 token=3
        2 release 14-15
        3 acquire 16-17 token=4
        3 release 18-19""", {}, "token-regression"),
    "let in before the lease was over": ("""
        1 acquire 0-2
        2 acquire 500-501
        1 release 600-601
        2 release 700-701""", {"ttl_ms": 1000}, "overlap"),
    "three of two": ("""
        1 acquire 0-1
        2 acquire 2-3
        3 acquire 4-5
        1 release 6-7
        2 release 8-9
        3 release 10-11""", {"model": "semaphore", "permits": 2}, "overlap"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "asked"), HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_lock_is_not_accused(tmp_path: Path, lines: str, asked: dict[str, Any]) -> None:
    verdict = checked(tmp_path / "h.csv", csv(lines), **asked)
    assert verdict.judgement.verdict is Verdict.OK, verdict.judgement


@pytest.mark.parametrize(("lines", "asked"), UNCERTAIN.values(), ids=UNCERTAIN)
def test_what_may_be_healthy_is_unknown(tmp_path: Path, lines: str, asked: dict[str, Any]) -> None:
    verdict = checked(tmp_path / "h.csv", csv(lines), **asked)
    assert verdict.judgement.verdict is Verdict.UNKNOWN, verdict.judgement
    assert verdict.exit_code == 3


@pytest.mark.parametrize(("lines", "asked", "code"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_found(
    tmp_path: Path, lines: str, asked: dict[str, Any], code: str
) -> None:
    verdict = checked(tmp_path / "h.csv", csv(lines), **asked)
    assert code in found(verdict)
    assert verdict.exit_code == 1


REGISTER = "0 :invoke :write 1\n0 :ok :write 1\n1 :invoke :read nil\n1 :ok :read 2\n"


@pytest.mark.parametrize("model", ["mutex", "fenced", "set", "counter"])
def test_a_model_that_does_not_know_the_operations_is_refused(tmp_path: Path, model: str) -> None:
    """It would find nothing, or blame a client for what it ignored."""
    with pytest.raises(UserError, match="does not know"):
        checked(tmp_path / "h.txt", REGISTER, model=model)
    assert checked(tmp_path / "h.txt", REGISTER).exit_code == 1


@pytest.mark.parametrize("model", ["register", "cas-register", "set", "counter"])
def test_so_is_one_for_a_lock(tmp_path: Path, model: str) -> None:
    with pytest.raises(UserError, match="does not know acquire, release"):
        checked(tmp_path / "h.csv", csv(WRONG["two at once"][0]), model=model)


@pytest.mark.parametrize(
    "asked", [{"model": "semaphore"}, {"model": "mutex", "permits": 2}], ids=str
)
def test_permits_are_a_semaphores(tmp_path: Path, asked: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="permits"):
        checked(tmp_path / "h.csv", csv(WRONG["two at once"][0]), **asked)


def test_what_no_judge_knows_is_said(tmp_path: Path) -> None:
    verdict = checked(tmp_path / "h.csv", csv(UNCERTAIN["unknown operations"][0]))
    assert "3 operations are unknown to every check: append, txn" in verdict.notes


def test_a_report_does_not_replace_its_history(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text(csv(WRONG["two at once"][0]))
    with pytest.raises(UserError, match="names the history file itself"):
        recheck(str(path), path, asked=ReadOptions(), patience=endless, out=Path("results"))


def test_a_long_history_from_a_file_packed_and_from_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.jsonl"
    write(path, lock(40_000))
    plain = check(str(path))
    assert plain.judgement.verdict is Verdict.OK
    assert plain.judgement.counts.operations == 40_020
    packed = tmp_path / "long.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes(), 1))
    assert check(str(packed)).judgement == plain.judgement
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert check("-").judgement == plain.judgement
    monkeypatch.setenv("LOCKCHECK_PURE", "1")
    assert check(str(path)).judgement == plain.judgement


STALE = """\
client,key,op,start_ns,end_ns,outcome,token,value,seq,base
a,k,acquire,0,2000000,ok,1,,,
b,k,acquire,1500000000,1501000000,ok,2,,,
b,k,write,1513000000,1514000000,ok,,x,1,
a,k,write,1515000000,1516000000,ok,,y,2,
b,k,release,1520000000,1521000000,ok,,,,
"""
TOLD_IN_TIME = STALE.replace("b,k,acquire", "a,k,lost,1400000000,,,,,,\nb,k,acquire")
IN_ORDER = STALE.replace(",y,2,", ",y,1,").replace(",x,1,", ",x,2,")
LOST_UPDATE = """\
client,key,op,start_ns,end_ns,outcome,token,value,seq,base
a,k,acquire,0,2000000,ok,1,,,
b,k,acquire,1500000000,1501000000,ok,2,,,
b,k,write,1513000000,1514000000,ok,,x,1,old
a,k,write,1515000000,1516000000,ok,,y,2,old
b,k,release,1520000000,1521000000,ok,,,,
"""


def test_a_stale_write_is_found_by_the_storages_numbers(tmp_path: Path) -> None:
    verdict = checked(tmp_path / "h.csv", STALE, ttl_ms=1000)
    assert {"overlap", "stale-write"} <= found(verdict)
    assert verdict.exit_code == 1
    without = "".join(f"{line.rsplit(',', 2)[0]}\n" for line in STALE.splitlines())
    assert "stale-write" not in found(checked(tmp_path / "h.csv", without, ttl_ms=1000))
    assert "stale-write" not in found(checked(tmp_path / "h.csv", IN_ORDER, ttl_ms=1000))


def test_who_was_told_in_time_that_it_lost_the_lock_does_not_overlap(tmp_path: Path) -> None:
    verdict = checked(tmp_path / "h.csv", TOLD_IN_TIME, ttl_ms=1000)
    assert "overlap" not in found(verdict)
    assert "stale-write" in found(verdict)  # it wrote all the same
    quiet = "".join(line for line in TOLD_IN_TIME.splitlines(True) if ",y," not in line)
    verdict = checked(tmp_path / "h.csv", quiet, ttl_ms=1000)
    assert verdict.judgement.verdict is Verdict.OK, verdict.judgement


def test_a_lost_update_is_found_by_the_bases(tmp_path: Path) -> None:
    verdict = checked(tmp_path / "h.csv", LOST_UPDATE, ttl_ms=1000)
    assert "lost-update" in found(verdict)
    assert verdict.exit_code == 1
    chained = LOST_UPDATE.replace(",y,2,old", ",y,2,x")
    assert "lost-update" not in found(checked(tmp_path / "h.csv", chained, ttl_ms=1000))


def test_an_update_that_nobody_answered_is_no_lost_one(tmp_path: Path) -> None:
    """It was stored, and the next holder built on it; so nothing was overwritten."""
    text = """\
client,key,op,start_ns,end_ns,outcome,token,value,seq,base
a,k,acquire,0,2,ok,1,,,
a,k,write,3,4,ok,,x,1,old
a,k,write,5,,,,y,,x
a,k,release,7,8,ok,,,,
b,k,acquire,9,10,ok,2,,,
b,k,write,11,12,ok,,z,3,y
b,k,release,13,14,ok,,,,
"""
    verdict = checked(tmp_path / "h.csv", text)
    assert verdict.judgement.verdict is Verdict.OK, verdict.judgement


@pytest.mark.parametrize(
    ("text", "code"), [(STALE, "stale-write"), (LOST_UPDATE, "lost-update")], ids=["stale", "lost"]
)
def test_what_is_found_is_found_in_an_export(tmp_path: Path, text: str, code: str) -> None:
    first = checked(
        tmp_path / "h.csv", text.replace("b,k,rel", "b,k,lost,1517000000,,,,,,\nb,k,rel")
    )
    out = io.BytesIO()
    exported(first.narrative.history, "csv", out)
    again = checked(tmp_path / "again.csv", out.getvalue().decode())
    assert code in found(again)
    assert again.judgement.findings == first.judgement.findings


def test_the_command_that_judges_it_again_has_all_options(tmp_path: Path) -> None:
    """Without its lease, say, another one would be blamed."""
    log = tmp_path / "log.csv"
    judged = checked(
        log,
        csv("1 acquire 0-1"),
        format="csv",
        ttl_ms=1500,
        tells_release=False,
        clock_error_ms=3.5,
        clock_errors_ms={"h1": 20.0},
    )
    assert judged.facts.check_command == (
        f"lockcheck check {log} --format csv --ttl 1.5s --unsaid-releases "
        "--clock-error 3.5ms --clock-error h1=20ms"
    )
    arguments = shlex.split(judged.facts.check_command)[2:]
    with check_command.make_context("check", arguments) as context:
        assert context.params["ttl"] == 1500


def test_without_options_it_is_the_file_alone(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    assert checked(log, csv("1 acquire 0-1")).facts.check_command == f"lockcheck check {log}"
