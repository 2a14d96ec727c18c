"""The page of a sweep."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

from lockcheck.sweep.grid import Grid
from lockcheck.sweep.page import page
from lockcheck.sweep.surface import Surface
from tests.matrix.made_up import ATTACK, HOSTILE
from tests.sweep.made_up import outcomes, plan

PAUSES = (100, 3000)
ROWS = {1000: "oooo xooo", 2000: "o?oo xxoo", 4000: "oooo xxxx", 8000: "!!?? ooxx"}


def shown(**given: object) -> str:
    found = outcomes(PAUSES, ROWS, {1000: (900.0, 990.0)}, **given)
    return page(Surface.of(found), plan(Grid((*ROWS,), PAUSES)))


def test_each_field_has_its_share_in_words_its_interval_and_its_shade() -> None:
    html = shown()
    fields = re.findall(r'<td class="([\w-]+)" data-of="pause[^"]*"><div>\s*<b>([^<]*)</b>', html)
    assert fields == [
        ("is-unknown", "no answer"),
        ("broke-2", "2 of 4"),
        ("is-as-expected", "none of 4"),
        ("broke-4", "4 of 4"),
        ("is-as-expected", "none of 3"),
        ("broke-2", "2 of 4"),
        ("is-as-expected", "none of 4"),
        ("broke-1", "1 of 4"),
    ]
    assert "900 ms" not in html.partition("945 ms, at most 990 ms")[0]
    assert "5 to 70 %" in html
    assert "2 unknown" in html
    assert "2 failed" in html


def test_its_headline_is_the_answer() -> None:
    assert (
        '<h1 id="answer">With pauses of up to 3 s and work of 50 to 300 ms, runs broke' in shown()
    )


def test_it_links_to_the_pages_of_its_runs_and_nowhere_else() -> None:
    html = shown(report="trials/a b/1/report.html", rerun="lockcheck run --backend redis --seed 1")
    assert (
        '<a href="./trials/a%20b/1/report.html" aria-label="page of seed 1, violation">✗ 1</a>'
        in html
    )
    assert "<code>lockcheck run --backend redis --seed 1</code>" in html
    links = re.findall(r'(?:href|src)="([^"]*)"', shown(report="javascript:alert(1)"))
    assert {*links} == {"./javascript%3Aalert%281%29"}


def test_nothing_of_a_run_becomes_markup_and_no_style_stands_in_an_attribute() -> None:
    html = shown(report=HOSTILE, rerun=HOSTILE)
    assert ATTACK not in html
    assert "\x1b" not in html
    tags: list[tuple[str, dict[str, str | None]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append((tag, dict(attrs)))

    Reader().feed(html)
    assert not {"script", "img", "link"} & {tag for tag, _ in tags}
    assert not any(name == "style" or name.startswith("on") for _, given in tags for name in given)


def test_the_browser_may_load_nothing_and_applies_this_style_only() -> None:
    html = shown()
    [style] = re.findall(r"<style>(.*)</style>", html, re.DOTALL)
    of_it = b64encode(sha256(style.encode()).digest()).decode()
    assert f"default-src &#39;none&#39;; style-src &#39;sha256-{of_it}&#39;" in html
