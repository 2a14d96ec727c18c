"""News: against an earlier campaign, and against a file of what is known."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from lockcheck.errors import UserError
from lockcheck.matrix.baseline import Baseline, Known, forgiven, news_of, read_baseline
from lockcheck.matrix.campaign import News
from lockcheck.matrix.model import CellOutcome
from tests.matrix.cells import LATE, OVERLAP, broken, cell, error, fine, outcome, result, unknown

TODAY = date(2026, 3, 1)
FOUND = "overlap under pause on redis, the lock service's fault"
MISSED = "under pause on redis, the violation that was expected did not come"
ENTRY = Known("overlap", "redis", date(2026, 12, 31), "ticket 123", "pause", "service")
PAST = Known("overlap", "redis", date(2026, 2, 28), "ticket 99", "pause", "service")

GREEN = outcome(cell(), fine(20))
RED = outcome(cell(), [*broken(2), *fine()])


def news(
    now: list[CellOutcome], before: list[CellOutcome] | None = None, *known: Known
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """New, ongoing, resolved."""
    baseline = Baseline("known.toml", known)
    found = news_of(now, before or [], against="last night", today=TODAY, baseline=baseline)
    assert found == News(found.new, found.ongoing, found.resolved, "last night")
    return found.new, found.ongoing, found.resolved


# --- against last night --------------------------------------------------------------------------


def test_what_is_new() -> None:
    assert news([RED], [GREEN]) == ((f"{FOUND} (2 of 3 runs)",), (), ())
    assert news([RED]) == ((f"{FOUND} (2 of 3 runs)",), (), ())


def test_another_culprit_is_news() -> None:
    late = "overlap under pause on redis, the holder's fault (1 of 1 run)"
    assert news([outcome(cell(), broken(1, LATE))], [RED])[0] == (late,)


def test_what_goes_on() -> None:
    assert news([RED], [RED]) == ((), (f"{FOUND} (2 of 3 runs; 2 of 3 runs before)",), ())


def test_the_same_finding_in_another_cell_of_the_lock_is_no_news() -> None:
    other = outcome(cell(id_="redis::pause::ttl=9s"), broken(1))
    assert news([other], [RED])[0] == ()


def test_what_is_resolved() -> None:
    assert news([GREEN], [RED]) == ((), (), (f"{FOUND} (none of 20 runs; 2 of 3 runs before)",))
    assert news([GREEN], [GREEN]) == ((), (), ())


def test_what_came_seldom_may_only_not_have_come() -> None:
    seldom = outcome(cell(), [*broken(1), *fine(19)])
    words = f"{FOUND} (none of 3 runs; 1 of 20 runs before: too few to be sure)"
    assert news([outcome(cell(), fine(3))], [seldom]) == ((), (), (words,))


@pytest.mark.parametrize(
    "now",
    [[], [outcome(cell(), [*error(2), *unknown()])], [outcome(cell("etcd"), fine(3))]],
    ids=["nothing", "no answer", "others"],
)
def test_what_was_not_looked_at_is_not_resolved(now: list[CellOutcome]) -> None:
    words = f"{FOUND} (no run that could show it has an answer; 2 of 3 runs before)"
    assert news(now, [RED]) == ((), (words,), ())


def test_what_is_expected_by_now_is_resolved_though_it_still_comes() -> None:
    expected = outcome(cell(expect="violation"), broken(3))
    words = f"{FOUND} (it still comes, and is expected by now)"
    assert news([expected], [RED]) == ((), (), (words,))


def test_a_violation_that_did_not_come_is_news_too() -> None:
    came = outcome(cell(expect="violation"), broken(3))
    missed = outcome(cell(expect="violation"), [*broken(1), *fine(2)])
    assert news([missed], [came])[0] == (f"{MISSED} (2 of 3 runs)",)
    assert news([came], [missed])[2] == (f"{MISSED} (none of 3 runs; 2 of 3 runs before)",)


# --- what is known -------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [ENTRY, Known("overlap", "redis", TODAY, "ticket 123")])
def test_what_is_known_is_no_news(known: Known) -> None:
    words = f"{FOUND} (2 of 3 runs; known until {known.until}: ticket 123)"
    assert news([RED], None, known) == ((), (words,), ())
    both = f"{FOUND} (2 of 3 runs; 2 of 3 runs before; known until {known.until}: ticket 123)"
    assert news([RED], [RED], known) == ((), (both,), ())


def test_an_entry_that_has_expired_counts_no_more_and_that_is_noted() -> None:
    words = f"{FOUND} (2 of 3 runs; was known until 2026-02-28: ticket 99)"
    assert news([RED], [GREEN], PAST) == ((words,), (), ())
    assert news([RED], [RED], PAST)[1] == (
        f"{FOUND} (2 of 3 runs; 2 of 3 runs before; was known until 2026-02-28: ticket 99)",
    )


@pytest.mark.parametrize(
    "other",
    [
        Known("stuck", "redis", TODAY, "other code"),
        Known("overlap", "etcd", TODAY, "other backend"),
        Known("overlap", "redis", TODAY, "other fault", fault="kill"),
        Known("overlap", "redis", TODAY, "no fault", fault=""),
        Known("overlap", "redis", TODAY, "other blame", blame="holder"),
    ],
    ids=lambda entry: entry.why,
)
def test_another_entry_does_not_cover_it(other: Known) -> None:
    assert news([RED], None, other)[0] == (f"{FOUND} (2 of 3 runs)",)
    assert not forgiven([RED], Baseline("", (other,)), TODAY)


@pytest.mark.parametrize("entry", [ENTRY, PAST])
def test_an_entry_that_matches_nothing_is_not_needed(entry: Known) -> None:
    words = (
        "overlap under pause on redis, blame service: unexpected in none of 20 runs, so its entry "
        "is not needed any more"
    )
    assert news([GREEN], None, entry) == ((), (), (words,))


@pytest.mark.parametrize(
    "now",
    [
        outcome(cell("etcd"), fine(3)),
        outcome(cell(nemesis="none"), fine(3)),
        outcome(cell(), error(3)),
    ],
)
def test_where_nothing_could_show_it_an_entry_may_be_needed(now: CellOutcome) -> None:
    assert news([now], None, ENTRY) == ((), (), ())


def test_a_missed_violation_can_be_known() -> None:
    missed = outcome(cell(expect="violation"), fine(2))
    known = Known("missed", "redis", TODAY, "ticket 5")
    assert news([missed], None, known) == (
        (),
        (f"{MISSED} (2 of 2 runs; known until 2026-03-01: ticket 5)",),
        (),
    )


def test_trials_of_which_all_is_known_are_forgiven() -> None:
    stuck = result("violation", OVERLAP, LATE)
    now = [outcome(cell(), [*fine(), *broken(), stuck])]
    assert forgiven(now, Baseline("", (ENTRY,)), TODAY) == {"redis::pause[2]"}
    assert forgiven(now, Baseline("", (PAST,)), TODAY) == frozenset()
    late = Known("overlap", "redis", TODAY, "", blame="holder")
    both = {"redis::pause[2]", "redis::pause[3]"}
    assert forgiven(now, Baseline("", (ENTRY, late)), TODAY) == both


# --- the file ------------------------------------------------------------------------------------

GOOD = """
[[known]]
code = "overlap"
backend = "redis"
fault = "pause"
blame = "service"
until = 2026-12-31
why = "ticket 123"
"""


def read(text: str, folder: Path) -> Baseline:
    path = folder / "known.toml"
    path.write_text(text)
    return read_baseline(path)


def test_a_file_is_read(tmp_path: Path) -> None:
    wide = '[[known]]\ncode = "missed"\nbackend = "own"\nuntil = 2026-01-02\nwhy = "?"\nfault = ""'
    baseline = read(GOOD + wide, tmp_path)
    assert baseline.path == str(tmp_path / "known.toml")
    assert baseline.known == (ENTRY, Known("missed", "own", date(2026, 1, 2), "?", fault=""))
    assert read("", tmp_path).known == ()


@pytest.mark.parametrize(
    ("text", "message", "cure"),
    [
        ("[[known]", "known.toml cannot be read: ", "correct it"),
        ("known = 3", "known is no list of tables", "write [[known]]"),
        ("known = [3]", "known is no list of tables", "write [[known]]"),
        ("[[knwon]]", "unknown table 'knwon'", "write [[known]]"),
        (GOOD + "wyh = 3", "entry 1: unknown name 'wyh'", "choose from: why"),
        (GOOD + GOOD.replace("until", "#"), "entry 2: until is missing", "as in code ="),
        (GOOD.replace('why = "ticket 123"', ""), "entry 1: why is missing", "as in code ="),
        (GOOD.replace('"overlap"', '"overlapp"'), "unknown code 'overlapp'", "from: overlap"),
        (GOOD.replace('"service"', '"redis"'), "unknown blame 'redis'", "choose from: service"),
        (GOOD.replace("2026-12-31", '"soon"'), "until = soon is no date", "until = 2026-12-31"),
        (GOOD.replace("2026-12-31", "2026-12-31T07:00:00"), "is no date", "until = 2026-12-31"),
        (GOOD.replace('"pause"', "7"), "fault = 7 is no text", "as in code ="),
        (GOOD.replace('"redis"', '" "'), "backend = ' ' is no text", "as in code ="),
        ("a = " + "[" * 5000, "cannot be read", "correct it"),
    ],
)
def test_what_is_wrong_in_a_file(text: str, message: str, cure: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        read(text, tmp_path)
    assert message in raised.value.message
    assert "known.toml" in raised.value.message
    assert cure in raised.value.cure


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_baseline(tmp_path / "known.toml")
