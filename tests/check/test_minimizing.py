"""The smallest part of a history that is the same violation: judged the same, and no smaller."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lockcheck.check.minimizing import Minimize, is_same, minimized, save
from lockcheck.check.pieces import Piece, name_of, pieces_of
from lockcheck.check.recheck import Checked, recheck
from lockcheck.checker import Verdict, judge
from lockcheck.checker.finding import Finding, Judgement
from lockcheck.checker.linearizability import endless
from lockcheck.errors import UserError
from lockcheck.formats import ReadOptions
from lockcheck.formats.read_options import opening_terms
from lockcheck.history import History
from lockcheck.results.story.grouping import incidents, worst_first
from lockcheck.results.story.smallest import NOT_ALL, Smallest
from tests import long_histories
from tests.checker.dsl import history as told
from tests.checker.test_known_histories import HISTORIES, KNOWN
from tests.running import lockcheck
from tests.simulation import simulate
from tests.simulation.mutations.tape import LOCKS, Mutation, good_history
from tests.simulation.mutations.test_mutations import MUTATIONS
from tests.simulation.test_wrong_locks import WRONG, plan_for

FEW = 9  # most are of six operations or fewer; some are of a lock that was refused many times
VIOLATIONS = [name for name, known in KNOWN.items() if known.verdict is Verdict.VIOLATION]
TWO_HOLDERS = """
    1 acquire 0-1
    2 acquire 2-3
    3 acquire 4-5!
    1 release 10-11
    2 release 12-13
    3 acquire 14-15
    3 release 16-17
