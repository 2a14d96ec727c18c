"""The page of a campaign: what it says, in which order, and that it is harmless."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest

from lockcheck.matrix.campaign import Campaign, News, Threshold
from lockcheck.matrix.model import Standing
from lockcheck.matrix.report.html import heat_map, page
from lockcheck.matrix.report.lines import cell_lines, link, sentence
from tests.matrix.made_up import ATTACK, HOSTILE, campaign, cell, one_of_each, result, with_texts


class _Page(HTMLParser):
    """Elements with their attributes, and the text between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.text += " "
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside != "style":
            self.text += data


def words(html: str) -> str:
    return re.sub(r"\s+", " ", _Page(html).text)


def hostile() -> Campaign:
    whole = one_of_each()
    return replace(
        whole,
        name=HOSTILE,
        cells=tuple(with_texts(outcome, HOSTILE) for outcome in whole.cells),
        thresholds=(Threshold(HOSTILE, False, HOSTILE),),
        blind=(HOSTILE,),
        news=News((HOSTILE,), (HOSTILE,), (HOSTILE,), HOSTILE),
    )


def test_one_sentence_says_it_all_the_worst_first() -> None:
    assert sentence(one_of_each()) == (
        "2 of 7 cells as expected; 1 violation: redis::pause::fence; 2 missed violations; 1 error; "
        "1 unknown; 1 threshold not kept: violations == 0; 1 blind spot; "
        "1 new finding since monday"
    )
    assert sentence(campaign(cell("etcd::none", "ok", "ok"))) == "1 of 1 cell as expected"
    assert sentence(campaign()) == "0 of 0 cells as expected"


@pytest.mark.parametrize(
    ("whole", "colour"),
    [
        (campaign(cell("etcd::none", "ok", "ok*3")), "ok"),
        (campaign(cell("etcd::none", "ok", "ok*3"), blind=("No lease ran out.",)), "unknown"),
        (campaign(cell("etcd::none", "ok", "ok unknown")), "unknown"),
        (campaign(cell("etcd::none", "ok", "", planned=3)), "unknown"),
        (campaign(), "unknown"),
        (campaign(cell("etcd::none", "ok", "ok error")), "violation"),
        (campaign(cell("redis-naive::pause", "violation", "ok")), "violation"),
        (
            campaign(
                cell("etcd::none", "ok", "ok"), thresholds=(Threshold("p < 3s", False, "4 s"),)
            ),
            "violation",
        ),
    ],
)
def test_its_colour_is_that_of_the_worst(whole: Campaign, colour: str) -> None:
    assert f'<body class="campaign verdict-{colour}">' in page(whole)


def test_cells_come_worst_first_and_only_the_unexpected_are_unfolded() -> None:
    html = page(one_of_each())
    of_a_cell = r'<details class="panel cell is-([\w-]+)"( open)?>\s*<summary>.*<h3>([^<]*)</h3>'
    found = re.findall(of_a_cell, html)
    assert found == [
        ("violation", " open", "redis::pause::fence"),
        ("missed", " open", "redis-naive::pause"),
        ("missed", " open", "redis::pause"),
        ("error", " open", "redis::clock"),
        ("unknown", " open", "etcd::pause"),
        ("as-expected", "", "etcd::none"),
        ("as-expected", "", "redis::pause::ttl=2s"),
    ]


