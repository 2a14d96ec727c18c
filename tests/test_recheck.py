"""Somebody else's history from a file to its verdict: healthy locks, and what must be found."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from lockcheck.checker import Verdict
from lockcheck.errors import UserError
from lockcheck.formats import Asked
from lockcheck.recheck import Checked, recheck
from tests.long_histories import lock, write

HEADER = "client,key,op,start_ns,end_ns,outcome,token\n"


def csv(lines: str) -> str:
    """`a acquire 0 2 ok 5`: client, operation, from and to in ms (`-`: never), outcome, token."""
    rows = []
    for line in lines.strip().splitlines():
        client, op, start, end, outcome, *token = line.split()
        end_ns = "" if end == "-" else f"{end}000000"
        rows.append(f"{client},k,{op},{start}000000,{end_ns},{outcome},{''.join(token)}")
    return HEADER + "\n".join(rows) + "\n"


def checked(path: Path, text: str, **asked: object) -> Checked:
    path.write_text(text)
    return check(str(path), **asked)


def check(given: str, **asked: object) -> Checked:
    return recheck(
        given,
        None,
        asked=Asked(**asked),
        patience=lambda: True,
        out=Path("results"),  # type: ignore[arg-type]
    )


def found(verdict: Checked) -> set[str]:
    return {finding.code.value for finding in verdict.judgement.findings}


HEALTHY = {
    "a refused renewal ends the hold": ("""
        a acquire 0 2 ok
        a renew 500 501 ok
        a renew 1600 1601 fail
        b acquire 1602 1650 ok
        a release 1700 1701 fail
        b release 1810 1811 ok""", {"ttl_ms": 1000}),
    "a client that crashed and comes back under its name": ("""
        a acquire 0 2 ok
        b acquire 1200 1210 ok
        a acquire 1300 1301 fail
        b release 1400 1401 ok
        a acquire 1500 1501 ok
        a release 1502 1503 ok""", {"ttl_ms": 1000}),
    "a lock that can be entered again, seen from its operations": ("""
        a acquire 0 1 ok 5
        a acquire 2 3 ok 5
        a release 4 5 ok
        a acquire 6 7 ok 5
        a release 8 9 ok
        a release 10 11 ok
        b acquire 12 13 ok 6
        b release 16 17 ok""", {}),
    "a mutex that anybody releases": ("""
        a acquire 0 1 ok
        x release 4 5 ok
        c acquire 6 7 ok
        a release 8 9 fail
        c release 10 11 ok""", {"model": "mutex"}),
    "an answer that never came": ("""
        a acquire 0 1 ok
        a release 4 - info
        a acquire 6 7 fail
        b acquire 8 9 ok""", {}),
    "milliseconds are coarse": ("""
        a acquire 0 1 ok
        a release 1 1 ok
        b acquire 1 2 ok
        b release 2 2 ok
        a acquire 2 2 ok
        a release 3 3 ok""", {}),
}  # fmt: skip

UNCERTAIN = {
    "the log begins with a release": ("""
        a release 0 2 ok
        b acquire 5 6 ok
        b release 8 9 ok
        a acquire 10 11 ok
        a release 12 13 ok""", {}),
    "a holder is not heard of again, and nothing tells of a lease": ("""
        a acquire 0 2 ok
        b acquire 1011 1013 ok
        b release 1020 1021 ok""", {}),
    "a release was refused, and nothing tells of a lease": ("""
        a acquire 0 2 ok
        a release 1000 1001 fail
        b acquire 1011 1013 ok
        b release 1020 1021 ok""", {}),
    "nobody shared it": ("a acquire 0 1 ok\n a release 2 3 ok\n a acquire 4 5 ok", {}),
    "nobody knows what these do": ("a append 0 1 ok\n b txn 2 3 ok\n a append 4 5 ok", {}),
}  # fmt: skip

WRONG = {
    "two at once": ("""
        a acquire 0 1 ok
        b acquire 2 3 ok
        a release 5 6 ok
        b release 7 8 ok""", {}, "overlap"),
    "a token that goes back behind one that was concurrent": ("""
        a acquire 1 10 ok 5
        a release 11 12 ok
        b acquire 2 13 ok 3
        b release 14 15 ok
        c acquire 16 17 ok 4
        c release 18 19 ok""", {}, "token-regression"),
    "let in before the lease was over": ("""
        a acquire 0 2 ok
        b acquire 500 501 ok
        a release 600 601 ok
        b release 700 701 ok""", {"ttl_ms": 1000}, "overlap"),
    "three of two": ("""
        a acquire 0 1 ok
        b acquire 2 3 ok
        c acquire 4 5 ok
        a release 6 7 ok
        b release 8 9 ok
        c release 10 11 ok""", {"model": "semaphore", "permits": 2}, "overlap"),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "asked"), HEALTHY.values(), ids=HEALTHY)
def test_a_healthy_lock_is_not_accused(
    tmp_path: Path, lines: str, asked: dict[str, object]
) -> None:
    verdict = checked(tmp_path / "h.csv", csv(lines), **asked)
    assert verdict.judgement.verdict is Verdict.OK, verdict.judgement


@pytest.mark.parametrize(("lines", "asked"), UNCERTAIN.values(), ids=UNCERTAIN)
def test_what_may_be_healthy_is_unknown(
    tmp_path: Path, lines: str, asked: dict[str, object]
) -> None:
    verdict = checked(tmp_path / "h.csv", csv(lines), **asked)
    assert verdict.judgement.verdict is Verdict.UNKNOWN, verdict.judgement
    assert verdict.exit_code == 3


@pytest.mark.parametrize(("lines", "asked", "code"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_found(
    tmp_path: Path, lines: str, asked: dict[str, object], code: str
) -> None:
    verdict = checked(tmp_path / "h.csv", csv(lines), **asked)
    assert code in found(verdict)
    assert verdict.exit_code == 1


REGISTER = "0 :invoke :write 1\n0 :ok :write 1\n1 :invoke :read nil\n1 :ok :read 2\n"


@pytest.mark.parametrize("model", ["mutex", "fenced", "set", "counter"])
def test_a_model_that_does_not_know_the_operations_is_refused(tmp_path: Path, model: str) -> None:
    """It would find nothing, or accuse somebody of what it left out."""
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
def test_permits_are_a_semaphores(tmp_path: Path, asked: dict[str, object]) -> None:
    with pytest.raises(UserError, match="permits"):
        checked(tmp_path / "h.csv", csv(WRONG["two at once"][0]), **asked)


def test_what_no_judge_knows_is_said(tmp_path: Path) -> None:
    verdict = checked(tmp_path / "h.csv", csv(UNCERTAIN["nobody knows what these do"][0]))
    assert "3 operations are of a kind that no judge knows: append, txn" in verdict.notes


def test_a_report_does_not_replace_its_history(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text(csv(WRONG["two at once"][0]))
    with pytest.raises(UserError, match="would replace the history"):
        recheck(str(path), path, asked=Asked(), patience=lambda: True, out=Path("results"))


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
