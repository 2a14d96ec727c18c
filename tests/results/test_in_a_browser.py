"""The page in a real browser: its links, and that its script draws whatever a history holds."""

from __future__ import annotations

import re

import pytest

from lockcheck.checker.finding import Verdict
from tests.results.conftest import Opened
from tests.results.test_report import of_an_attacker, of_one_incident, report
from tests.results.test_story import Recording, judge, simulate


def test_a_link_to_an_incident_opens_it(opened: Opened) -> None:
    run = Recording(terms={"guard": "fence"})
    simulate(run, 8, trouble=4, guard=True)
    html = report(run.history(), judgement=judge(run.history(), Verdict.OK))
    for link, shown in (("", "Incident 1 of 2"), ("#incident-2", "Incident 2 of 2")):
        tab = opened(html, link)
        assert shown in tab.text("#finding-label")
        assert tab.js("document.querySelector('#incident-2').open") == bool(link)


def test_each_step_has_a_link(opened: Opened) -> None:
    html = report(of_one_incident())
    links = re.findall(r'href="#(step-1-\d+)"', html)
    assert len(links) == len(set(links)) > 5
    assert all(f'id="{link}"' in html for link in links)
    tab = opened(html, f"#{links[3]}")
    assert "Incident 1 of 1" in tab.text("#finding-label")
    assert tab.errors == []


@pytest.mark.parametrize("attacked", [False, True])
def test_a_browser_draws_the_timeline(opened: Opened, attacked: bool) -> None:
    history = of_an_attacker() if attacked else of_one_incident()
    tab = opened(report(history))
    drawn = tab.js("({...document.documentElement.dataset})")
    assert drawn["ready"] == "1"
    assert drawn["holds"] == str(len(history.holds))
    assert tab.js("document.querySelector('#canvas').clientHeight") > 100
    assert "Incident 1 of " in tab.text("#finding-label")
    assert tab.errors == []
    assert [address.split(":")[0] for address in tab.requests] == ["file"]


def test_what_goes_wrong_in_the_browser_is_noticed(opened: Opened) -> None:
    tab = opened(report(of_one_incident()))
    tab.js("console.warn('beware', 3)")
    tab.js("void (new Image().src = 'http://192.0.2.1/x.png')")
    tab.js("setTimeout(() => { window.later = 1; undefined.it; }, 0)")
    tab.until("window.later")
    assert tab.errors[0] == "console.warning: beware 3"
    assert "Content Security Policy" in tab.errors[1]
    assert tab.errors[2].startswith("TypeError")
    assert tab.requests[1:] == ["http://192.0.2.1/x.png"]
