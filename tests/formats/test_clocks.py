"""Times since 1970 work in every format, and findings name the date and time."""

from __future__ import annotations

from pathlib import Path

import pytest

import lockcheck.check.loading
from lockcheck.check.recheck import recheck
from lockcheck.checker import Verdict
from lockcheck.checker.linearizability import endless
from lockcheck.formats import ReadOptions, read_any
from lockcheck.results.summary import verdict_summary

BEGAN_NS = 1_700_000_000_000_000_000
MS = 1_000_000

CSV = "client,key,op,start_ns,end_ns,outcome\n" + "".join(
    f"{client},k,{op},{BEGAN_NS + start * MS},{BEGAN_NS + (start + 1) * MS},ok\n"
    for client, op, start in [
        ("1", "acquire", 0),
        ("2", "acquire", 20),
        ("1", "release", 40),
        ("2", "release", 60),
    ]
)
STEPS = [
    (0, "invoke", 1, "acquire"),
    (1, "ok", 1, "acquire"),
    (20, "invoke", 2, "acquire"),
    (21, "ok", 2, "acquire"),
    (40, "invoke", 1, "release"),
    (41, "ok", 1, "release"),
    (60, "invoke", 2, "release"),
]
FORMATS = {
    "jsonl": "".join(
        f'{{"time":{BEGAN_NS + at * MS},"process":{process},"type":"{kind}","f":"{f}","key":"k"}}\n'
        for at, kind, process, f in STEPS
    ),
    "jepsen-json": "".join(
        f'{{"index":{number},"time":{BEGAN_NS + at * MS},"process":{process},"type":"{kind}",'
        f'"f":"{f}","value":null}}\n'
        for number, (at, kind, process, f) in enumerate(STEPS)
    ),
    "edn": "".join(
        f"{{:type :{kind}, :f :{f}, :process {process}, :time {BEGAN_NS + at * MS}, :value nil}}\n"
        for at, kind, process, f in STEPS
    ),
    "csv": CSV,
    "otlp": '{"resourceSpans":[{"scopeSpans":[{"spans":['
    + ",".join(
        f'{{"name":"{op}","startTimeUnixNano":"{start}","endTimeUnixNano":"{end}","attributes":['
        f'{{"key":"lock.client","value":{{"stringValue":"{client}"}}}},'
        '{"key":"lock.key","value":{"stringValue":"k"}}]}'
        for client, _, op, start, end, _ in (line.split(",") for line in CSV.splitlines()[1:])
    )
    + "]}]}]}",
}


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_a_finding_has_the_time_by_the_clock_of_the_log(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, long: bool
) -> None:
    if long:  # so it is judged from columns, in the formats that can be read into them
        monkeypatch.setattr(lockcheck.check.loading, "LONG", 0)
        monkeypatch.setattr(lockcheck.check.loading, "MANY", 0)
    path = tmp_path / "history"
    path.write_text(FORMATS[name])
    asked = ReadOptions(format=name)
    checked = recheck(str(path), None, asked=asked, patience=endless, out=tmp_path)
    judgement = checked.judgement
    assert judgement.verdict is Verdict.VIOLATION
    assert checked.narrative.history.end_ns < 100 * MS
    headline = checked.narrative.detail
    assert headline.startswith("At 0.021 s: process 1 and process 2 both held")
    assert "By the log's clock that was 2023-11-14 22:13:20.021 UTC." in headline
    assert verdict_summary(checked.narrative).findings[0].at == "2023-11-14 22:13:20.021 UTC"


def test_a_clock_that_counts_from_its_own_beginning_has_no_date(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text(CSV.replace("17000000000", "00000000000"))
    assert read_any(str(path))[0].terms.began_ns == 0
