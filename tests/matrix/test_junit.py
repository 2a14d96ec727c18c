"""JUnit XML, as another program reads it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

import lockcheck
from lockcheck.matrix.campaign import Campaign, Threshold
from lockcheck.matrix.report.junit import junit_xml
from tests.matrix.made_up import HOSTILE, campaign, cell, one_of_each, result, with_texts


def read(whole: Campaign, folder: Path) -> TestSuite:
    path = folder / "junit.xml"
    path.write_text(junit_xml(whole), "utf-8")
    [suite] = JUnitXml.fromfile(str(path))
    return suite


def by_name(suite: TestSuite) -> dict[str, TestCase]:
    return {case.name: case for case in suite}


def test_the_suite_is_the_campaign_and_its_numbers_are_true(tmp_path: Path) -> None:
    suite = read(one_of_each(), tmp_path)
    assert (suite.name, suite.time) == ("nightly.toml", 3723.0)
    assert suite.timestamp == "2025-11-18T02:30:00+00:00"
    numbers = suite.tests, suite.failures, suite.errors, suite.skipped
    assert numbers == (94 + 1 + 3, 2 + 1 + 1 + 1, 1, 2 + 1)
    suite.update_statistics()
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == numbers
    properties = {each.name: each.value for each in suite.properties()}
    assert properties == {"lockcheck version": lockcheck.__version__}


def test_what_never_happened_is_what_the_suite_says() -> None:
    [said] = ET.fromstring(junit_xml(one_of_each())).findall("testsuite/system-out")  # noqa: S314
    assert said.text == "No lease ever ran out."


def test_each_trial_is_a_case_of_its_cell(tmp_path: Path) -> None:
    whole = one_of_each()
    cases = by_name(read(whole, tmp_path))
    for each in whole.results:
        assert cases[each.trial].classname == each.cell
        assert cases[each.trial].time == 17.25


@pytest.mark.parametrize(
    ("trial", "kind", "message"),
    [
        ("etcd::none[1]", None, ""),
        ("redis::pause[1]", None, ""),
        (
            "redis::pause::fence[19]",
            Failure,
            "c2 worked past its lease and overwrote c1's write.",
        ),
        ("redis-naive::pause[5]", Failure, "A violation was expected, and none came."),
        ("redis::clock[4]", Error, "r1 did not start: port 6379 is taken"),
        ("etcd::pause[19]", Skipped, "No fault was seen to take."),
    ],
)
def test_how_it_stands(
    trial: str, kind: type[Failure | Error | Skipped] | None, message: str, tmp_path: Path
) -> None:
    found = by_name(read(one_of_each(), tmp_path))[trial].result
    assert [(type(each), each.message) for each in found] == ([(kind, message)] if kind else [])


def test_a_failure_tells_the_story(tmp_path: Path) -> None:
    case = by_name(read(one_of_each(), tmp_path))["redis::pause::fence[19]"]
    assert case.result[0].text.splitlines() == [
        "c2 worked past its lease and overwrote c1's write.",
        "Whose fault: lock client",
        "Run it again: lockcheck run --backend redis --seed 19",
        "Its page: trials/redis::pause::fence[19]/20251118-023000-a1b2c3/report.html",
    ]
    assert case.system_out.splitlines() == [
        "c2 worked past its lease and overwrote c1's write.",
        "acquisitions: 1,234",
        "fault pause: 8 times",
        "page: trials/redis::pause::fence[19]/20251118-023000-a1b2c3/report.html",
    ]


def test_a_share_that_did_not_come_and_a_threshold_fail_too(tmp_path: Path) -> None:
    cases = by_name(read(one_of_each(), tmp_path))
    [failure] = cases["redis::pause: violation in >= 80%"].result
    assert isinstance(failure, Failure)
    assert failure.message == (
        "expected violation in >= 80%, came as violation in 10 of 20 (95 % interval 30 to 70 %)"
    )
    kinds = {
        name: [type(each) for each in case.result]
        for name, case in cases.items()
        if case.classname == "thresholds"
    }
    assert kinds == {
        "violations == 0": [Failure],
        "unknown_rate < 5%": [],
        "p(99) free_again < 3s": [Skipped],
    }


def test_a_share_that_came_passes_and_one_without_answers_is_skipped(tmp_path: Path) -> None:
    came = cell("redis::pause", "violation in >= 80%", "violation*9 ok")
    none = cell("redis::kill", "violation in >= 80%", "unknown*3")
    cases = by_name(read(campaign(came, none), tmp_path))
    assert cases["redis::pause: violation in >= 80%"].result == []
    assert isinstance(cases["redis::kill: violation in >= 80%"].result[0], Skipped)


def test_hostile_texts_are_read_back_without_what_xml_forbids(tmp_path: Path) -> None:
    outcomes = one_of_each().cells
    whole = campaign(
        *(with_texts(outcome, f"{HOSTILE}\ud800]]>") for outcome in outcomes),
        thresholds=(Threshold(HOSTILE, False, HOSTILE),),
        blind=(HOSTILE,),
    )
    suite = read(whole, tmp_path)
    assert suite.tests == sum(1 for _ in suite) == 94 + 1 + 1
    case = by_name(suite)["redis::clock[4]"]
    kept = "".join(c for c in HOSTILE if c not in "\x00\x1b\x0c\ufffe")
    assert case.result[0].message == f"{kept}]]>"
    assert f"Whose fault: {kept}]]>" in case.result[0].text


def test_a_campaign_without_a_trial_can_be_read(tmp_path: Path) -> None:
    assert [*read(campaign(), tmp_path)] == []
    assert [*read(campaign(cell("etcd::none", "ok", "", planned=3)), tmp_path)] == []


def test_numbers_of_what_was_not_granted(tmp_path: Path) -> None:
    outcome = cell("etcd::none", "ok", "")
    outcome.results.append(result("etcd::none", 1, "ok", ungranted_ms=2345.6))  # type: ignore[attr-defined]
    [case] = read(campaign(outcome), tmp_path)
    assert "longest time without a grant: 2,346 ms" in case.system_out
