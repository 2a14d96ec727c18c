"""The summary and the annotations of a CI job; and the results as NDJSON."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from lockcheck.errors import UserError
from lockcheck.matrix.campaign import Campaign, News, Threshold
from lockcheck.matrix.report.markdown import MOST_ANNOTATIONS, annotation_lines, summary
from lockcheck.matrix.report.ndjson import ndjson, read_results
from tests.matrix.made_up import HOSTILE, campaign, cell, one_of_each, result, with_texts


def rendered(whole: Campaign) -> str:
    return str(MarkdownIt("commonmark").enable("table").render(summary(whole)))


def rows(html: str) -> list[list[str]]:
    """Of the table, without markup."""
    found = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", row)]
        for row in found
    ]


def test_the_sentence_is_the_heading_and_the_rest_follows() -> None:
    html = rendered(one_of_each())
    parts = [
        "<h3>2 of 7 cells as expected; 1 violation: redis::pause::fence;",
        "<li>✗ violations == 0 not kept: 2</li>",
        "<li>✓ unknown_rate &lt; 5% kept: 2.2 %</li>",
        "<li>No lease ever ran out.</li>",
        "<strong>New:</strong> redis: stale-write under pause, by the holder",
        "<strong>Resolved:</strong> etcd: stuck",
        "<table>",
    ]
    places = [html.index(part) for part in parts]
    assert places == sorted(places)


def test_the_table_has_the_worst_first_and_links_to_pages() -> None:
    html = rendered(one_of_each())
    head, *body = rows(html)
    assert head == ["Cell", "Stands", "Expected", "Came", "Why"]
    assert [row[1] for row in body] == [
        *("✗ violation", "∅ missed", "∅ missed", "! error", "? unknown"),
        *("✓ as expected", "✓ as expected"),
    ]
    assert body[0][0] == "redis::pause::fence"
    assert body[0][3] == "18 of 20 as expected (95 % interval 70 to 97 %)"
    page = "./trials/redis%3A%3Apause%3A%3Afence%5B19%5D/20251118-023000-a1b2c3/report.html"
    assert f'overwrote c1\'s write. (lock client) <a href="{page}">page</a>' in html


def test_what_is_beyond_forty_rows_is_counted() -> None:
    good = [cell(f"etcd::pause::ttl={n}s", "ok", "ok") for n in range(45)]
    html = rendered(campaign(*good, cell("redis::pause", "ok", "violation")))
    assert len(rows(html)) == 41
    assert rows(html)[1][0] == "redis::pause"
    assert "And 6 cells more, 6 of them as expected." in html
    assert "cells more" not in summary(campaign(*good[:40]))


def test_nothing_of_a_run_is_markup() -> None:
    whole = one_of_each()
    text = f"{HOSTILE} http://example.org $x$ @all"
    whole = replace(
        whole,
        name=text,
        cells=tuple(with_texts(outcome, text) for outcome in whole.cells),
        thresholds=(Threshold(text, False, text),),
        blind=(text,),
        news=News((text,), (), (), text),
    )
    html = rendered(whole)
    assert {len(row) for row in rows(html)} == {5}
    tags = {*re.findall(r"<(\w+)", html)}
    assert tags == {
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "h3",
        "ul",
        "li",
        "p",
        "strong",
        "a",
    }
    assert all(href.startswith("./") for href in re.findall('href="([^"]*)"', html))
    assert "a|b `c` **d** [e](javascript:alert(1)) &lt;/script&gt;&lt;img" in html


def test_a_campaign_of_nothing_has_a_summary() -> None:
    assert summary(campaign()) == "### 0 of 0 cells as expected\n"


# --- annotations ---------------------------------------------------------------------------------


def test_only_what_is_not_as_expected_is_annotated() -> None:
    assert annotation_lines(one_of_each())[0] == (
        "::error title=redis%3A%3Apause%3A%3Afence%3A violation::"
        "c2 worked past its lease and overwrote c1's write.%0AWhose fault: lock client%0A"
        "Run it again: lockcheck run --backend redis --seed 19"
    )
    titles = [line.split("::")[1] for line in annotation_lines(one_of_each())]
    assert titles == [
        "error title=redis%3A%3Apause%3A%3Afence%3A violation",
        "error title=redis-naive%3A%3Apause%3A missed",
        "error title=redis%3A%3Apause%3A missed",
        "error title=redis%3A%3Aclock%3A error",
        "error title=not kept%3A violations == 0",
        "warning title=etcd%3A%3Apause%3A unknown",
    ]
    assert annotation_lines(campaign(cell("etcd::none", "ok", "ok*3"))) == []


def test_there_are_at_most_ten_and_the_rest_is_counted() -> None:
    bad = [cell(f"redis::pause::ttl={n}s", "ok", "violation") for n in range(12)]
    assert len(annotation_lines(campaign(*bad[:10]))) == MOST_ANNOTATIONS
    lines = annotation_lines(campaign(*bad))
    assert len(lines) == MOST_ANNOTATIONS
    assert lines[-1] == "::error title=lockcheck::3 more are not as expected"


def test_an_annotation_is_one_line_that_no_text_can_end() -> None:
    outcomes = [with_texts(outcome, f"100 %\r\n{HOSTILE}") for outcome in one_of_each().cells]
    whole = campaign(*outcomes, thresholds=(Threshold("a,b:c\nd", False, "e\n::error::f"),))
    for line in annotation_lines(whole):
        assert re.fullmatch(r"::(error|warning) title=[^:,\r\n]+::[^\r\n]*", line)
        assert not re.search(r"%(?!25|0A|3A|2C)", line)


# --- NDJSON --------------------------------------------------------------------------------------


def test_results_are_read_back_as_they_were(tmp_path: Path) -> None:
    outcomes = (*one_of_each().cells, with_texts(cell("redis::kill", "ok", "violation"), HOSTILE))
    results = tuple(campaign(*outcomes).results)
    path = tmp_path / "results.ndjson"
    path.write_bytes(ndjson(results))
    assert len(path.read_bytes().splitlines()) == len(results) == 95
    assert read_results(path) == results


def test_a_line_that_is_no_result_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.ndjson"
    path.write_bytes(ndjson([result("etcd::none", 1, "ok")]) + b'{"trial": 1}\n')
    with pytest.raises(UserError, match="line 2, is no result of a trial"):
        read_results(path)
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_results(tmp_path / "none")