"""


def check(given: Path, **asked: Any) -> Checked:
    options = {name: value for name, value in asked.items() if name not in ("minimize", "report")}
    return recheck(
        str(given),
        asked.get("report"),
        asked=ReadOptions(**options),
        patience=endless,
        out=given.parent,
        minimize=asked.get("minimize"),
    )


def main(judgement: Judgement) -> Finding:
    return worst_first(incidents(judgement.findings))[0].main


def kind(judgement: Judgement) -> tuple[object, ...]:
    """What has to be the same."""
    finding = main(judgement)
    fault = finding.blame.fault.name if finding.blame.fault else ""
    holds = {name_of(hold.acquire) for hold in finding.holds}
    same = () if finding.proof else (frozenset(holds), finding.blame.promised_until_ns)
    return (judgement.verdict, finding.code, finding.key, finding.blame.who, fault, *same)


def smallest(history: History) -> Smallest:
    found = minimized(judge(history))
    assert found is not None
    assert not found.cut_short
    return found


def without(history: History, piece: Piece) -> History:
    left = [event for at, event in enumerate(history.events) if at not in set(piece.places)]
    return History.of(left, terms=history.terms)


def assert_minimal(found: Smallest, whole: Judgement) -> None:
    """It is the same violation, and is none without any hold, other operation or fault."""
    assert kind(judge(found.history)) == kind(whole)
    strict = main(whole).proof is not None
    pieces = pieces_of(found.history, strict=strict)
    for piece in pieces:
        if not any(piece in other.needs for other in pieces):
            shorter = judge(without(found.history, piece))
            violated = shorter.verdict is Verdict.VIOLATION
            assert not violated or not is_same(main(shorter), main(whole)), piece.operations


# --- each violation that is known ----------------------------------------------------------------


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_known_violation_is_small_and_judged_the_same(name: str, tmp_path: Path) -> None:
    to = tmp_path / "min.jsonl"
    whole = check(HISTORIES / name, minimize=Minimize(to), **KNOWN[name].asked)
    found = whole.narrative.smallest
    assert found is not None
    assert not found.cut_short
    assert len(found.history.operations) <= FEW
    again = check(to)  # what was asked for is in the file
    assert kind(again.judgement) == kind(whole.judgement)
    assert_minimal(found, whole.judgement)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_spoilt_history_is_small_and_judged_the_same(mutation: Mutation) -> None:
    for seed, lock in enumerate(LOCKS):
        for spoilt in list(mutation(good_history(seed, lock)))[:1]:
            history = spoilt()
            assert_minimal(smallest(history), judge(history))


@pytest.mark.parametrize(("lock", "code"), WRONG)
def test_the_run_of_a_wrong_lock_is_small_and_judged_the_same(lock: str, code: str) -> None:
    history = simulate(replace(plan_for(lock, code), lock=lock, seed=1))
    found = smallest(history)
    assert len(found.history.operations) <= FEW
    assert_minimal(found, judge(history))


# --- what may be left out ------------------------------------------------------------------------

RIGHT = {
    "lock": ", ".join(f"{n % 3} acquire, {n % 3} release" for n in range(20)),
    "register": "0 write 1, 1 read = 1, 2 write 2, 0 read = 2, 1 write 3, 2 read = 3, 0 read = 3",
    "cas": "0 write 1, 1 cas [1,2], 2 read = 2, 0 cas [2,3], 1 cas [3,4], 2 read = 4",
    "counter": "0 add 1, 1 add 2, 2 read = 3, 0 add 4, 1 read = 7",
}


def one_after_the_other(text: str) -> History:
    parts = (each.strip().split(" ", 2) for each in text.split(", "))
    lines = (
        f"{process} {f} {2 * n}-{2 * n + 1} {' '.join(rest)}"
        for n, (process, f, *rest) in enumerate(parts)
    )
    return told("\n".join(lines))


def parts(history: History, random: Random) -> Iterable[History]:
    """With any pieces, and all that these need."""
    pieces = pieces_of(history, strict=True)
    for _ in range(60):
        kept = set(random.sample(pieces, random.randint(1, len(pieces))))
        while any(not piece.needs <= kept for piece in kept):
            kept |= {needed for piece in kept for needed in piece.needs}
        places = sorted(at for piece in kept for at in piece.places)
        events = [history.events[at] for at in places]
        yield History.of([opening_terms(history.terms, events[0]), *events], terms=history.terms)


@pytest.mark.parametrize("name", RIGHT)
def test_no_part_of_a_right_history_is_a_violation(name: str) -> None:
    whole = one_after_the_other(RIGHT[name])
    assert judge(whole).verdict is not Verdict.VIOLATION
    for part in parts(whole, Random(1)):
        assert judge(part).verdict is not Verdict.VIOLATION, part.operations


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lock", LOCKS)
def test_no_part_of_a_right_run_is_not_linearizable(lock: str, seed: int) -> None:
    for part in parts(good_history(seed, lock), Random(seed)):
        assert not judge(part).of("not-linearizable")


# --- long ones -----------------------------------------------------------------------------------


def test_of_a_long_log_it_is_on_the_page_unasked(tmp_path: Path) -> None:
    log, page = tmp_path / "long.jsonl", tmp_path / "page.html"
    long_histories.write(log, long_histories.run(30_000))
    checked = check(log, report=page)
    assert checked.judgement.scan is not None
    found = checked.narrative.smallest
    assert found is not None
    assert len(found.history.operations) <= 6
    assert found.title in page.read_text()
    assert not list(tmp_path.glob("*.min.jsonl"))


def test_a_wrong_read_in_a_long_history(tmp_path: Path) -> None:
    lines = list(long_histories.register(30_000))
    at = [n for n, line in enumerate(lines) if '"ok"' in line and '"read"' in line][5_000]
    lines[at] = json.dumps(json.loads(lines[at]) | {"value": None}) + "\n"
    log = tmp_path / "register.jsonl"
    long_histories.write(log, iter(lines))
    whole = check(log, minimize=Minimize())
    found = whole.narrative.smallest
    assert found is not None
    assert len(found.history.operations) == 2
    assert kind(check(tmp_path / "register.min.jsonl").judgement) == kind(whole.judgement)


def test_what_is_cut_short_says_so() -> None:
    history = told(TWO_HOLDERS)
    assert minimized(judge(history), limit_s=0) is None
    left: list[int] = []
    found = minimized(judge(history), show=lambda operations, _: left.append(operations))
    assert found is not None
    assert found.explanation.endswith("blame.")
    assert left[0] >= len(found.history.operations) == 4
    assert NOT_ALL in replace(found, cut_short=True).explanation


# --- the command ---------------------------------------------------------------------------------


def stored(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "locks.jsonl"
    history = told(text)
    found = Smallest(history, len(history.operations), cut_short=False)
    save(found, path)
    return path


def test_the_command_shows_and_writes_them(tmp_path: Path) -> None:
    log, page = stored(tmp_path, TWO_HOLDERS), tmp_path / "page.html"
    said = lockcheck("check", str(log), "--minimize", "--report", str(page))
    assert "4 operations of 7 suffice" in said.stdout
    assert "granted (0.003 s)" in said.stdout
    assert said.returncode == 1
    smaller = tmp_path / "locks.min.jsonl"
    assert str(smaller) in said.stdout
    html = page.read_text()
    assert html.index("4 operations of 7 suffice") < html.index('id="timeline"')
    again = lockcheck("check", str(smaller), "--json")
    assert again.returncode == 1
    assert json.loads(again.stdout)["findings"][0]["code"] == "overlap"


def test_what_is_close_together_has_times_that_differ(tmp_path: Path) -> None:
    log = stored(tmp_path, TWO_HOLDERS)
    log.write_text(log.read_text().replace("000000,", "0000,"))
    lines = lockcheck("check", str(log), "--minimize").stdout.splitlines()
    times = [line.split()[0] for line in lines if " acquire k  " in line or " release k  " in line]
    assert len(times) == len({*times}) == 4


def test_json_names_the_file(tmp_path: Path) -> None:
    log, to = stored(tmp_path, TWO_HOLDERS), tmp_path / "few.jsonl"
    said = lockcheck("check", str(log), "--minimized", str(to), "--json")
    assert json.loads(said.stdout)["minimized"] == str(to)
    assert to.exists()


def test_without_a_violation_there_is_nothing(tmp_path: Path) -> None:
    log = stored(tmp_path, "1 acquire 0-1\n1 release 2-3\n2 acquire 4-5\n2 release 6-7")
    said = lockcheck("check", str(log), "--minimize")
    assert "nothing was minimized" in said.stderr
    assert not (tmp_path / "locks.min.jsonl").exists()


@pytest.mark.parametrize("to", [None, "locks.jsonl"])
def test_it_needs_a_file_of_its_own(tmp_path: Path, to: str | None) -> None:
    log = stored(tmp_path, TWO_HOLDERS)
    asked = Minimize(log.parent / to if to else None)
    with pytest.raises(UserError, match=r"standard input|history file itself"):
        asked.path_beside(str(log) if to else "-", None)
