"""The page in a real browser: its links, and that its script draws whatever a history holds."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from lockcheck.checker.finding import Verdict
from lockcheck.history import History
from tests.results.browser import DESK, PHONE, Tab
from tests.results.conftest import Opened
from tests.results.test_report import of_an_attacker, of_one_incident, report
from tests.results.test_story import Recording, judge, outlived_lease, simulate

# Where on the screen the canvas first has a colour in so many pixels side by side: their middle.
MIDDLE_OF = """((name, width) => {
  const canvas = document.querySelector('#canvas');
  const pen = document.createElement('canvas').getContext('2d');
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
  pen.fillRect(0, 0, 1, 1);
  const wanted = pen.getImageData(0, 0, 1, 1).data.join();
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  canvas.scrollIntoView({ block: 'center', behavior: 'instant' });
  const box = canvas.getBoundingClientRect();
  for (let y = 0; y < canvas.height; y++) {
    for (let x = 0, run = 0; x < canvas.width; x++) {
      const at = 4 * (y * canvas.width + x);
      run = data.slice(at, at + 4).join() === wanted ? run + 1 : 0;
      if (run === width) return [box.left + x - width / 2, box.top + y];
    }
  }
  return null;
})(%s)"""


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


def of_two_locks() -> History:
    """An incident on each, and an operation that no lane shows."""
    run = Recording()
    outlived_lease(run, 100, 2, 4)
    run.acquire(2000, 1, "k2")
    run.both(2010, 1, "renew", took=0.5, asked={"key": "k2", "ttl_ms": 1000})
    run.held(2500, 3, "k2")
    run.acquire(3100, 3, "k2")
    run.read(3105, 3, None, "k2")
    run.release(3200, 1, "k2")
    run.release(3300, 3, "k2")
    return run.history()


def in_view(tab: Tab) -> tuple[int, int]:
    """From when to when, in µs."""
    tab.js("new Promise(requestAnimationFrame)")
    return tuple(tab.js("['from', 'to'].map((edge) => +document.documentElement.dataset[edge])"))


def drawn(tab: Tab) -> dict[str, int]:
    """How many of each kind, in view."""
    tab.js("new Promise(requestAnimationFrame)")
    counted: dict[str, int] = json.loads(tab.js("document.documentElement.dataset.drawn"))
    return counted


def choose(tab: Tab, select: str, option: str) -> None:
    tab.js(
        f"""(() => {{ const it = document.querySelector('#{select}');
        it.value = [...it.options].find((each) => each.text === '{option}').value;
        it.dispatchEvent(new Event('change')); }})()"""
    )


def test_a_link_to_an_operation_shows_its_moment_and_its_details(opened: Opened) -> None:
    history = of_two_locks()
    tab = opened(report(history), "#op-1")
    for number, operation in enumerate(history.operations, 1):
        tab.until(f"document.querySelector('#finding-label').innerText.includes(' {number}')")
        name, hidden = tab.text("#finding-label"), tab.js("document.querySelector('#tip').hidden")
        assert name.startswith(f"Operation {number} ")
        assert hidden == (operation.f == "renew")
        if hidden:
            assert name.endswith("is not drawn here; it is in the stored history.")
        else:
            assert f"operation {number}" in tab.text("#tip")
            assert operation.node in tab.text("#tip").partition("\n")[0]
            start, end = in_view(tab)
            assert start < operation.start_ns / 1000 <= operation.last_ns / 1000 < end
        tab.js(f"void (location.hash = 'op-{number + 1}')")
    tab.until("document.querySelector('#finding-label').innerText.startsWith('There is no')")
    none = f"There is no operation {number + 1}: the history has {number}."
    assert tab.text("#finding-label") == none
    assert tab.errors == []


def test_a_click_on_a_mark_puts_its_link_into_the_address(opened: Opened) -> None:
    run = Recording()
    run.acquire(10, 1)
    run.write(20, 1, "v1", None)
    run.release(30, 1)
    tab = opened(report(run.history()))
    tab.click(*tab.js(MIDDLE_OF % "'--accepted', 7"))
    assert tab.js("location.hash") == "#op-2"
    assert "c1 wrote v1" in tab.text("#tip")
    tab.load()
    assert tab.text("#finding-label") == "Operation 2 c1 wrote v1"
    assert tab.errors == []


def test_filters_hide_what_they_say(opened: Opened) -> None:
    tab = opened(report(of_two_locks()))
    tab.click_on("#whole")
    everything = drawn(tab)
    assert everything == {"faults": 1, "attempts": 2, "holds": 4, "writes": 2, "reads": 3}
    for kind in everything:
        tab.click_on(f"#kind-{kind}")
        assert drawn(tab) == {name: n for name, n in everything.items() if name != kind}
        assert tab.js(f"document.querySelector('#kind-{kind}').ariaPressed") == "false"
        tab.press(" ")  # the button has the focus
        assert drawn(tab) == everything
    choose(tab, "lane", "c1")
    assert drawn(tab) == {"holds": 1}
    choose(tab, "lane", "c4")
    assert drawn(tab) == {"holds": 1, "writes": 1, "reads": 1, "attempts": 1}
    choose(tab, "lane", "all")
    choose(tab, "key", "k2")
    assert drawn(tab) == {"faults": 1, "attempts": 1, "holds": 2, "reads": 1}
    tab.click_on("#next")  # an incident on the other lock
    assert tab.js("document.querySelector('#key').selectedOptions[0].text") == "all"


def test_where_there_is_nothing_to_choose_there_are_no_filters(opened: Opened) -> None:
    run = Recording()
    run.acquire(1, 1)
    run.release(5, 1)
    tab = opened(report(run.history()))
    assert tab.js("[...document.querySelectorAll('.filter, #kinds')].every((it) => it.hidden)")


@pytest.mark.parametrize("attacked", [False, True])
def test_a_browser_draws_the_timeline(opened: Opened, attacked: bool) -> None:
    history = of_an_attacker() if attacked else of_one_incident()
    tab = opened(report(history))
    shown = tab.js("({...document.documentElement.dataset})")
    assert shown["ready"] == "1"
    assert shown["holds"] == str(len(history.holds))
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


def labels(tab: Tab) -> list[dict[str, Any]]:
    """The texts that stand out on the lanes, each with its kind and its box."""
    tab.js("new Promise(requestAnimationFrame)")
    placed: list[dict[str, Any]] = json.loads(tab.js("document.documentElement.dataset.labels"))
    return placed


def legible(tab: Tab) -> bool:
    """No label is cut at an edge, or covers another."""
    width = tab.js("document.querySelector('#canvas').clientWidth")
    boxes = [[box[edge] for edge in ("left", "right", "top", "bottom")] for box in labels(tab)]
    cut = [box for box in boxes if box[0] < 48 or box[1] > width]
    covered = [
        (one, other)
        for one, other in itertools.combinations(boxes, 2)
        if one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
    ]
    return not cut and not covered


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_what_an_incident_is_about_is_labelled_in_the_words_of_its_picture(
    opened: Opened, size: tuple[int, int]
) -> None:
    run = Recording()
    simulate(run, 12, trouble=3)
    tab = opened(report(run.history()), size=size)
    for _ in range(4):
        assert labels(tab)[0]["text"] == "thinks it still has it"
        assert {"granted", "harm", "fault"} <= {label["kind"] for label in labels(tab)}
        assert labels(tab)[1]["text"] in tab.js("document.querySelector('svg.picture').textContent")
        assert legible(tab)
        tab.js("document.querySelector('#canvas').focus()")
        for key in ("+", "ArrowLeft", "-", "-", "ArrowRight", "ArrowRight"):
            tab.press(key)
            assert legible(tab)
        tab.press("n")


def test_the_fault_that_is_blamed_stays_in_view(opened: Opened) -> None:
    tab = opened(report(of_one_incident()))
    tab.js("document.querySelector('#canvas').focus()")
    for key in "+" * 8:
        tab.press(key)
    for key, text in (("Home", "paused, at 0.103 s ▸"), ("End", "◂ paused, at 0.103 s")):
        tab.press(key)
        assert [label["text"] for label in labels(tab) if label["kind"] == "fault"] == [text]
        assert legible(tab)
    tab.click_on("#kind-faults")
    assert labels(tab) == []


# Which share of a column, at three quarters, is not as at the left edge of the lanes.
UNLIKE_THE_EDGE = """(() => {
  const canvas = document.querySelector('#canvas');
  const column = (x) => new Uint32Array(
    canvas.getContext('2d').getImageData(x, 0, 1, canvas.height).data.buffer);
  const edge = column(60), middle = column(Math.round(canvas.width * 0.75));
  return middle.filter((pixel, y) => pixel !== edge[y]).length / canvas.height;
})()"""


@pytest.mark.parametrize("harmless", [False, True])
def test_only_violations_are_shaded_from_top_to_bottom(opened: Opened, harmless: bool) -> None:
    run = Recording({"guard": "fence"} if harmless else {})
    run.acquire(100, 1)
    run.acquire(1110, 2)
    run.release(1500, 1)
    run.release(1600, 2)
    for client in range(3, 9):
        run.held(100, client)
    history = run.history()
    html = report(history, judgement=judge(history, Verdict.OK if harmless else Verdict.VIOLATION))
    share = opened(html).js(UNLIKE_THE_EDGE)
    assert share < 0.2 if harmless else share > 0.8
