"""The page on paper: the verdict on its first page, few pages, and what was folded for length."""

from __future__ import annotations

import base64

from lockcheck.checker.finding import Verdict
from tests.results.browser import Tab, pages_of
from tests.results.conftest import Opened
from tests.results.test_report import of_one_incident, report
from tests.results.test_story import Recording, judge, simulate

# In the pixels of CSS, within the margins:
WIDTH, HEIGHT = 703, 1024
A4_INCHES = {"paperWidth": 8.27, "paperHeight": 11.69}


def on_paper(opened: Opened, html: str) -> Tab:
    """As it is laid out for A4, but on one endless page."""
    tab = opened(html)
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.resize(WIDTH, HEIGHT)
    tab.js("void dispatchEvent(new Event('beforeprint'))")
    return tab


def place(tab: Tab, selector: str) -> tuple[float, float]:
    """From its top to its bottom."""
    top, bottom = tab.js(
        f"(({{top, bottom}}) => [top + scrollY, bottom + scrollY])"
        f"(document.querySelector('{selector}').getBoundingClientRect())"
    )
    return top, bottom


def incidents() -> str:
    run = Recording(terms={"guard": "fence"})
    simulate(run, 60, trouble=8, guard=True)
    history = run.history()
    return report(history, judgement=judge(history, Verdict.VIOLATION))


def test_the_first_page_has_the_verdict_the_counts_and_the_properties(opened: Opened) -> None:
    tab = on_paper(opened, report(of_one_incident()))
    places = [place(tab, each) for each in ("#verdict", ".advice", ".counts", ".properties")]
    assert places == sorted(places)
    assert places[-1][1] < HEIGHT
    found, _ = place(tab, ".found")
    timeline, _ = place(tab, "#timeline")
    assert places[-1][1] <= found < timeline


def test_nothing_is_cut_at_the_edge_or_stands_alone(opened: Opened) -> None:
    for html in (report(of_one_incident()), incidents()):
        tab = on_paper(opened, html)
        assert tab.js("document.documentElement.scrollWidth") <= WIDTH
        rows = (
            "new Set([...document.querySelectorAll('.counts > div')].map((t) => t.offsetTop)).size"
        )
        assert tab.js(rows) == 1
        for hidden in (".copy", ".tools", "#overview"):
            assert not tab.js(f"document.querySelector('{hidden}').offsetHeight")


def test_a_small_run_is_on_a_few_pages(opened: Opened) -> None:
    tab = opened(report(of_one_incident()))
    pdf = tab.call("Page.printToPDF", printBackground=True, **A4_INCHES)["data"]
    assert pages_of(base64.b64decode(pdf)) <= 4
    assert tab.errors == []


def test_how_it_was_run_is_open_on_paper_and_other_incidents_stay_folded(opened: Opened) -> None:
    tab = on_paper(opened, incidents())
    opens = "[...document.querySelectorAll('{}')].map((fold) => fold.open)"
    assert tab.js(opens.format("details.how")) == [True, True]
    assert tab.js("document.querySelectorAll('.verdict details.how').length") == 0
    stories = tab.js(opens.format(".story"))
    assert len(stories) > 4
    assert stories == [True, True, True, *[False] * (len(stories) - 3)]
    assert "report.html#incident-4" in tab.text(".found")
    tab.js("void dispatchEvent(new Event('afterprint'))")
    assert tab.js(opens.format(".verdict details.how")) == [False, False]
    tab.call("Emulation.setEmulatedMedia", media="screen")
    assert "report.html#incident-4" not in tab.text(".found")
