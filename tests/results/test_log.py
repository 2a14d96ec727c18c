"""The page of a log names who wrote it, by which clock, and from when to when: as far as known."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockcheck.check.recheck import recheck
from lockcheck.checker.linearizability import endless
from lockcheck.formats import ReadOptions
from lockcheck.results.story.log import about_log
from tests import long_histories
from tests.results.test_report import ATTACK, of_one_incident, report, words

BEGAN = 1_700_000_000_000_000_000  # 2023-11-14 22:13:20 UTC
HEADER = "client,key,op,start_ns,end_ns,outcome,node\n"
ROWS = ((1, 2, "w1"), (3, 4, "w2"), (90_000, 90_500, "w10"))  # in seconds: a day and an hour


def log(*, began_ns: int = BEGAN, hosts: tuple[str, ...] = ("web-1", "web-2", "web-1")) -> str:
    def row(since: int, until: int, client: str, host: str) -> str:
        start, end = (began_ns + each * 1_000_000_000 for each in (since - 1, until - 1))
        return f"{client},k,acquire,{start},{end},fail,{host}\n"

    return HEADER + "".join(row(*each, host) for each, host in zip(ROWS, hosts, strict=True))


def about(tmp_path: Path, text: str, **options: object) -> dict[str, str]:
    path = tmp_path / "locks.csv"
    path.write_text(text)
    asked = ReadOptions(**options)  # type: ignore[arg-type]
    checked = recheck(str(path), None, asked=asked, patience=endless, out=tmp_path)
    return dict(about_log(checked.judgement))


def test_hosts_clients_clock_and_times(tmp_path: Path) -> None:
    assert about(tmp_path, log()) == {
        "hosts": "web-1 and web-2",
        "clients": "3 (w1, w2 and w10)",
        "clock": "each host's own; how far they are apart is not known",
        "times": "2023-11-14 22:13:20.000 to 2023-11-15 23:21:39.000 UTC",
    }


def test_the_day_is_named_once(tmp_path: Path) -> None:
    short = "".join(log().splitlines(keepends=True)[:-1])
    assert about(tmp_path, short)["times"] == "2023-11-14 22:13:20.000 to 22:13:23.000 UTC"


def test_times_that_are_no_dates_are_said_to_be_none(tmp_path: Path) -> None:
    assert about(tmp_path, log(began_ns=0))["times"] == "0.000 s to 90499.000 s, without a date"


@pytest.mark.parametrize(
    ("hosts", "options", "clock"),
    [
        (("", "", ""), {}, "taken to be one for all, since no host is named"),
        (("a", "a", "a"), {}, "that of a"),
        (("a", "b", "b"), {"clock_error_ms": 50.0}, "each host's own, less than 50 ms apart by"),
        (("a", "b", "b"), {"clock_errors_ms": {"a": 9.0}}, "each host's own, as far apart as"),
        (("", "", ""), {"clock_error_ms": 50.0}, "each client's own, less than 50 ms apart by"),
        (("a", "b", "b"), {"clock_error_ms": 0.0}, "one for all"),
    ],
)
def test_whose_clock_it_is(
    tmp_path: Path, hosts: tuple[str, ...], options: dict[str, object], clock: str
) -> None:
    assert about(tmp_path, log(hosts=hosts), **options)["clock"].startswith(clock)


def test_a_keeper_is_no_client(tmp_path: Path) -> None:
    text = (
        "client,key,op,start_ns,end_ns,outcome,ttl_ms,of\n"
        "w1,k,acquire,0,1000,ok,1000,\n"
        "w1/keeper,k,renew,2000,3000,ok,1000,w1\n"
    )
    assert about(tmp_path, text)["client"] == "w1"


def test_a_long_log_has_the_same(tmp_path: Path) -> None:
    path = tmp_path / "locks.csv"
    long_histories.write(path, long_histories.rows(60_000))
    checked = recheck(str(path), None, asked=ReadOptions(), patience=endless, out=tmp_path)
    assert checked.judgement.scan is not None
    rows = dict(about_log(checked.judgement))
    assert rows["clients"].startswith("20 (worker-0, worker-1, worker-2")
    assert rows["times"].startswith("2023-11-14 22:13:20.000 to 22:13:20.")


def test_it_is_at_the_top_of_the_page(tmp_path: Path) -> None:
    path = tmp_path / "locks.csv"
    path.write_text(log(hosts=(ATTACK, "web", "web")))
    page = tmp_path / "page.html"
    recheck(str(path), page, asked=ReadOptions(), patience=endless, out=tmp_path)
    html = page.read_text()
    head = words(html).partition("exit code")[0]
    for part in ("History locks.csv", "hosts", "clients 3 (w1, w2 and w10)", "2023-11-14 22:13:20"):
        assert part in head
    assert "<img" not in html


def test_a_run_has_no_such_line() -> None:
    assert 'class="log"' not in report(of_one_incident())
