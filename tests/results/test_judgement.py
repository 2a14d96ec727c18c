"""A judgement that a test requires to be ok: its story, its page, and what would settle it."""

from __future__ import annotations

from pathlib import Path

import pytest

import lockcheck
from lockcheck.checker.doubt import Doubt, DoubtCode
from lockcheck.cli.terminal import print_verdict
from lockcheck.results.judgement import NO_RUN
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.story.wording.doubts import words_of
from lockcheck.results.story.wording.settling import settled_by
from lockcheck.results.summary import verdict_summary
from tests.checker.dsl import history

TWO = history("1 acquire 0-1 \n 2 acquire 2-3 \n 1 release 20-21 \n 2 release 22-23")
TURNS = history("1 acquire 0-1 \n 1 release 2-3 \n 2 acquire 4-5 \n 2 release 6-7")
ONE = history("1 acquire 0-1 \n 1 release 2-3")


def test_what_is_ok_is_returned_and_no_page_is_written(tmp_path: Path) -> None:
    judgement = lockcheck.judge(TURNS)
    assert judgement.require_ok(tmp_path / "page.html") is judgement
    assert not (tmp_path / "page.html").exists()
    assert str(judgement).startswith("OK   No two clients held the lock at once")


def test_a_violation_is_told_with_its_story_and_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judgement, page = lockcheck.judge(TWO), tmp_path / "new" / "page.html"
    with pytest.raises(AssertionError) as failed:
        judgement.require_ok(str(page))
    text = str(failed.value)
    assert text.startswith("VIOLATION   The lock server gave client n2 the lock that n1 held.")
    assert "At 0.003 s: n1 and n2 both held k for 17 ms." in text
    assert "whose fault    The lock server: it let n2 in" in text
    assert text.endswith(f"report         {page}")
    assert str(judgement) == text.rpartition("\nreport")[0].strip()
    assert "n1 and n2 both held k" in page.read_text()
    assert "Judge the stored history again" not in page.read_text()  # it is not stored
    print_verdict(Narrative(judgement), None, NO_RUN)
    assert str(judgement) in capsys.readouterr().out.replace(" VIOLATION   ", "VIOLATION   ")


def test_an_unknown_is_not_ok_and_says_what_would_settle_it(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    with pytest.raises(AssertionError, match=r"^UNKNOWN   Too little happened to tell") as failed:
        lockcheck.judge(ONE).require_ok(page)
    settled = "Let clients be granted the lock 2 times or more"
    assert f"do this        1. {settled}" in str(failed.value)
    assert settled in page.read_text()
    assert verdict_summary(Narrative(lockcheck.judge(ONE))).settled_by.startswith(settled)


def test_a_page_that_cannot_be_written_hides_no_story(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for page, reason in ((tmp_path / "file" / "page.html", "File exists"), (tmp_path, "directory")):
        with pytest.raises(AssertionError, match=r"^VIOLATION") as failed:
            lockcheck.judge(TWO).require_ok(page)
        assert "report         could not be written: " in str(failed.value)
        assert reason in str(failed.value)


def test_it_is_shown_in_one_line_where_it_is_compared() -> None:
    assert repr(lockcheck.judge(TWO)) == (
        "<Judgement violation: [overlap, not-linearizable] "
        "The lock server gave client n2 the lock that n1 held.>"
    )


@pytest.mark.parametrize("code", DoubtCode)
def test_each_doubt_says_what_would_settle_it(code: DoubtCode) -> None:
    doubt = Doubt(code, "k", "n1", fault=None, number=1, of=2)
    judgement = lockcheck.judge(TURNS).doubting(doubt)
    cures = (
        "run it again",
        "run again",
        "say by",
        "say whether",
        "say how",
        "would tell",
        "unless",
    )
    assert settled_by(judgement) or any(cure in words_of(doubt) for cure in (*cures, "look at"))


def test_nothing_is_to_settle_where_it_is_decided() -> None:
    assert settled_by(lockcheck.judge(TWO)) == settled_by(lockcheck.judge(TURNS)) == ""
