"""The page as a whole in a real browser: keys and wheel, a phone, the dark, paper."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lockcheck.history import History
from tests.results.browser import CTRL, DESK, PHONE, Tab, pages_of
from tests.results.conftest import Opened
from tests.results.test_in_a_browser import in_view, labels
from tests.results.test_report import of_an_attacker, of_one_incident, report
from tests.results.test_story import Recording, outlived_lease, simulate


def of_the_longest_words() -> History:
    """Eight partitions and eight pauses, long names, and an incident."""
    run = Recording(terms={"clients": 5, "seed": 1_000_000_007})
    for number in range(8):
        at, key = 2000 * number, "orders/2025-11/customer-4711/invoice-000815"
        run.acquire(at + 10, 1, key)
        run.release(at + 20, 1, key)
        if number:  # the incident has one, too
            run.pause(at + 30, 1, at + 400)
        struck = {"nodes": ("redis-replica-eu-central-1a", "r2"), "fault": 100 + number}
        run.add(at + 500, "nemesis", "invoke", "partition", effect="cuts", **struck)
        run.add(at + 510, "nemesis", "ok", "partition", value="all silent", **struck)
        run.add(at + 900, "nemesis", "invoke", "heal", **struck)
        run.add(at + 910, "nemesis", "ok", "heal", **struck)
    outlived_lease(run, 20_000)
    return run.history()


def several() -> str:
    run = Recording()
    simulate(run, 40, trouble=8)
    return report(run.history())


def test_keys_and_the_wheel_change_what_is_in_view(opened: Opened) -> None:
    tab = opened(several())
    tab.js("document.querySelector('#canvas').focus()")
    first = in_view(tab)
    start, end = first
    length = end - start
    tab.press("+")
    inside = in_view(tab)
    assert start < inside[0] < inside[1] < end
    tab.press("-")
    assert in_view(tab) == pytest.approx(first, abs=2)
    tab.press("ArrowRight")
    assert in_view(tab)[0] == pytest.approx(start + length / 6, rel=0.01)
    tab.press("ArrowLeft")
    tab.press("n")
    second = in_view(tab)
    assert "Incident 2 of" in tab.text("#finding-label")
    assert second[0] > start
    tab.press("p")
    assert in_view(tab) == first
    tab.press("0")
    whole = in_view(tab)
    assert whole[0] <= 0 < second[1] < whole[1]
    x, y = tab.js(MIDDLE)
    tab.wheel(x, y, -120, CTRL)
    tab.until("+document.documentElement.dataset.from > 0")
    assert in_view(tab)[1] < whole[1]


def test_escape_closes_the_details(opened: Opened) -> None:
    tab = opened(several(), "#op-3")
    assert not tab.js("document.querySelector('#tip').hidden")
    tab.js("document.querySelector('#canvas').focus()")
    tab.press("Escape")
    assert tab.js("document.querySelector('#tip').hidden")


MIDDLE = """(() => { const box = document.querySelector('#canvas').getBoundingClientRect();
  window.scrollTo(0, box.top + scrollY - 20);
  const now = document.querySelector('#canvas').getBoundingClientRect();
  return [now.left + now.width / 2, now.top + now.height / 2]; })()"""


def test_links_lead_to_later_incidents_and_their_steps(opened: Opened) -> None:
    html = several()
    for link, number in (("#incident-3", 3), ("#step-2-1", 2)):
        tab = opened(html, link)
        assert f"Incident {number} of " in tab.text("#finding-label")
        assert tab.js(f"document.querySelector('#incident-{number}').open")
        top = tab.js(f"document.querySelector('{link}').getBoundingClientRect().top")
        assert -1 < top < DESK[1]
        tab.js("void (location.hash = 'incident-1')")
        tab.until("document.querySelector('#finding-label').innerText.includes('Incident 1 of')")
        assert tab.errors == []


def test_a_step_that_was_followed_is_in_the_address(opened: Opened) -> None:
    tab = opened(several())
    link = "#step-1-2"
    tab.click_on(f"{link} a")
    tab.until(f"location.hash === '{link}'")
    seen = in_view(tab)
    tab.load()
    assert in_view(tab) == seen
    assert tab.js("document.querySelector('#incident-1').open")
    assert tab.errors == []


PAGES = {"longest words": of_the_longest_words, "attacked": of_an_attacker}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_nothing_overflows_and_nothing_is_amiss(
    opened: Opened, size: tuple[int, int], scheme: str, page: str
) -> None:
    tab = opened(report(PAGES[page]()), size=size, prefers_color_scheme=scheme)
    assert tab.js("document.scrollingElement.scrollWidth") == size[0]
    assert tab.js("document.documentElement.dataset.ready") == "1"
    tab.js("document.querySelectorAll('details').forEach((it) => { it.open = true; })")
    assert tab.js("document.scrollingElement.scrollWidth") == size[0]
    if page == "longest words":
        assert "8 partitions and 8 pauses" in tab.text(".counts")
    assert touching(tab) == []
    assert tab.errors == []
    assert {address.partition(":")[0] for address in tab.requests} == {"file"}
    dark = tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(15, 18, 22)"
    assert dark == (scheme == "dark")


# Tiles, badges and buttons whose text is nearer to a side than two pixels, or sticks out.
TOUCHING = """[...document.querySelectorAll('.counts div, .badge, .chip, .number, button')]
  .filter((box) => {
    const text = document.createRange();
    text.selectNodeContents(box);
    const outer = box.getBoundingClientRect();
    return [...text.getClientRects()].some((inner) => inner.width
      && (inner.left < outer.left + 2 || inner.right > outer.right - 2
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1));
  })
  .map((box) => `${box.className || box.id || box.parentNode.className}: ${box.innerText}`)"""


def touching(tab: Tab) -> list[str]:
    found: list[str] = tab.js(TOUCHING)
    return found


def test_a_text_that_overflows_would_be_noticed(opened: Opened) -> None:
    tab = opened(report(of_one_incident()))
    assert touching(tab) == []
    tab.js("document.querySelector('.counts div').style.padding = 0")
    assert len(touching(tab)) == 1


@pytest.mark.parametrize("page", [of_one_incident, of_the_longest_words])
def test_it_prints(opened: Opened, page: Callable[[], History]) -> None:
    tab = opened(report(page()), prefers_color_scheme="dark")
    shown = labels(tab)
    pdf = tab.pdf()
    assert 2 <= pages_of(pdf) <= 9
    assert tab.errors == []
    assert labels(tab) == shown
    assert tab.js("document.documentElement.className") == ""
