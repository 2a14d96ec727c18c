"""The charts over time show what happened: their numbers are those of the history."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lockcheck.checker import judge, judge_scan
from lockcheck.history import History, read_history
from lockcheck.history.event import NS_PER_MS
from lockcheck.history.scan import scan
from lockcheck.history.table import NEVER
from lockcheck.results.report.activity import Activity, activity_of
from lockcheck.results.report.over_time import OverTime, over_time
from lockcheck.results.report.plot import long, round_ns
from tests import long_histories
from tests.checker.dsl import history, ns
from tests.results.test_report import ATTACK, report


def turns(many: int, every_ms: int = 100, held_ms: int = 20) -> list[str]:
    """Each client asks 10 ms before it is granted the lock."""
    return [
        f"{n % 2} acquire {every_ms * n}-{every_ms * n + 10}"
        f"\n{n % 2} release {every_ms * n + 10 + held_ms}-{every_ms * n + 11 + held_ms}"
        for n in range(many)
    ]


def of(told: History) -> Activity:
    found = activity_of(judge(told))
    assert found is not None
    return found


def drawn(told: History) -> OverTime:
    found = over_time(judge(told))
    assert found is not None
    return found


def ms(lengths: np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None) -> list[float | None]:
    assert lengths is not None
    return [None if each == NEVER else each / NS_PER_MS for each in lengths.tolist()]


def test_a_wait_begins_with_the_first_request() -> None:
    told = history("""
        1 acquire 0-1
        2 acquire 5-6! error=held
        2 acquire:other 8-9
        2 acquire 10-11! error=held
        1 release 20-21
        2 acquire 24-25
        1 acquire 26-27! error=held
        2 release 30-31
        2 acquire 40-41""")
    found = of(told)
    assert ms(found.granted) == [1, 9, 25, 41]
    assert ms(found.waited) == [1, 1, 25 - 5, 1]
    assert ms(found.held) == [19, None, 5, None]  # the others were never released


def test_a_hold_ends_with_its_loss() -> None:
    told = history(
        "1 acquire 0-1 \n 1 lost 5 \n 1 release 8-9 \n 2 acquire 10-11 \n 2 release 13-14"
    )
    assert ms(of(told).held) == [4, 2]


def test_the_numbers_are_those_of_the_history() -> None:
    lines = [*turns(9), "0 acquire 900-1510", "0 release 1600-1601"]
    page = drawn(history(*lines))
    assert page.numbers == (
        "10 grants; waited 10 ms (median), 610 ms (longest); held 20 ms (median), 90 ms (longest); "
        "longest time without a grant 610 ms."
    )


def test_the_share_of_one_in_a_hundred_takes_a_hundred() -> None:
    lengths = [10] * 98 + [300, 400]
    lines = [
        f"{n % 2} acquire {1000 * n}-{1000 * n + wait} \n"
        f"{n % 2} release {1000 * n + wait + 5}-{1000 * n + wait + 6}"
        for n, wait in enumerate(lengths)
    ]
    assert "waited 10 ms (median), 300 ms (p99), 400 ms (longest)" in drawn(history(*lines)).numbers


def bars(markup: str, kind: str) -> list[tuple[float, float, float]]:
    """Left edge, top and height, in percent."""
    pattern = (
        rf'<rect class="{kind}" x="([\d.]+)%" y="([\d.]+)%" width="[\d.]+%" height="([\d.]+)%"'
    )
    return [tuple(map(float, found)) for found in re.findall(pattern, markup)]  # type: ignore[misc]


def test_each_bucket_has_a_bar_of_its_own_rate() -> None:
    """10 s in buckets of 200 ms: two grants in each, and a gap from 4 to 6 s."""
    lines = [line for n, line in enumerate(turns(100)) if not 40 <= n < 60]
    lines.append("0 read 9990-10000")
    lines[0] = "0 acquire 0-10 \n 0 release 30-31 \n 1 acquire 50-60 \n 1 release 70-71"
    grants, *_ = drawn(history(*lines)).rows
    assert grants.name == "Grants a second"
    assert grants.about.startswith("in each 200 ms")
    assert grants.scale == ("15", "0")  # three in the first bucket
    found = bars(grants.drawn, "o-bar")
    assert len(found) == 50 - 10
    assert found[0][1:] == (0.0, 100.0)
    assert {each[1:] for each in found[1:]} == {(33.3, 66.7)}
    assert found[20][0] == pytest.approx(60, abs=0.6)  # the first after the gap


def test_waits_and_holds_are_on_a_scale_of_powers_of_ten() -> None:
    _, waited, held = drawn(
        history(*turns(20, every_ms=300, held_ms=100), "0 release 5800-6000")
    ).rows
    assert (waited.scale, held.scale) == (("10 ms", "1 ms"), ("100 ms", "10 ms"))
    assert {each[1:] for each in bars(waited.drawn, "o-median")} == {(0.0, 2.0)}
    (*_, wait) = drawn(history(*turns(20), "0 acquire 2000-2020", "1 acquire 2030-3030")).rows[1:2]
    assert wait.scale == ("1 s", "100 ms", "10 ms")
    assert bars(wait.drawn, "o-longest")[-1][1:] == (0.0, 0.0)  # it is the only one there


def test_the_longest_time_without_a_grant_is_the_judgements() -> None:
    lines = [*turns(10), "1 acquire 2000-2503 \n 1 release 2600-2601"]
    judgement = judge(history(*lines))
    assert judgement.ungranted is not None
    assert judgement.ungranted.length_ns == ns(503)
    page = over_time(judgement)
    assert page is not None
    assert "longest time without a grant 503 ms" in page.numbers
    above = page.rows[0].above
    assert re.findall(r">([^<]+)</text>", above) == ["503 ms without a grant"]
    (x,) = re.findall(r'<rect x="([\d.]+)%"', above)
    assert float(x) == pytest.approx(100 * 2000 / 2601, abs=0.01)


def test_proven_faults_have_a_band_and_a_name() -> None:
    lines = [*turns(20), "fault pause n1 500-1000", "fault kill n1 1200-1300!"]
    page = drawn(history(*lines))
    assert re.findall(r">([^<]+)</text>", page.names) == ["pause"]
    for row in page.rows:
        ((x, width, title),) = re.findall(
            r'"o-fault" x="([\d.]+)%" y="0" width="([\d.]+)%" height="100%"><title>([^<]*)',
            row.drawn,
        )
        assert float(x) == pytest.approx(100 * 500 / 1931, abs=0.01)
        assert float(width) == pytest.approx(100 * 500 / 1931, abs=0.01)
        assert title == "pause of n1"


def test_a_fault_that_was_never_healed_lasts_to_the_end() -> None:
    page = drawn(history(*turns(20), "fault pause n1 1000-"))
    assert 'width="48.21%"' in page.rows[0].drawn  # of 1931 ms


def test_names_of_faults_are_text() -> None:
    told = history(*turns(20), "fault pause n1 500-1000")
    fault = replace(told.faults[0], name=ATTACK, nodes=(ATTACK,))
    page = report(replace(told, faults=(fault,)))
    assert 'id="over-time"' in page
    assert "<img" not in page
    assert "&lt;/script&gt;" in page.partition('id="over-time"')[2].partition("</section>")[0]


@pytest.mark.parametrize(
    "lines",
    [
        [f"{n} write:x {n}-{n + 1} {n}" for n in range(20)],
        [f"1 acquire {n}-{n + 1}! error=held" for n in range(20)],
        turns(9),
        ["1 acquire 0-1"],
    ],
    ids=["no lock", "never granted", "few", "one"],
)
def test_without_grants_there_is_no_section(lines: list[str]) -> None:
    assert 'id="over-time"' not in report(history(*lines))


def test_a_part_of_a_history_alone_has_none() -> None:
    judgement = judge(history(*turns(20)))
    counts = replace(judgement.counts, operations=judgement.counts.operations + 1)
    assert activity_of(replace(judgement, counts=counts)) is None


# --- long histories ------------------------------------------------------------------------------


def test_columns_show_the_same(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    long_histories.write(path, long_histories.lock(4_000))
    columns = scan(lambda: path.open("rb"), "history")
    assert columns is not None
    whole, part = judge(read_history(path)), judge_scan(columns)
    assert part.scan is not None
    assert len(part.case.history.operations) < len(whole.case.history.operations)
    assert over_time(part) == over_time(whole)


def lost(path: Path) -> None:
    with path.open("a") as out:
        out.write('{"time":1,"process":0,"type":"info","f":"lost","key":"k"}\n')


@pytest.mark.parametrize("spoil", [lost], ids=["lost"])
def test_columns_do_not_show_how_long_where_it_is_not_certain(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    path = tmp_path / "history.jsonl"
    spoil(path)
    with path.open("a") as out:
        out.writelines(long_histories.lock(4_000))
    columns = scan(lambda: path.open("rb"), "history")
    assert columns is not None
    page = over_time(judge_scan(columns))
    assert page is not None
    assert [row.name.partition(" ")[0] for row in page.rows] == ["Grants", "Waited"]
    assert "held" not in page.numbers
    assert page.not_shown.startswith("How long it was held is not shown")


# --- axes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length_ms", "expected"),
    [(10, "200 µs"), (2_600, "50 ms"), (15_000, "200 ms"), (20_000, "500 ms"), (600_000, "10 s")],
)
def test_buckets_have_a_round_width(length_ms: int, expected: str) -> None:
    assert long(round_ns(ns(length_ms), 80)) == expected


def test_a_day_has_buckets_of_minutes() -> None:
    assert long(round_ns(ns(86_400_000), 80)) == "20 min"
    assert long(round_ns(ns(30 * 86_400_000), 80)) == "12 h"


def test_the_axis_has_times_in_one_unit() -> None:
    labels = re.findall(r">([^<]+)</text>", drawn(history(*turns(30))).axis)
    assert labels == ["0 s", "0.5 s", "1 s", "1.5 s", "2 s", "2.5 s"]