def test_the_sentence_thresholds_blindness_and_news_stand_above_the_map() -> None:
    text = words(page(one_of_each()))
    parts = [
        "2 of 7 cells as expected; 1 violation",
        "✗ violations == 0 not kept: 2",
        "✓ unknown_rate < 5% kept: 2.2 %",
        "\N{EN DASH} p(99) free_again < 3s nothing to measure",
        "No lease ever ran out.",
        "New (1) redis: stale-write under pause, by the holder",
        "Resolved (1) etcd: stuck",
        "Heat map",
        "Cells, the worst first",
        "Totals",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_field_says_its_share_its_interval_and_what_it_cannot_tell() -> None:
    text = words(page(one_of_each()))
    for part in (
        "✗ violation: 18 of 20 as expected 70 to 97 %",
        "✓ 20 of 20 as expected 84 to 100 % up to 15 % may violate",
        "∅ missed: violation in 10 of 20 expected: violation in >= 80% 30 to 70 %",
        "! error: 3 of 4 as expected 30 to 95 % too few for a rate",
        "✓ 5 of 5 as expected expected: violation with stale-write 57 to 100 %",
    ):
        assert part in text
    assert 'title="redis::pause::fence; violation; 18 of 20 as expected; 95 % interval 70' in page(
        one_of_each()
    )


def test_a_cell_says_what_came_why_and_how_to_run_it_again() -> None:
    text = words(page(one_of_each()))
    for part in (
        "Came ok in 18, violation in 2 (18 of 20 as expected: 95 % interval 70 to 97 %)",
        "Found stale-write under pause, by the holder, in 2 trials",
        "Why c2 worked past its lease and overwrote c1's write. Look at redis::pause::fence[19]",
        "Whose fault lock client",
        "Run it again lockcheck run --backend redis --seed 19",
        "Came ok in 3, error in 1, 2 did not run",
        "Why r1 did not start: port 6379 is taken",
        "Why expected violation in >= 80%, came as violation in 10 of 20 (95 % interval 30 to 70",
        "Why No fault was seen to take. Look at etcd::pause[19]",
    ):
        assert part in text


def test_a_row_is_a_lock_with_its_options_and_a_column_a_nemesis() -> None:
    heat = heat_map(cell_lines(one_of_each()))
    assert heat.columns == ("pause", "clock", "none")
    assert [row for row, _ in heat.rows] == [
        *("redis fence", "redis-naive", "redis", "etcd", "redis ttl=2s")
    ]
    shown = {row: [field and field.line.id for field in fields] for row, fields in heat.rows}
    assert shown["etcd"] == ["etcd::pause", None, "etcd::none"]
    assert shown["redis"] == ["redis::pause", "redis::clock", None]


def test_every_cell_of_the_campaign_is_on_the_map_and_its_link_leads_to_it() -> None:
    elements = _Page(page(one_of_each())).elements
    ids = [attrs["id"] for _, attrs in elements if (attrs.get("id") or "").startswith("cell-")]
    fields = [attrs["href"] for tag, attrs in elements if attrs.get("class") == "field"]
    assert sorted(fields, key=str) == sorted(f"#{each}" for each in ids)
    assert len(ids) == len({*ids}) == 7


def test_each_trial_has_a_link_to_its_page() -> None:
    whole = one_of_each()
    hrefs = {attrs.get("href") for _, attrs in _Page(page(whole)).elements}
    reports = [each.report for each in whole.results if each.report]
    assert len(reports) == 93
    assert {link(report) for report in reports} <= hrefs


def test_the_table_has_headers_for_rows_and_columns() -> None:
    headers = [attrs["scope"] for tag, attrs in _Page(page(one_of_each())).elements if tag == "th"]
    assert headers == ["col"] * 4 + ["row"] * 5


def test_nothing_of_a_run_becomes_markup() -> None:
    html = page(hostile())
    assert ATTACK not in html
    elements = _Page(html).elements
    assert not {"script", "img", "iframe", "link"} & {tag for tag, _ in elements}
    attributes = {name for _, attrs in elements for name in attrs}
    assert not {name for name in attributes if name.startswith("on") or name == "style"}
    assert html.isprintable() or {c for c in html if not c.isprintable()} == {"\n"}
    assert ATTACK in _Page(html).text


def test_links_lead_nowhere_else() -> None:
    bad = "javascript:alert(1)", "//example.org/x", "https://example.org", 'a" onclick="b', "a b"
    outcome = cell("etcd::none", "ok", "")
    results = [result("etcd::none", n, "ok", report=path) for n, path in enumerate(bad)]
    elements = _Page(page(campaign(replace(outcome, results=results)))).elements
    hrefs = [attrs["href"] or "" for tag, attrs in elements if tag == "a"]
    assert len([href for href in hrefs if href.startswith("./")]) == 2 * len(bad)
    assert {(urlsplit(href).scheme, urlsplit(href).netloc) for href in hrefs} == {("", "")}
    assert not [attrs for _, attrs in elements if "onclick" in attrs]


def test_the_browser_may_load_nothing_and_applies_this_style_only() -> None:
    html = page(one_of_each())
    style = html.partition("<style>")[2].partition("</style>")[0]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    [policy] = [
        attrs["content"]
        for tag, attrs in _Page(html).elements
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style
    assert "@import" not in style


def test_half_of_a_surrogate_pair_can_be_written() -> None:
    outcome = with_texts(cell("etcd::none", "ok", "violation"), "\ud800")
    page(campaign(outcome)).encode()


def test_each_standing_has_a_colour_of_its_own() -> None:
    html = page(one_of_each())
    for standing in Standing:
        name = standing.name.lower().replace("_", "-")
        assert f".is-{name} {{ --s:" in html
        assert f'<td class="is-{name}"' in html
